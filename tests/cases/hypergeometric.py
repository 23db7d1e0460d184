"""Cases of `purax.primitives.special.hypergeometric`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.special.hypergeometric import hyp1f1_p, hyp2f1_p
from purax.testing.case import case, numbers


def grid(*rows) -> list[np.ndarray]:
    """All combinations, as columns."""
    return [np.ascontiguousarray(x.ravel(), np.float64) for x in np.meshgrid(*rows)]


CASES = [
    case(
        hyp1f1_p,
        numbers([], np.float32, 0.5, 3, seed=1),
        numbers([3], np.float32, 0.5, 3, seed=2),
        numbers([3], np.float32, -3, 3, seed=3),
    ),
    case(
        hyp1f1_p,
        *grid([0.3, 2, -2], [0.7, 3, -1.5], [0.1, 20, -20, 120, -400]),
        differentiable=False,
    ),
    case(hyp1f1_p, *grid([0, 1, np.inf, np.nan], [0, 1, -2, np.inf], [0, 1, -np.inf]), differentiable=False),
    case(hyp1f1_p, *(numbers([2], ml_dtypes.bfloat16, 0.5, 2, seed=i) for i in range(3)), orders=(1, 0, 0)),
    case(
        hyp2f1_p,
        numbers([2], np.float32, 0.5, 3, seed=1),
        numbers([2], np.float32, 0.5, 3, seed=2),
        numbers([], np.float32, 0.5, 3, seed=3),
        np.array([-0.6, 0.8], np.float32),
    ),
    case(
        hyp2f1_p,
        *grid([0.3, 2, -2], [0.7, 3], [1.3, 4, -1.5], [0.1, -0.4, -20, 0.6, 0.99]),
        differentiable=False,
    ),
    case(
        hyp2f1_p,
        *grid([0, 1, -2, np.nan], [1.5], [0, 1, 3.5, np.inf], [0, 1, 2, -np.inf]),
        differentiable=False,
    ),
    case(hyp2f1_p, *map(np.asarray, (1.2, 0.7, 1.9, 0.8)), orders=(0, 0, 1, 0), differentiable=False),
]
