"""Cases of `purax.primitives.elementwise.transcendental`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.elementwise.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    log_p,
    logistic_p,
    pow_p,
    sin_p,
    sinh_p,
    tan_p,
    tanh_p,
)
from purax.testing.case import case, numbers

FLOATS = (np.float64, np.float16, ml_dtypes.bfloat16)
SPECIAL = np.array([0.0, -0.0, 1, -1, 20, -20, 1e4, np.inf, -np.inf, np.nan], np.float32)
ROWS, COLUMNS = (np.ascontiguousarray(x) for x in np.meshgrid(SPECIAL, SPECIAL))

# The domain in which each function is tried.
DOMAINS = {
    **dict.fromkeys(
        (exp_p, exp2_p, expm1_p, logistic_p, sin_p, cos_p, atan_p, sinh_p, cosh_p, tanh_p, asinh_p), (-3, 3)
    ),
    **dict.fromkeys((asin_p, acos_p, atanh_p), (-0.9, 0.9)),
    log_p: (0.1, 4),
    log1p_p: (-0.8, 4),
    tan_p: (-1.4, 1.4),
    acosh_p: (1.2, 5),
}

CASES = [
    *(
        case(p, numbers(shape, np.float32, *domain))
        for p, domain in DOMAINS.items()
        for shape in ([], [2, 5], [0])
    ),
    *(case(p, numbers([9], dtype, *domain)) for p, domain in DOMAINS.items() for dtype in FLOATS),
    *(
        case(p, numbers([9], dtype, *domain))
        for p, domain in DOMAINS.items()
        for dtype in (np.complex64, np.complex128)
    ),
    *(case(p, SPECIAL, differentiable=False) for p in DOMAINS),
    *(
        case(p, numbers([30], np.float32, -1e-3, 1e-3))
        for p in (expm1_p, log1p_p, sin_p, sinh_p, tanh_p, asinh_p)
    ),
    *(case(p, numbers([9], np.complex64, -1e-3, 1e-3)) for p in (expm1_p, log1p_p, sin_p, sinh_p, tanh_p)),
    *(case(p, numbers([30], np.float32, -1e5, 1e5), differentiable=False) for p in (sin_p, cos_p)),
    *(case(p, numbers([30], np.float32, 20, 88)) for p in (sinh_p, cosh_p)),
    *(
        case(p, numbers(a, np.float32, 0.2, 3, seed=1), numbers(b, np.float32, -2, 2, seed=2))
        for p in (pow_p, atan2_p)
        for a, b in (([], []), ([2, 3], [2, 3]), ([], [4]), ([4], []), ([0], [0]))
    ),
    *(
        case(p, numbers([9], dtype, 0.2, 3, seed=1), numbers([9], dtype, -2, 2, seed=2))
        for p in (pow_p, atan2_p)
        for dtype in FLOATS
    ),
    *(
        case(p, numbers([9], dtype, 0.2, 3, seed=1), numbers([9], dtype, 0.2, 2, seed=2))
        for p in (pow_p, atan2_p)
        for dtype in (np.complex64, np.complex128)
    ),
    *(case(p, ROWS, COLUMNS, differentiable=False) for p in (pow_p, atan2_p)),
    case(pow_p, numbers([2, 3]), numbers([2, 3], np.int32)),
    case(pow_p, numbers([3], np.float64), np.int64(-3)),
    case(pow_p, numbers([3], np.complex64), numbers([3], np.uint8, 0, 3)),
]
