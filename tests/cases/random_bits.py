"""Cases for keys and random bits."""

from __future__ import annotations

from purax.primitives.random.random_bits import random_bits_p, random_fold_in_p, random_split_p
from purax.testing.case import case
from tests.cases.threefry import words

_SIZES = (((), (7,)), ((), ()), ((), (200,)), ((3,), (2, 3)), ((), (2, 3)), ((2, 1), (3,)), ((), (0, 2)))

CASES = [
    *(case(random_split_p, words(*keys, 2), shape=shape, partitionable=partitionable, differentiable=False)
      for keys in ((), (3,), (2, 2))
      for shape in ((2,), (5,), (2, 3), (), (0,), (70,))
      for partitionable in (False, True)),
    *(case(random_fold_in_p, words(*keys, 2), words(*keys, seed=1), differentiable=False)
      for keys in ((), (3,), (2, 2), (0,))),
    *(case(random_bits_p, words(*keys, 2), bit_width=bits, shape=shape, partitionable=partitionable,
           inline=shape != (2, 3), differentiable=False)
      for keys, shape in _SIZES
      for bits in (8, 16, 32, 64)
      for partitionable in (False, True)),
]  # fmt: skip
