"""`jax.extend.random`: generators of random bits as objects, and new ones."""

from __future__ import annotations

from typing import Any

from purax import numpy as jnp
from purax import random
from purax.core.array import Array
from purax.primitives.random.threefry import threefry2x32
from purax.random.custom_implementations import define_prng_impl
from purax.random.implementations import IMPLEMENTATIONS, Implementation

__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]

threefry_prng_impl = IMPLEMENTATIONS["threefry2x32"]
rbg_prng_impl = IMPLEMENTATIONS["rbg"]
unsafe_rbg_prng_impl = IMPLEMENTATIONS["unsafe_rbg"]


def random_seed(seeds: Any, impl: Implementation) -> Array:
    """Typed keys from seeds.

    Args:
        seeds: integers.
        impl: the generator.
    """
    seeds = jnp.asarray(seeds)
    if not seeds.ndim:
        return random.key(seeds, impl=impl.dtype)
    return jnp.stack([random.key(x, impl=impl.dtype) for x in seeds.ravel()]).reshape(seeds.shape)


def seed_with_impl(impl: Implementation, seed: Any) -> Array:
    """Typed keys from seeds.

    Args:
        impl: the generator.
        seed: integers.
    """
    return random_seed(seed, impl)


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """Applies the Threefry 2x32 hash.

    Args:
        keypair: two unsigned integers of 32 bits.
        count: the integers that are hashed.
    """
    first, second = jnp.asarray(keypair)
    counts = jnp.asarray(count)
    if counts.dtype != jnp.uint32 or first.dtype != jnp.uint32:
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {first.dtype}, {counts.dtype}")
    flat = counts.ravel()
    odd = flat.size % 2
    x0, x1 = jnp.split(jnp.concatenate([flat, jnp.zeros(odd, jnp.uint32)]), 2)
    hashed = jnp.concatenate(threefry2x32(first, second, x0, x1))
    return hashed[: hashed.size - odd].reshape(counts.shape)
