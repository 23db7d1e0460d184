"""Cases of `purax.primitives.elementwise.logic`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.elementwise.logic import (
    and_p,
    clamp_p,
    clz_p,
    eq_p,
    eq_to_p,
    ge_p,
    gt_p,
    is_finite_p,
    le_p,
    le_to_p,
    lt_p,
    lt_to_p,
    ne_p,
    not_p,
    or_p,
    population_count_p,
    select_n_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from purax.testing.case import case, numbers

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
ORDERED = (
    np.bool_,
    np.int8,
    np.int32,
    np.uint32,
    np.int64,
    np.float32,
    np.float64,
    np.float16,
    ml_dtypes.bfloat16,
)
SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -np.nan], np.float32)
ROWS, COLUMNS = (np.ascontiguousarray(x) for x in np.meshgrid(SPECIAL, SPECIAL))
COMPARISONS = (eq_p, ne_p, lt_p, le_p, gt_p, ge_p, eq_to_p, lt_to_p, le_to_p)
SHIFTS = (shift_left_p, shift_right_arithmetic_p, shift_right_logical_p)
BITWISE = (and_p, or_p, xor_p)


def extremes(dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.min + 1, 0, 1, 5, limits.max - 1, limits.max], dtype)


CASES = [
    *(
        case(primitive, numbers([2, 3], dtype, seed=1), numbers([2, 3], dtype, seed=2))
        for primitive in COMPARISONS
        for dtype in ORDERED
    ),
    *(case(primitive, ROWS, COLUMNS, differentiable=False) for primitive in COMPARISONS),
    *(case(primitive, numbers([]), numbers([3])) for primitive in COMPARISONS),
    *(case(primitive, numbers([0, 2]), numbers([0, 2])) for primitive in COMPARISONS),
    *(case(primitive, *[numbers([4], np.complex64)] * 2, differentiable=False) for primitive in (eq_p, ne_p)),
    *(
        case(primitive, numbers([6], dtype, 0, 100, seed=1), numbers([6], dtype, 0, 100, seed=2))
        for primitive in BITWISE
        for dtype in (np.bool_, *INTEGERS)
    ),
    *(case(primitive, np.int32(5), numbers([3], np.int32)) for primitive in (*BITWISE, *SHIFTS)),
    *(case(not_p, numbers([2, 3], dtype, 0, 100)) for dtype in (np.bool_, *INTEGERS)),
    *(
        case(primitive, np.repeat(extremes(dtype), 5), np.tile(np.array([0, 1, 7, 64, 255]).astype(dtype), 7))
        for primitive in SHIFTS
        for dtype in INTEGERS
    ),
    *(case(primitive, extremes(dtype)) for primitive in (population_count_p, clz_p) for dtype in INTEGERS),
    *(
        case(is_finite_p, SPECIAL.astype(dtype))
        for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
    ),
    case(select_n_p, numbers([3], np.bool_), numbers([3], seed=1), numbers([3], seed=2), linear=(1, 2)),
    case(select_n_p, numbers([3], np.bool_), np.zeros(3, np.float32), numbers([3]), linear=(2,)),
    case(select_n_p, np.True_, numbers([2, 3], seed=1), numbers([2, 3], seed=2), linear=(1, 2)),
    case(select_n_p, numbers([2, 3], np.bool_), numbers([], seed=1), numbers([2, 3], seed=2), linear=(1, 2)),
    case(select_n_p, numbers([2, 3], np.bool_), numbers([], seed=1), numbers([], seed=2), linear=(1, 2)),
    case(select_n_p, np.False_, numbers([], seed=1), numbers([], seed=2), linear=(1, 2)),
    case(select_n_p, np.zeros([0, 2], np.bool_), numbers([0, 2]), numbers([0, 2]), linear=(1, 2)),
    case(
        select_n_p,
        np.array([-1, 0, 1, 2, 9], np.int32),
        *(numbers([5], seed=i) for i in range(3)),
        linear=(1, 2, 3),
    ),
    case(
        select_n_p,
        np.int32(2),
        numbers([2, 3]),
        np.zeros([2, 3], np.float32),
        numbers([2, 3], seed=1),
        linear=(1, 3),
    ),
    case(select_n_p, numbers([3], np.int32), numbers([3]), linear=(1,)),
    *(
        case(select_n_p, numbers([4], np.bool_), numbers([4], dtype, seed=1), numbers([4], dtype, seed=2))
        for dtype in (np.bool_, np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, np.complex64)
    ),
    case(clamp_p, np.float32(-1), numbers([2, 4]), np.float32(1)),
    case(clamp_p, numbers([4], low=-2, high=-1), numbers([4]), numbers([4], low=1, high=2)),
    case(clamp_p, numbers([4], low=-2, high=-1), numbers([4]), np.float32(1)),
    case(clamp_p, np.float32(-1), numbers([]), np.float32(1)),
    case(clamp_p, np.float32(0), SPECIAL, np.float32(0.5), differentiable=False),
    case(clamp_p, np.float32(2), SPECIAL, np.float32(1), differentiable=False),
    *(
        case(clamp_p, dtype(1), numbers([5], dtype, 0, 9), dtype(5))
        for dtype in (np.int32, np.uint8, np.float64)
    ),
]
