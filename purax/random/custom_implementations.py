"""Generators of random bits that users define, as functions of arrays: `define_prng_impl`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from purax.api.vmap import vmap
from purax.core.avals import aval_of
from purax.core.source import located
from purax.errors import shown
from purax.random import typed_keys
from purax.random.implementations import IMPLEMENTATIONS, Implementation

__all__ = ["define_prng_impl"]


class CustomImplementation(Implementation):
    """A generator made of a user's functions, each of one key."""

    def __init__(self, name: str, tag: str, words: int, functions: dict[str, Callable]):
        self.name, self.words = name, words
        self.dtype = typed_keys.add_key_dtype(name, tag, words)
        self._functions = functions

    def _of_keys(self, function: Callable, key: Any) -> Any:
        """A function of one key, for keys with axes in front."""
        for _ in aval_of(key).shape[:-1]:
            function = vmap(function)
        return function(key)

    def seed(self, seed: Any) -> Any:
        return self._functions["seed"](seed)

    def split(self, key: Any, shape: tuple[int, ...]) -> Any:
        return self._of_keys(lambda one: self._functions["split"](one, shape), key)

    def fold_in(self, key: Any, data: Any) -> Any:
        return self._functions["fold_in"](key, data)

    def bits(self, key: Any, bit_width: int, shape: tuple[int, ...], inline: bool = False) -> Any:
        return self._of_keys(lambda one: self._functions["random_bits"](one, bit_width, shape), key)


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, int], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Implementation:
    """A generator of random bits of the user's own, for `impl=` of `random.key`.

    Args:
        key_shape: the shape of a key: `(n,)`, n words of 32 bits.
        seed: a key from an integer.
        split: keys of a shape from one key.
        random_bits: unsigned integers of a width and a shape from a key.
        fold_in: a key from a key and an integer.
        name: of the generator.
        tag: a short name, which is printed.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.random.custom_implementations import define_prng_impl
    >>> counter = define_prng_impl(
    ...     key_shape=(1,),
    ...     seed=lambda seed: jnp.asarray(seed).astype("uint32").reshape(1),
    ...     split=lambda key, shape: key + jnp.arange(1, 1 + shape[0], dtype="uint32")[:, None],
    ...     random_bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
    ...     fold_in=lambda key, data: key + jnp.uint32(data),
    ...     name="counter",
    ...     tag="cnt",
    ... )
    >>> px.random.bits(px.random.key(7, impl=counter), (2,))
    Array([7, 7], dtype=uint32)
    """
    if len(key_shape) != 1 or operator.index(key_shape[0]) < 1:
        raise located(
            NotImplementedError,
            f"define_prng_impl: key_shape must be (n,), got {shown(key_shape)}; ravel the key",
        )
    functions: dict[str, Callable] = {
        "seed": seed,
        "split": split,
        "random_bits": random_bits,
        "fold_in": fold_in,
    }
    unique = name
    while unique in IMPLEMENTATIONS:  # two generators may have one name, as `<unnamed>`
        unique += "'"
    made = CustomImplementation(unique, tag, operator.index(key_shape[0]), functions)
    IMPLEMENTATIONS[unique] = made
    return made
