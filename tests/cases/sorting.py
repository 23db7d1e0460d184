"""Cases of `purax.primitives.sorting`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.sorting import sort_p, top_k_p
from purax.testing.case import case, numbers

nan, inf = np.nan, np.inf
bfloat16 = ml_dtypes.bfloat16
special = np.array([[0.0, -0.0, nan, 1], [-inf, -nan, inf, -0.0], [0.0, nan, -nan, 2]], np.float32)
complex_special = np.array(
    [1 + 1j, 1 - 1j, complex(nan, 1), 0, complex(1, nan), complex(0, nan), 3j], np.complex64
)
NUMBERS = (
    np.int8,
    np.uint8,
    np.int16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.float16,
    bfloat16,
    np.float64,
)
few = [numbers([12], np.int32, 0, 2, seed=seed) for seed in range(3)]  # keys with many ties
position = np.arange(12, dtype=np.int32)


def sort(*operands, dimension=0, num_keys=1, is_stable=True, **options):
    return case(sort_p, *operands, dimension=dimension, is_stable=is_stable, num_keys=num_keys, **options)


CASES = [
    sort(numbers([7])),
    sort(numbers([3, 4]), dimension=1),
    sort(numbers([3, 4]), dimension=0, is_stable=False),
    sort(numbers([2, 3, 4]), dimension=1),
    sort(numbers([5, 2]), numbers([5, 2], seed=1)),
    sort(numbers([2, 5]), numbers([2, 5], seed=1), dimension=1, num_keys=2),
    sort(numbers([2, 3, 2]), numbers([2, 3, 2], np.int8), dimension=1),
    sort(numbers([5], np.complex64)),
    sort(numbers([2, 4], np.complex64), numbers([2, 4]), dimension=1),
    sort(special, dimension=1, differentiable=False),
    sort(special, np.arange(12, dtype=np.int32).reshape(3, 4), dimension=1, differentiable=False),
    sort(special.astype(bfloat16), np.arange(12).reshape(3, 4), dimension=0, differentiable=False),
    sort(special.astype(np.float64), np.arange(12).reshape(3, 4), dimension=0, differentiable=False),
    sort(complex_special, np.arange(7), differentiable=False),
    *(sort(numbers([9], dtype, 0, 90)) for dtype in NUMBERS),
    *(sort(numbers([9], dtype, 0, 3), np.arange(9)) for dtype in NUMBERS),
    sort(numbers([9], ml_dtypes.float8_e4m3fn)),
    sort(numbers([9], ml_dtypes.float8_e5m2), np.arange(9)),
    sort(np.array([-128, 127, 0, -1], np.int8), np.arange(4)),
    sort(np.array([2**32 - 1, 0, 2**31, 5], np.uint32), np.arange(4)),
    sort(np.array([2**64 - 1, 0, 2**63, 5], np.uint64), np.arange(4)),
    sort(numbers([6], bool)),
    sort(numbers([6], bool), np.arange(6)),
    sort(few[0], position),
    sort(few[0], few[1], position, num_keys=2),
    sort(few[0], few[1], few[2], position, num_keys=3),
    sort(few[0], few[1].astype(np.float32), few[2].astype(np.int64), num_keys=3, differentiable=False),
    sort(numbers([0])),
    sort(numbers([0, 3]), numbers([0, 3]), dimension=1),
    sort(numbers([1, 3]), numbers([1, 3])),
    *(
        case(top_k_p, numbers(shape, dtype, -9, 9), k=k, axis=axis)
        for shape, dtype, k, axis in (
            ([7], np.float32, 3, 0),
            ([3, 5], np.float32, 2, 1),
            ([5, 3], np.float32, 2, 0),
            ([2, 4, 3], np.float32, 4, 1),
            ([3, 5], np.float64, 2, 1),
            ([3, 5], bfloat16, 2, 1),
            ([3, 5], np.float16, 5, 1),
            ([3, 5], np.float32, 0, 1),
            ([0, 5], np.float32, 2, 1),
            ([3, 9], np.int8, 4, 1),
            ([3, 9], np.int32, 4, 1),
            ([3, 9], np.int64, 4, 1),
            ([3, 9], bool, 4, 1),
        )
    ),
    case(top_k_p, numbers([2, 5], ml_dtypes.float8_e4m3fn), k=2, axis=1, differentiable=False),  # has ties
    case(top_k_p, np.array([2**32 - 1, 0, 2**31, 5], np.uint32), k=3, axis=0),
    case(top_k_p, np.array([-(2**31), 2**31 - 1, 2**24 + 1, 2**24], np.int32), k=4, axis=0),
    case(top_k_p, numbers([3, 9], np.uint8, 0, 255), k=4, axis=1),
    case(top_k_p, special, k=4, axis=1, differentiable=False),
    case(top_k_p, special.astype(np.float64), k=4, axis=1, differentiable=False),
    case(top_k_p, special.astype(bfloat16), k=4, axis=1, differentiable=False),
]
