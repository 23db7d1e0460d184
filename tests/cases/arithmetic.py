"""Cases of `purax.primitives.elementwise.arithmetic`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.elementwise.arithmetic import (
    abs_p,
    cbrt_p,
    ceil_p,
    copy_p,
    div_p,
    floor_p,
    integer_pow_p,
    max_p,
    min_p,
    mulhi_p,
    nextafter_p,
    rem_p,
    round_p,
    rsqrt_p,
    sign_p,
    sqrt_p,
    square_p,
    sub_p,
)
from purax.testing.case import case, numbers

float32 = np.float32
NARROW = (np.float16, ml_dtypes.bfloat16)
FLOATS = (np.float64, *NARROW)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
COMPLEX = (np.complex64, np.complex128)
SPECIAL = np.array([0.0, -0.0, 0.5, -0.5, 1, -1, 1.5, 2.5, -2.5, 3, np.inf, -np.inf, np.nan], np.float32)
ROWS, COLUMNS = (np.ascontiguousarray(x) for x in np.meshgrid(SPECIAL, SPECIAL))
SHAPES: tuple[tuple[list[int], list[int]], ...] = (
    ([], []),
    ([2, 3], [2, 3]),
    ([], [4]),
    ([4], []),
    ([0, 3], [0, 3]),
)


def extremes(dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.min + 1, 0, 1, 2, 5, limits.max - 1, limits.max], dtype)


CASES = [
    *(case(sub_p, numbers(a, seed=1), numbers(b, seed=2), linear=(0, 1)) for a, b in SHAPES),
    *(case(div_p, numbers(a, seed=1), numbers(b, low=1, high=3, seed=2), linear=(0,)) for a, b in SHAPES),
    *(
        case(primitive, numbers(a, seed=1), numbers(b, low=0.3, high=0.9, seed=2))
        for primitive in (rem_p, max_p, min_p, nextafter_p)
        for a, b in SHAPES
    ),
    *(
        case(primitive, numbers([5], dtype, seed=1), numbers([5], dtype, 1, 3, seed=2))
        for primitive in (sub_p, div_p, max_p, min_p, rem_p, nextafter_p)
        for dtype in FLOATS
    ),
    *(
        case(primitive, numbers([5], dtype, seed=1), numbers([5], dtype, 1, 3, seed=2))
        for primitive in (sub_p, div_p, max_p, min_p)
        for dtype in COMPLEX
    ),
    case(div_p, numbers([3], np.complex64, seed=1), numbers([], np.complex64, 1, 3, seed=2), linear=(0,)),
    case(sub_p, numbers([3], np.complex64, seed=1), numbers([3], np.complex64, seed=2), linear=(0, 1)),
    *(
        case(primitive, np.repeat(extremes(dtype), 8), np.tile(extremes(dtype), 8))
        for primitive in (sub_p, div_p, rem_p, max_p, min_p, mulhi_p)
        for dtype in INTEGERS
    ),
    *(
        case(primitive, ROWS, COLUMNS, differentiable=False)
        for primitive in (sub_p, div_p, rem_p, max_p, min_p, nextafter_p)
    ),
    *(case(primitive, *[numbers([4], np.bool_, seed=i) for i in (1, 2)]) for primitive in (max_p, min_p)),
    *(
        case(primitive, numbers(shape, low=0.5))
        for primitive in (square_p, sign_p, abs_p, floor_p, ceil_p, sqrt_p, rsqrt_p, cbrt_p)
        for shape in ([], [2, 3], [0])
    ),
    *(
        case(primitive, numbers([7], dtype, 0.5, 3))
        for primitive in (square_p, sign_p, abs_p, floor_p, ceil_p, sqrt_p, rsqrt_p, cbrt_p, copy_p)
        for dtype in FLOATS
    ),
    *(
        case(primitive, numbers([7], low=-3, high=-1))
        for primitive in (square_p, sign_p, abs_p, floor_p, ceil_p, cbrt_p)
    ),
    *(
        case(primitive, numbers([7], dtype))
        for primitive in (square_p, sign_p, abs_p, sqrt_p, rsqrt_p)
        for dtype in COMPLEX
    ),
    *(
        case(primitive, np.zeros(2, np.complex64), differentiable=False)
        for primitive in (sign_p, abs_p, sqrt_p)
    ),
    *(
        case(primitive, SPECIAL, differentiable=False)
        for primitive in (square_p, sign_p, abs_p, floor_p, ceil_p, sqrt_p, rsqrt_p, cbrt_p)
    ),
    *(case(primitive, extremes(dtype)) for primitive in (square_p, sign_p) for dtype in INTEGERS),
    *(case(abs_p, extremes(dtype)) for dtype in INTEGERS[:4]),
    *(case(round_p, SPECIAL, rounding_method=method, differentiable=False) for method in (0, 1)),
    *(case(round_p, numbers([2, 3], dtype), rounding_method=method) for dtype in FLOATS for method in (0, 1)),
    *(case(integer_pow_p, numbers([2, 3], low=0.5), y=y) for y in (0, 1, 2, 3, 4, 7, -1, -2, -5)),
    *(case(integer_pow_p, numbers([3], np.complex64), y=y) for y in (0, 2, 3, -2)),
    *(case(integer_pow_p, extremes(dtype), y=y) for dtype in INTEGERS for y in (0, 1, 2, 3)),
    *(case(integer_pow_p, numbers([3], dtype, 0.5, 2), y=y) for dtype in NARROW for y in (2, -1)),
    case(integer_pow_p, SPECIAL, y=-1, differentiable=False),
    case(integer_pow_p, SPECIAL, y=3, differentiable=False),
    *(case(copy_p, numbers([3], dtype)) for dtype in (np.bool_, np.int32, np.uint8, np.complex64)),
    *(case(copy_p, numbers(shape), linear=(0,)) for shape in ([], [2, 3], [0])),
]
