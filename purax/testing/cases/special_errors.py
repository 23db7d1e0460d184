"""Cases of `purax.ops.special_errors`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.ops.special_errors import (
    dawson_p,
    erfcx_p,
    faddeeva_p,
    fresnel_c_p,
    fresnel_s_p,
    normal_quantile_p,
    owens_t_p,
)
from purax.testing.case import case, numbers

SPECIAL = np.array([0.0, -0.0, 0.5, 1, -1, 20, -20, 1e10, np.inf, -np.inf, np.nan])
ROWS, COLUMNS = (np.ascontiguousarray(x.ravel()) for x in np.meshgrid(SPECIAL, SPECIAL))
UNARY = (erfcx_p, dawson_p, fresnel_s_p, fresnel_c_p, normal_quantile_p)
FLOATS = (np.float64, np.float16, ml_dtypes.bfloat16)
COMPLEX_POINTS = np.array(
    [0.3, 1.5 + 2j, -0.6 + 1e-3j, -0.9 - 1j, 3.8 + 0.1j, 0.1 + 9j, -50.5 + 0.5j, 12 + 30j, 2 - 1j]
)

CASES = [
    *(case(p, numbers(shape, np.float32, 0.1, 0.9)) for p in UNARY for shape in ([], [2, 4], [0])),
    *(case(p, numbers([5], dtype, 0.1, 0.9)) for p in UNARY for dtype in FLOATS),
    *(case(p, SPECIAL, differentiable=False) for p in UNARY),
    *(case(p, np.array([-2.2, -1.1, 1.3, 1.8, 2.6, 4.7, 7.3])) for p in UNARY[:4]),
    *(case(p, np.array([1e-9, 15.0, 3e3]), differentiable=False) for p in UNARY[:2]),
    *(case(p, np.array([1e-9, 15.0, 30.0]), differentiable=False) for p in UNARY[2:4]),
    *(case(p, numbers([3], np.float64, 0.1, 0.9), orders=(1,)) for p in UNARY),
    case(normal_quantile_p, np.array([1e-300, 1e-20, 1e-4, 0.07, 0.93, 1 - 1e-12]), differentiable=False),
    case(normal_quantile_p, np.array([1e-2, 0.04, 0.97])),
    case(faddeeva_p, COMPLEX_POINTS),
    *(case(faddeeva_p, numbers(shape, np.complex64)) for shape in ([], [3], [0])),
    case(faddeeva_p, np.array([1e7 + 1j, 1e-9 + 1e9j, np.inf, complex(np.nan, 1)]), differentiable=False),
    *(
        case(owens_t_p, numbers(h, np.float32, -2, 2, seed=1), numbers(a, np.float32, -2, 2, seed=2))
        for h, a in (([2, 2], [2, 2]), ([], [3]), ([0], [0]))
    ),
    *(
        case(
            owens_t_p,
            numbers([3], dtype, 0, 2, seed=1),
            numbers([3], dtype, 0, 2, seed=2),
            differentiable=False,
        )
        for dtype in FLOATS
    ),
    case(owens_t_p, ROWS, COLUMNS, differentiable=False),
]
