"""Cases of `purax.primitives.special.errors`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.special.errors import (
    dawson_p,
    erfcx_p,
    faddeeva_p,
    fresnel_c_p,
    fresnel_s_p,
    log_ndtr_p,
    ndtr_p,
    normal_quantile_p,
    owens_t_p,
)
from purax.testing.case import case, numbers

SPECIAL = np.array([0.0, -0.0, 0.5, 1, -1, 20, -20, 1e10, np.inf, -np.inf, np.nan])
ROWS, COLUMNS = (np.ascontiguousarray(x.ravel()) for x in np.meshgrid(SPECIAL, SPECIAL))
UNARY = (erfcx_p, dawson_p, fresnel_s_p, fresnel_c_p, normal_quantile_p, ndtr_p, log_ndtr_p)
COMPLEX_POINTS = np.array(
    [0.3, 1.5 + 2j, -0.6 + 1e-3j, -0.9 - 1j, 3.8 + 0.1j, 0.1 + 9j, -50.5 + 0.5j, 12 + 30j, 2 - 1j]
)

CASES = [
    *(case(p, numbers([2, 4], np.float32, 0.1, 0.9)) for p in UNARY),
    *(case(erfcx_p, numbers(shape, ml_dtypes.bfloat16, 0.1, 0.9)) for shape in ([], [5], [0])),
    *(case(p, np.append(SPECIAL, [1e-9, 15, 30]), differentiable=False) for p in UNARY),
    *(case(p, np.array([-2.2, -1.1, 1.3, 1.8, 2.6, 4.7, 7.3])) for p in UNARY[:4]),
    *(case(p, numbers([3], np.float64, 0.1, 0.9), orders=(1,)) for p in (erfcx_p, fresnel_s_p)),
    case(normal_quantile_p, np.array([1e-300, 1e-20, 1e-4, 0.07, 0.93, 1 - 1e-12]), differentiable=False),
    case(normal_quantile_p, np.array([1e-2, 0.04, 0.97])),
    *(case(p, np.array([-37.0, -9, -1, 6, 9]), differentiable=False) for p in (ndtr_p, log_ndtr_p)),
    case(log_ndtr_p, np.array([-40.0, -3, -1.01, -0.99, 3])),
    case(faddeeva_p, COMPLEX_POINTS),
    case(faddeeva_p, numbers([3], np.complex64)),
    case(faddeeva_p, np.array([1e7 + 1j, 1e-9 + 1e9j, np.inf, complex(np.nan, 1)]), differentiable=False),
    *(
        case(owens_t_p, numbers(h, np.float32, -2, 2, seed=1), numbers(a, np.float32, -2, 2, seed=2))
        for h, a in (([2, 2], [2, 2]), ([], [3]))
    ),
    case(owens_t_p, ROWS, COLUMNS, differentiable=False),
]
