"""The generators that keys are for: how a seed becomes a key, keys become new keys, and a key becomes bits.

An implementation works on keys as arrays of words and is written in operations, so it runs under every
transformation. The default is Threefry, whose streams depend on `config.threefry_partitionable`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.config import config
from purax.core.avals import aval_of
from purax.ops.broadcasting import full
from purax.ops.conversion import convert_element_type
from purax.ops.logic import shift_right_logical
from purax.ops.random_bits import KeyDtype, key_dtype, random_bits, random_fold_in, random_split
from purax.ops.reshaping import concatenate, reshape


class Implementation:
    """A generator of random bits.

    Attributes:
        name: as in `PRNGKey(seed, impl=name)`.
        dtype: of its typed keys.
        words: how many words a key has.
    """

    name: str
    dtype: KeyDtype
    words: int

    def seed(self, seed: Any) -> Any:
        """A key (words,) from an integer scalar."""
        raise NotImplementedError

    def split(self, key: Any, shape: tuple[int, ...]) -> Any:
        """Keys (*shape, words) from a key."""
        raise NotImplementedError

    def fold_in(self, key: Any, data: Any) -> Any:
        """A key from a key and a uint32 scalar."""
        raise NotImplementedError

    def bits(self, key: Any, bit_width: int, shape: tuple[int, ...]) -> Any:
        """Unsigned integers of `bit_width` bits."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class Threefry(Implementation):
    """Threefry-2x32-20; see `purax.ops.threefry`."""

    name = "threefry2x32"
    dtype = key_dtype(name)
    words = 2

    def seed(self, seed):
        aval = aval_of(seed)
        low = reshape(convert_element_type(seed, np.uint32), (1,))
        if aval.dtype.itemsize < 8:
            return concatenate((full((1,), 0, np.uint32), low), 0)
        unsigned = convert_element_type(seed, np.uint64)
        high = convert_element_type(shift_right_logical(unsigned, np.uint64(32)), np.uint32)
        return concatenate((reshape(high, (1,)), low), 0)

    def split(self, key, shape):
        return random_split(key, shape, config.threefry_partitionable)

    def fold_in(self, key, data):
        return random_fold_in(key, data)

    def bits(self, key, bit_width, shape):
        return random_bits(key, bit_width, shape, config.threefry_partitionable)


threefry = Threefry()
IMPLEMENTATIONS: dict[str, Implementation] = {threefry.name: threefry}
