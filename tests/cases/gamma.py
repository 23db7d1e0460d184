"""Cases of `purax.primitives.special.gamma`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.special.gamma import (
    beta_p,
    binomial_p,
    complex_lgamma_p,
    gamma_p,
    log_beta_p,
    pochhammer_p,
)
from purax.testing.case import case, numbers

SPECIAL = np.array([0.0, -0.0, 0.5, 1, 2, -1, -3, -0.5, 20, 200, np.inf, -np.inf, np.nan])
ROWS, COLUMNS = (np.ascontiguousarray(x.ravel()) for x in np.meshgrid(SPECIAL, SPECIAL))
PAIRS = (log_beta_p, beta_p, binomial_p, pochhammer_p)
COMPLEX_POINTS = np.array(
    [0.3, 1.5 + 2j, -0.6 + 1e-3j, -7.3 - 4j, 30 - 20j, 0.1 + 300j, -50.5 + 0.5j, 12 + 0.1j]
)

CASES = [
    *(case(gamma_p, numbers(shape, np.float32, 0.2, 8)) for shape in ([], [2, 4], [0])),
    case(gamma_p, numbers([6], ml_dtypes.bfloat16, 0.3, 7)),
    case(gamma_p, numbers([6], np.float64, -5.9, -5.1)),
    case(gamma_p, np.append(SPECIAL, [1e-300, 1e-9, 30, 100, 171, -40.3, -170.5]), differentiable=False),
    case(gamma_p, numbers([3], np.float64, 0.4, 6), orders=(1,)),
    case(complex_lgamma_p, numbers([3], np.complex64, 0.3, 4)),
    case(complex_lgamma_p, COMPLEX_POINTS),
    case(
        complex_lgamma_p, np.array([0, -2, complex(np.nan, 1), np.inf], np.complex128), differentiable=False
    ),
    *(
        case(p, numbers([], np.float32, 5, 9, seed=1), numbers([2, 2], np.float32, 0.5, 4, seed=2))
        for p in PAIRS
    ),
    *(case(p, ROWS, COLUMNS, differentiable=False) for p in PAIRS),
    *(
        case(p, np.array([1e4, 1e6, 50.0, 30.0]), np.array([0.5, 3.0, 40.0, 1e-3]), differentiable=False)
        for p in PAIRS
    ),
    *(
        case(p, np.array([-4.3, 2.4, -6.6]), np.array([2.2, -5.3, -1.1]))
        for p in (log_beta_p, beta_p, pochhammer_p)
    ),
    case(binomial_p, np.array([10.0, 52, 300, 3]), np.array([5.0, 5, 100, 4]), differentiable=False),
    case(beta_p, np.array([1.5, 2.0]), np.array([2.5, 0.7]), orders=(0, 1)),
]
