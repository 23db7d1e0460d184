"""Cases of `purax.primitives.special.special`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.special.special import (
    bessel_i0e_p,
    bessel_i1e_p,
    digamma_p,
    erf_inv_p,
    erf_p,
    erfc_p,
    igamma_grad_a_p,
    igamma_p,
    igammac_p,
    lgamma_p,
    polygamma_p,
    random_gamma_grad_p,
    regularized_incomplete_beta_derivative_p,
    regularized_incomplete_beta_p,
    zeta_derivative_p,
    zeta_p,
)
from purax.testing.case import case, numbers

FLOATS = (np.float64, np.float16, ml_dtypes.bfloat16)
SPECIAL = np.array([0.0, -0.0, 0.5, 1, -1, 20, -20, np.inf, -np.inf, np.nan], np.float32)
DOMAINS = {
    erf_p: (-3, 3),
    erfc_p: (-2, 4),
    erf_inv_p: (-0.95, 0.95),
    lgamma_p: (0.2, 8),
    digamma_p: (0.2, 8),
    bessel_i0e_p: (0.1, 12),
    bessel_i1e_p: (0.1, 12),
}
GAMMA = (igamma_p, igammac_p, igamma_grad_a_p, random_gamma_grad_p)
BETA = regularized_incomplete_beta_p
BETA_DERIVATIVE = regularized_incomplete_beta_derivative_p
ROWS, COLUMNS = (np.ascontiguousarray(x) for x in np.meshgrid(SPECIAL, SPECIAL))


def grid(*rows) -> list[np.ndarray]:
    """All combinations, as columns of float32."""
    return [np.ascontiguousarray(x.ravel(), np.float32) for x in np.meshgrid(*rows)]


CASES = [
    *(
        case(p, numbers(shape, np.float32, *domain))
        for p, domain in DOMAINS.items()
        for shape in ([], [2, 4], [0])
    ),
    *(case(p, numbers([9], dtype, *domain)) for p, domain in DOMAINS.items() for dtype in FLOATS),
    *(case(p, SPECIAL, differentiable=False) for p in DOMAINS),
    *(
        case(p, numbers([9], np.float64, -5.9, -5.1))
        for p in (lgamma_p, digamma_p, bessel_i0e_p, bessel_i1e_p)
    ),
    *(
        case(p, numbers([9], np.float32, 20, 500), differentiable=False)
        for p in (bessel_i0e_p, bessel_i1e_p, lgamma_p)
    ),
    case(erf_inv_p, np.array([0.999, -0.9999, 1e-6, -1e-20]), differentiable=False),
    case(
        polygamma_p,
        np.repeat(np.arange(5.0), 4),
        np.tile(numbers([4], np.float64, 0.3, 9), 5),
        differentiable=False,
    ),
    case(polygamma_p, *grid([1, 2, 3], [0.3, 2.5, 11, -0.4, -7.3]), differentiable=False),
    case(polygamma_p, ROWS, COLUMNS, differentiable=False),
    *(
        case(
            zeta_p,
            numbers([6], dtype, 1.2, 6, seed=1),
            numbers([6], dtype, 0.3, 9, seed=2),
            differentiable=False,
        )
        for dtype in (np.float32, *FLOATS)
    ),
    case(zeta_p, *(numbers([4], np.float32, 1.5, 6, seed=i) for i in range(2))),
    case(zeta_derivative_p, *(numbers([2], np.float64, 1.5, 6, seed=i) for i in range(2)), orders=(1, 0)),
    case(
        zeta_derivative_p,
        *(numbers([3], np.float32, 1.5, 6, seed=i) for i in range(2)),
        orders=(2, 1),
        differentiable=False,
    ),
    case(zeta_p, *grid([2, 3, 7], [-0.5, -3.2, -16.7]), differentiable=False),
    case(zeta_p, ROWS, COLUMNS, differentiable=False),
    *(
        case(p, numbers(a, np.float32, 0.3, 6, seed=1), numbers(x, np.float32, 0.3, 6, seed=2))
        for p in GAMMA
        for a, x in (([2, 2], [2, 2]), ([], [3]), ([0], [0]))
    ),
    *(
        case(
            p, numbers([4], dtype, 0.3, 6, seed=1), numbers([4], dtype, 0.3, 6, seed=2), differentiable=False
        )
        for p, dtype in ((igamma_p, np.float64), (igamma_p, np.float16), (igammac_p, ml_dtypes.bfloat16))
    ),
    *(
        case(p, *grid([1e-3, 0.1, 30, 190, 210, 5e3], [1e-3, 1, 29, 200, 5.1e3]), differentiable=False)
        for p in GAMMA
    ),
    *(case(p, np.array([250.0, 300]), np.array([250.0, 320])) for p in GAMMA),
    *(case(p, ROWS, COLUMNS, differentiable=False) for p in GAMMA),
    case(
        igamma_grad_a_p,
        numbers([2], np.float64, 0.5, 3, seed=1),
        numbers([2], np.float64, 0.5, 3, seed=2),
        order=2,
    ),
    *(
        case(
            BETA,
            numbers(a, np.float32, 0.3, 6, seed=1),
            numbers(b, np.float32, 0.3, 6, seed=2),
            numbers(x, np.float32, 0.1, 0.9, seed=3),
        )
        for a, b, x in (([], [], []), ([3], [], [3]), ([0], [0], [0]))
    ),
    case(BETA, *grid([0.01, 3, 300], [0.02, 5, 1e4], [1e-4, 0.03, 0.5, 0.999]), differentiable=False),
    case(
        BETA,
        *grid([0, 1, -1, np.inf, np.nan], [0, 1, -1, np.inf], [0, 0.5, 1, 1.1, np.nan]),
        differentiable=False,
    ),
    *(
        case(BETA, *(numbers([3], dtype, 0.2, 0.9, seed=i) for i in range(3)), differentiable=False)
        for dtype in FLOATS
    ),
    case(BETA_DERIVATIVE, *(numbers([2], np.float64, 0.2, 0.9, seed=i) for i in range(3)), orders=(0, 1, 0)),
    case(
        BETA_DERIVATIVE,
        *(numbers([2], seed=i, low=0.2, high=0.9) for i in range(3)),
        orders=(1, 0, 1),
        differentiable=False,
    ),
]
