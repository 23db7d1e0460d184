"""Cases of `purax.primitives.elementwise.elementwise`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.elementwise.elementwise import add_p, mul_p, neg_p
from purax.testing.case import case, numbers

SHAPES: tuple[tuple[list[int], list[int]], ...] = (
    ([], []),
    ([3], [3]),
    ([2, 3], [2, 3]),
    ([], [4]),
    ([2, 2], []),
    ([0, 3], [0, 3]),
)
DTYPES = (np.int8, np.int32, np.uint8, np.uint64, np.float64, np.float16, ml_dtypes.bfloat16)
SPECIAL = np.array([0.0, -0.0, 1, np.inf, -np.inf, np.nan], np.float32)

CASES = [
    *(case(add_p, numbers(a, seed=1), numbers(b, seed=2), linear=(0, 1)) for a, b in SHAPES),
    case(add_p, np.zeros(3, np.float32), numbers([3]), linear=(1,)),
    *(case(mul_p, numbers(a, seed=1), numbers(b, seed=2), linear=(0,)) for a, b in SHAPES),
    *(case(mul_p, numbers(a, seed=1), numbers(b, seed=2), linear=(1,)) for a, b in SHAPES),
    *(case(neg_p, numbers(shape), linear=(0,)) for shape in ([], [3], [2, 3], [0])),
    *(
        case(primitive, numbers([5], dtype, seed=1), numbers([5], dtype, seed=2))
        for primitive in (add_p, mul_p)
        for dtype in DTYPES
    ),
    *(case(neg_p, numbers([5], dtype)) for dtype in DTYPES),
    case(add_p, numbers([3], np.complex64, seed=1), numbers([3], np.complex64, seed=2), linear=(0, 1)),
    case(mul_p, numbers([3], np.complex64, seed=1), numbers([3], np.complex64, seed=2), linear=(0,)),
    case(mul_p, numbers([], np.complex128, seed=1), numbers([3], np.complex128, seed=2), linear=(1,)),
    case(neg_p, numbers([3], np.complex64), linear=(0,)),
    case(add_p, np.array([127, -128], np.int8), np.array([1, -1], np.int8)),
    case(mul_p, np.array([2**31 - 1, -(2**31)], np.int32), np.array([2, -1], np.int32)),
    case(
        add_p,
        SPECIAL[:, None] + np.zeros(6, np.float32),
        SPECIAL + np.zeros((6, 1), np.float32),
        differentiable=False,
    ),
    case(
        mul_p,
        SPECIAL[:, None] + np.zeros(6, np.float32),
        SPECIAL + np.zeros((6, 1), np.float32),
        differentiable=False,
    ),
    case(neg_p, SPECIAL, differentiable=False),
]
