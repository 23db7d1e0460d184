"""Cases for `purax.primitives.shape.slicing`."""

import ml_dtypes
import numpy as np

from purax.primitives.shape.slicing import pad_p, slice_p
from purax.testing.case import case, numbers


def _slice(x, starts, limits, strides=None, **kwargs):
    return case(slice_p, x, start_indices=starts, limit_indices=limits, strides=strides, **kwargs)


def _pad(x, value, *config, **kwargs):
    return case(pad_p, x, np.array(value, x.dtype), padding_config=config, **kwargs)


CASES = [
    _slice(numbers((5,)), (1,), (4,), linear=(0,)),
    _slice(numbers((5,)), (1,), (5,), (2,), linear=(0,)),
    _slice(numbers((5,)), (0,), (5,), (3,), linear=(0,)),
    _slice(numbers((5,)), (4,), (5,), (7,), linear=(0,)),
    _slice(numbers((5,)), (2,), (2,), (2,), linear=(0,)),
    _slice(numbers((4, 6)), (1, 0), (3, 6), (1, 4), linear=(0,)),
    _slice(numbers((4, 6)), (0, 5), (4, 6), linear=(0,)),
    _slice(numbers((0, 3)), (0, 1), (0, 3), linear=(0,)),
    _slice(numbers(()), (), (), linear=(0,)),
    _slice(numbers((5,), np.complex64), (1,), (5,), (2,), linear=(0,)),
    _slice(numbers((5,), np.bool_), (1,), (4,)),
    _slice(numbers((5,), np.int8), (1,), (4,)),
    _slice(numbers((5,), ml_dtypes.bfloat16), (1,), (4,), linear=(0,)),
    _pad(numbers((3,)), 1.5, (1, 2, 0), linear=(0, 1)),
    _pad(numbers((3,)), 1.5, (0, 0, 2), linear=(0, 1)),
    _pad(numbers((3,)), 1.5, (1, 1, 1), linear=(0, 1)),
    _pad(numbers((4,)), 1.5, (-1, 2, 0), linear=(0, 1)),
    _pad(numbers((4,)), 1.5, (-3, 1, 2), linear=(0, 1)),
    _pad(numbers((4,)), 1.5, (-2, -2, 2), linear=(0, 1)),
    _pad(numbers((4,)), 1.5, (-2, -2, 0), linear=(0, 1)),
    _pad(numbers((4,)), 1.5, (-1, -5, 1), linear=(0, 1)),
    _pad(numbers((2,)), 1.5, (-3, 4, 4), linear=(0, 1)),
    _pad(numbers((2,)), 1.5, (-1, -1, 4), linear=(0, 1)),
    _pad(numbers((2,)), 1.5, (-5, 9, 0), linear=(0, 1)),
    _pad(numbers((2,)), 1.5, (7, -6, 0), linear=(0, 1)),
    _pad(numbers((0,)), 1.5, (1, 2, 3), linear=(0, 1)),
    _pad(numbers((2, 3)), 1.5, (1, 0, 0), (0, -1, 1), linear=(0, 1)),
    _pad(numbers((2, 0)), 1.5, (1, 0, 0), (0, 0, 1), linear=(0, 1)),
    _pad(numbers(()), 1.5, linear=(0, 1)),
    _pad(numbers((3,), np.complex64), 1j, (1, 2, 0), linear=(0, 1)),
    _pad(numbers((3,), np.int32), -7, (1, -1, 1)),
    _pad(numbers((3,), np.bool_), True, (1, 1, 0)),
    _pad(numbers((3,), ml_dtypes.bfloat16), 2, (1, 1, 0), linear=(0, 1)),
    _pad(numbers((3,), np.float64), np.inf, (1, 1, 0), differentiable=False),
]
