"""Cases of `purax.primitives.random.rng_uniform`: of no elements, or an interval of one integer, where nothing is
left to chance."""

from __future__ import annotations

import numpy as np

from purax.primitives.random.rng_uniform import rng_uniform_p
from purax.testing.case import case

CASES = [
    case(rng_uniform_p, np.float32(0), np.float32(1), shape=(0, 2), differentiable=False),
    case(rng_uniform_p, np.int32(4), np.int32(5), shape=(2, 3)),
    case(rng_uniform_p, np.int8(4), np.int8(5), shape=()),
]
