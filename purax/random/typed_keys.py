"""Typed keys: arrays whose dtype says that their elements are keys, and for which generator.

`random_wrap` and `random_unwrap` go between keys as words, uint32 arrays (…, n), and keys as elements of an array (…).
Both have the same memory, so nothing is computed.
"""

from __future__ import annotations

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.primitives.random.random_bits import KeyPrimitive

UINT32 = np.dtype(np.uint32)


class KeyDtype(dtypes.ExtendedDtype):
    """The dtype of typed keys: one element is a key, held as a few words.

    Attributes:
        implementation: the full name of the generator that the keys are for.
    """

    type = dtypes.prng_key

    def __init__(self, implementation: str, tag: str, words: int):
        self.implementation = implementation
        self.name = f"key<{tag}>"
        self.element_shape = (words,)
        self.physical_dtype = UINT32

    def wrap(self, words):
        """Keys from their words; with `unwrap`, how indexing treats them."""
        return random_wrap(words, self)

    def unwrap(self, keys):
        """The words of keys."""
        return random_unwrap(keys)

    def __reduce__(self):
        return key_dtype, (self.implementation,)


_KEY_DTYPES = {
    "threefry2x32": KeyDtype("threefry2x32", "fry", 2),
    "rbg": KeyDtype("rbg", "rbg", 4),
    "unsafe_rbg": KeyDtype("unsafe_rbg", "urbg", 4),
}


KEY_IMPLEMENTATIONS = frozenset(_KEY_DTYPES)


def key_dtype(implementation: str) -> KeyDtype:
    """The dtype of typed keys of an implementation."""
    return _KEY_DTYPES[implementation]


def add_key_dtype(implementation: str, tag: str, words: int) -> KeyDtype:
    """A new dtype of keys, for an implementation of the user's."""
    made = _KEY_DTYPES[implementation] = KeyDtype(implementation, tag, words)
    return made


class RandomWrap(KeyPrimitive):
    """Typed keys from words: the last axis of the words becomes the element."""

    name = "random_wrap"
    keeps_ends = True
    host_is_cheap = True

    def infer(self, words, *, impl):
        if words.dtype != UINT32 or words.shape[-1:] != impl.element_shape:
            raise TypeError(
                f"random_wrap takes uint32 arrays of shape (…, {impl.element_shape[0]}) for {impl.name}; got "
                f"{words.str_short()}"
            )
        return ShapedArray(words.shape[:-1], impl)

    def host(self, words, *, impl):
        return words

    def physical(self, words, *, impl):
        return words


class RandomUnwrap(KeyPrimitive):
    """The words of typed keys, along a new last axis."""

    name = "random_unwrap"
    keeps_ends = True
    host_is_cheap = True

    def infer(self, keys):
        if not isinstance(keys.dtype, KeyDtype):
            raise TypeError(f"random_unwrap takes typed keys, got {keys.str_short()}")
        return ShapedArray((*keys.shape, *keys.dtype.element_shape), UINT32)

    def host(self, keys):
        return keys

    def physical(self, keys):
        return keys


random_wrap_p = RandomWrap()
random_unwrap_p = RandomUnwrap()


def random_wrap(words, impl: KeyDtype):
    """Typed keys (…) from words (…, n)."""
    return random_wrap_p.bind(words, impl=impl)


def random_unwrap(keys):
    """The words (…, n) of typed keys (…)."""
    return random_unwrap_p.bind(keys)
