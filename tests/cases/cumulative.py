"""Cases of `purax.primitives.reductions.cumulative`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.reductions.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from purax.testing.case import case, numbers

nan, inf = np.nan, np.inf
ALL = (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p)
special = np.array([[1, -inf, nan, 0], [-inf, -inf, 2, inf], [3, inf, -inf, -0.0]], np.float32)


def linear(primitive):
    return (0,) if primitive is cumsum_p else ()


CASES = [
    *(
        case(p, numbers(shape, dtype), axis=axis, reverse=reverse, linear=linear(p))
        for p in ALL
        for shape, dtype, axis, reverse in (
            ([5], np.float32, 0, False),
            ([6], np.float32, 0, True),
            ([3, 4], np.float32, 1, False),
            ([3, 4], np.float32, 0, True),
            ([2, 5, 3], np.float32, 1, False),
            ([2, 7], np.float64, 1, True),
            ([4, 2], np.complex64, 0, False),
            ([2, 3], np.complex64, 1, True),
            ([1, 3], np.float32, 0, False),
            ([0, 3], np.float32, 0, False),
            ([3, 0], np.float32, 0, True),
        )
    ),
    # long enough for blocks, of sizes that they do not divide
    *(
        case(
            p,
            numbers(shape, np.float32, 0.9, 1.1),
            axis=axis,
            reverse=reverse,
            differentiable=False,
            tolerance=2e-5,
        )
        for p in ALL
        for shape, axis, reverse in (
            ([400], 0, False),
            ([331], 0, True),
            ([3, 211], 1, False),
            ([211, 3], 0, True),
        )
    ),
    *(
        case(p, numbers([2, 70], dtype, 0, 9), axis=1, reverse=reverse)
        for p in ALL[:4]
        for dtype in (np.int8, np.uint8, np.int32, np.int64)
        for reverse in (False, True)
    ),
    *(
        case(
            p,
            (numbers([5, 2], np.float64) * 8).round().astype(dtype),
            axis=0,
            reverse=False,
            differentiable=False,
        )
        for p in ALL[:4]
        for dtype in (ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e5m2)
    ),
    case(cumlogsumexp_p, numbers([5, 2], ml_dtypes.bfloat16), axis=0, reverse=False),
    case(cumsum_p, np.ones([900], ml_dtypes.bfloat16), axis=0, reverse=False, differentiable=False),
    *(
        case(p, special, axis=axis, reverse=reverse, differentiable=False)
        for p in ALL
        for axis in (0, 1)
        for reverse in (False, True)
    ),
    # a product with zeros has derivatives all the same
    case(cumprod_p, np.array([2, 0, 3, 0, 5, 7], np.float32), axis=0, reverse=False),
    case(cumprod_p, np.array([[2, 0, 3], [1, 4, 0]], np.float32), axis=1, reverse=True),
]
