"""Cases for XLA's generator of random bits."""

from __future__ import annotations

import numpy as np

from purax.primitives.random.rng_bit_generator import RandomAlgorithm, rng_bit_generator_p
from purax.testing.case import case

KEYS: list[np.ndarray] = [
    np.array([1, 2, 0xFFFFFFFF, 4], np.uint32),
    np.array([5, 0xFFFFFFFFFFFFFFFF], np.uint64),
]
SHAPES = [(7,), (), (2, 3), (3, 5), (5, 1, 3), (3, 4, 2), (0,), (8,)]
CASES = [
    case(rng_bit_generator_p, key, shape=shape, dtype=np.dtype(dtype), algorithm=algorithm, differentiable=False)
    for key, dtypes in zip(KEYS, (("uint8", "uint16", "uint32", "uint64"), ("uint32",)), strict=True)
    for dtype in dtypes
    for shape in SHAPES
    for algorithm in RandomAlgorithm
] + [
    case(rng_bit_generator_p, np.arange(24, dtype=np.uint32).reshape(2, 3, 4), shape=shape, dtype=np.dtype("uint32"),
         algorithm=RandomAlgorithm.RNG_PHILOX, differentiable=False)
    for shape in ((), (5,), (2, 0))
] + [
    case(rng_bit_generator_p, np.zeros((0, 4), np.uint32), shape=(3,), dtype=np.dtype("uint32"),
         algorithm=RandomAlgorithm.RNG_PHILOX, differentiable=False)
]  # fmt: skip
