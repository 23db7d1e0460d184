"""Cases of `purax.ops.special_hypergeometric`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.ops.special_hypergeometric import hyp1f1_p, hyp2f1_p
from purax.testing.case import case, numbers

FLOATS = (np.float64, np.float16, ml_dtypes.bfloat16)


def grid(*rows) -> list[np.ndarray]:
    """All combinations, as columns."""
    return [np.ascontiguousarray(x.ravel(), np.float64) for x in np.meshgrid(*rows)]


CASES = [
    *(
        case(
            hyp1f1_p,
            numbers(a, np.float32, 0.5, 3, seed=1),
            numbers(b, np.float32, 0.5, 3, seed=2),
            numbers(x, np.float32, -3, 3, seed=3),
        )
        for a, b, x in (([3], [3], [3]), ([], [], []), ([], [2], [2]), ([0], [0], [0]))
    ),
    *(
        case(hyp1f1_p, *(numbers([3], dtype, 0.5, 2, seed=i) for i in range(3)), differentiable=False)
        for dtype in FLOATS
    ),
    case(hyp1f1_p, *grid([0.3, 2, -2], [0.7, 3, -1.5], [0.1, 20, -20, 120, -400]), differentiable=False),
    case(hyp1f1_p, *grid([0, 1, np.inf, np.nan], [0, 1, -2, np.inf], [0, 1, -np.inf, np.nan]), differentiable=False),
    case(hyp1f1_p, *(numbers([2], np.float64, 0.5, 2, seed=i) for i in range(3)), orders=(1, 0, 0)),
    *(
        case(
            hyp2f1_p,
            numbers(a, np.float32, 0.5, 3, seed=1),
            numbers(b, np.float32, 0.5, 3, seed=2),
            numbers(b, np.float32, 0.5, 3, seed=3),
            numbers(x, np.float32, -0.9, 0.9, seed=4),
        )
        for a, b, x in (([2], [2], [2]), ([], [], []), ([], [2], [2]), ([0], [0], [0]))
    ),
    *(
        case(hyp2f1_p, *(numbers([3], dtype, 0.5, 0.9, seed=i) for i in range(4)), differentiable=False)
        for dtype in FLOATS
    ),
    case(
        hyp2f1_p,
        *grid([0.3, 2, -2], [0.7, 3], [1.3, 4, -1.5], [0.1, -0.4, -20, 0.6, 0.99]),
        differentiable=False,
    ),
    case(hyp2f1_p, *grid([0, 1, -2, np.nan], [1.5], [0, 1, 3.5, np.inf], [0, 1, 2, -np.inf]), differentiable=False),
    case(hyp2f1_p, np.array([1.2]), np.array([0.7]), np.array([1.9]), np.array([0.8]), orders=(0, 0, 1, 0),
         differentiable=False),
]  # fmt: skip
