"""Cases for the cipher of random bits."""

from __future__ import annotations

import numpy as np

from purax.primitives.random.threefry import threefry2x32_p
from purax.testing.case import case


def words(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(0, 1 << 32, shape, dtype=np.uint32)


CASES = [
    *(case(threefry2x32_p, *(words(*shape, seed=i) for i in range(4)), differentiable=False)
      for shape in ((), (5,), (2, 3), (0,), (200,))),
    case(threefry2x32_p, words(), words(seed=1), words(3, 2), words(3, 2, seed=1), differentiable=False),
]  # fmt: skip
