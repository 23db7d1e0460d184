"""The generators that keys are for: how a seed becomes a key, keys become new keys, and a key becomes bits.

An implementation works on keys as arrays of words and is written in operations, so it runs under every
transformation. The default is Threefry, whose streams depend on `config.threefry_partitionable`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax.config import config
from purax.core.avals import aval_of
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import shift_right_logical, xor
from purax.primitives.random.random_bits import (
    random_bits,
    random_bits_p,
    random_fold_in,
    random_split,
    random_split_p,
)
from purax.primitives.random.rng_bit_generator import rng_bit_generator
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, move_axis
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.random.typed_keys import KeyDtype, key_dtype


class Implementation:
    """A generator of random bits.

    Attributes:
        name: as in `PRNGKey(seed, impl=name)`.
        dtype: of its typed keys.
        words: how many words a key has.
        runs_on_host: whether `host_split` and `host_bits` do on NumPy arrays what `split` and `bits` do.
    """

    name: str
    dtype: KeyDtype
    words: int
    runs_on_host = False

    def seed(self, seed: Any) -> Any:
        """A key (words,) from an integer scalar."""
        raise NotImplementedError

    def split(self, key: Any, shape: tuple[int, ...]) -> Any:
        """Keys (*shape, words) from a key."""
        raise NotImplementedError

    def fold_in(self, key: Any, data: Any) -> Any:
        """A key from a key and a uint32 scalar."""
        raise NotImplementedError

    def bits(self, key: Any, bit_width: int, shape: tuple[int, ...], inline: bool = False) -> Any:
        """Unsigned integers of `bit_width` bits; for `inline` see `purax.primitives.random.random_bits.RandomBits`."""
        raise NotImplementedError

    def host_split(self, key: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        raise NotImplementedError

    def host_bits(self, key: np.ndarray, bit_width: int, shape: tuple[int, ...]) -> np.ndarray:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class Threefry(Implementation):
    """Threefry-2x32-20; see `purax.primitives.random.threefry`."""

    name = "threefry2x32"
    dtype = key_dtype(name)
    words = 2
    runs_on_host = True

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

    def bits(self, key, bit_width, shape, inline=False):
        return random_bits(key, bit_width, shape, config.threefry_partitionable, inline)

    def host_split(self, key, shape):
        return random_split_p.host(key, shape=shape, partitionable=config.threefry_partitionable)

    def host_bits(self, key, bit_width, shape):
        partitionable = config.threefry_partitionable
        return random_bits_p.host(key, bit_width=bit_width, shape=shape, partitionable=partitionable)


class Rbg(Implementation):
    """Bits of XLA's own generator, `rng_bit_generator`; keys by Threefry on both of their halves."""

    name = "rbg"
    dtype = key_dtype(name)
    words = 4

    def seed(self, seed):
        half = threefry.seed(seed)
        return concatenate((half, half), 0)

    def split(self, key, shape):
        leading = aval_of(key).shape[:-1]
        halves = threefry.split(reshape(key, (*leading, 2, 2)), shape)
        axis = len(leading)
        return reshape(move_axis(halves, axis, axis + len(shape)), (*leading, *shape, 4))

    def fold_in(self, key, data):
        both = broadcast_in_dim(data, (*aval_of(data).shape, 2), range(aval_of(data).ndim))
        halves = random_fold_in(reshape(key, (*aval_of(data).shape, 2, 2)), both)
        return reshape(halves, aval_of(key).shape)

    def bits(self, key, bit_width, shape, inline=False):
        return rng_bit_generator(key, shape, f"uint{bit_width}")[1]


class UnsafeRbg(Rbg):
    """As `Rbg`, but new keys come from XLA's generator as well, which is not known to keep streams apart."""

    name = "unsafe_rbg"
    dtype = key_dtype(name)

    def split(self, key, shape):
        leading, count = aval_of(key).shape[:-1], math.prod(shape)
        axis = len(leading)
        rows = self.bits(key, 32, (10 * count, 4))
        return reshape(slice_axis(rows, 0, 10 * count, axis, 10), (*leading, *shape, 4))

    def fold_in(self, key, data):
        rows = self.bits(self.seed(data), 32, (10, 4))
        return xor(key, reshape(slice_axis(rows, 9, 10, 0), (4,)))


threefry = Threefry()
IMPLEMENTATIONS: dict[str, Implementation] = {each.name: each for each in (threefry, Rbg(), UnsafeRbg())}
