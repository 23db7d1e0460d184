"""Cases for `purax.primitives.shape.dynamic_slicing`."""

import ml_dtypes
import numpy as np

from purax.primitives.shape.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from purax.testing.case import case, numbers


def _starts(*values, dtype=np.int32):
    return [np.array(value, dtype) for value in values]


CASES = [
    case(dynamic_slice_p, numbers((5,)), *_starts(2), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((5,)), *_starts(4), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((5,)), *_starts(-3), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((4, 6)), *_starts(1, 7), slice_sizes=(2, 3), linear=(0,)),
    case(dynamic_slice_p, numbers((4, 6)), *_starts(3, 0), slice_sizes=(1, 6), linear=(0,)),
    case(dynamic_slice_p, numbers((4, 6)), *_starts(3, 0), slice_sizes=(0, 6), linear=(0,)),
    case(dynamic_slice_p, numbers(()), slice_sizes=(), linear=(0,)),
    case(dynamic_slice_p, numbers((300,)), *_starts(250, dtype=np.uint8), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((300,)), *_starts(-1, dtype=np.int8), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((5,)), *_starts(2**64 - 1, dtype=np.uint64), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((5,)), *_starts(2**32 - 1, dtype=np.uint32), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((5,)), *_starts(-(2**40), dtype=np.int64), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((5,), np.complex64), *_starts(2), slice_sizes=(2,), linear=(0,)),
    case(dynamic_slice_p, numbers((5,), np.bool_), *_starts(2), slice_sizes=(2,)),
    case(dynamic_slice_p, numbers((5,), ml_dtypes.bfloat16), *_starts(2), slice_sizes=(2,), linear=(0,)),
    case(dynamic_update_slice_p, numbers((5,)), numbers((2,)), *_starts(2), linear=(0, 1)),
    case(dynamic_update_slice_p, numbers((5,)), numbers((2,)), *_starts(9), linear=(0, 1)),
    case(dynamic_update_slice_p, numbers((5,)), numbers((2,)), *_starts(-9), linear=(0, 1)),
    case(dynamic_update_slice_p, numbers((4, 6)), numbers((1, 6)), *_starts(2, 0), linear=(0, 1)),
    case(dynamic_update_slice_p, numbers((4, 6)), numbers((2, 3)), *_starts(3, 1), linear=(0, 1)),
    case(dynamic_update_slice_p, numbers((4, 6)), numbers((0, 3)), *_starts(3, 1), linear=(0, 1)),
    case(dynamic_update_slice_p, numbers(()), numbers((), seed=1), linear=(0, 1)),
    case(
        dynamic_update_slice_p, numbers((300,)), numbers((2,)), *_starts(250, dtype=np.uint8), linear=(0, 1)
    ),
    case(
        dynamic_update_slice_p,
        numbers((5,), np.complex64),
        numbers((2,), np.complex64),
        *_starts(2),
        linear=(0, 1),
    ),
    case(dynamic_update_slice_p, numbers((5,), np.int16), numbers((2,), np.int16, seed=1), *_starts(2)),
    case(dynamic_update_slice_p, numbers((5,), np.bool_), numbers((2,), np.bool_, seed=1), *_starts(2)),
]
