"""Cases of `purax.ops.special_integrals`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.ops.special_integrals import (
    cosine_integral_p,
    exp1_p,
    expi_p,
    expn_p,
    exprel_p,
    sine_integral_p,
    spence_p,
)
from purax.testing.case import case, numbers

SPECIAL = np.array([0.0, -0.0, 0.5, 1, 2, -1, -3, 4, 40, -60, 600, np.inf, -np.inf, np.nan])
UNARY = (expi_p, exp1_p, sine_integral_p, cosine_integral_p, spence_p, exprel_p)
SIGNED = (expi_p, sine_integral_p, cosine_integral_p, exprel_p)
FLOATS = (np.float64, np.float16, ml_dtypes.bfloat16)
ORDERS, POINTS = (
    np.ascontiguousarray(x.ravel()) for x in np.meshgrid([0.0, 1, 2, 5, 30, 2.5, -1, np.nan], SPECIAL)
)


CASES = [
    *(case(p, numbers(shape, np.float32, 0.5, 3)) for p in UNARY for shape in ([], [2, 4], [0])),
    *(case(p, numbers([5], dtype, 0.5, 3)) for p in UNARY for dtype in FLOATS),
    *(case(p, SPECIAL, differentiable=False) for p in UNARY),
    *(case(p, np.array([0.02, 1.2, 5.5, 11.0])) for p in UNARY),
    *(case(p, np.array([-0.2, -1.2, -5.5])) for p in SIGNED),
    *(case(p, np.array([1e-8, 45.0, 130.0]), differentiable=False) for p in UNARY),
    *(case(p, numbers([3], np.float64, 0.6, 3), orders=(1,)) for p in UNARY),
    case(spence_p, np.array([1.0, 1 + 1e-6, 0.05, 0.9])),
    case(exprel_p, np.array([0.0, 1e-9, -1e-5])),
    case(sine_integral_p, np.array([0.0, 1e-9, -1e-5])),
    case(expn_p, ORDERS, POINTS, differentiable=False),
    *(
        case(expn_p, numbers(n, dtype, 0, 5, seed=1).astype(np.int32).astype(dtype), numbers(x, dtype, 0.2, 4, seed=2),
             differentiable=False)
        for dtype in (np.float32, *FLOATS)
        for n, x in (([3], [3]), ([], [2, 2]), ([0], [0]))
    ),
    *(
        case(expn_p, np.arange(4.0), np.array([0.3, 0.9, 2.0, 7.0]), orders=(0, order), differentiable=False)
        for order in (1, 2)
    ),
]  # fmt: skip
