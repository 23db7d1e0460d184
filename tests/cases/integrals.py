"""Cases of `purax.primitives.special.integrals`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.special.integrals import (
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
ORDERS, POINTS = (
    np.ascontiguousarray(x.ravel()) for x in np.meshgrid([0.0, 1, 2, 5, 30, 2.5, -1, np.nan], SPECIAL)
)


CASES = [
    *(case(p, numbers([2, 4], np.float32, 0.5, 3)) for p in UNARY),
    *(case(exp1_p, numbers(shape, ml_dtypes.bfloat16, 0.5, 3)) for shape in ([], [5], [0])),
    *(case(p, np.append(SPECIAL, [1e-8, 45, 130]), differentiable=False) for p in UNARY),
    *(case(p, np.array([0.02, 1.2, 5.5, 11.0])) for p in UNARY),
    *(case(p, np.array([-0.2, -1.2, -5.5])) for p in SIGNED),
    *(case(p, numbers([3], np.float64, 0.6, 3), orders=(1,)) for p in (expi_p, spence_p)),
    case(spence_p, np.array([1.0, 1 + 1e-6, 0.05, 0.9])),
    case(exprel_p, np.array([0.0, 1e-9, -1e-5])),
    case(sine_integral_p, np.array([0.0, 1e-9, -1e-5])),
    case(expn_p, ORDERS, POINTS, differentiable=False),
    case(expn_p, np.float32(2), numbers([2, 2], np.float32, 0.2, 4), differentiable=False),
    case(
        expn_p,
        np.arange(4.0),
        np.array([0.3, 0.9, 2.0, 7.0]),
        orders=(0, 2),
        differentiable=False,
    ),
]
