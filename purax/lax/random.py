"""Random bits and numbers from XLA's own generators; `purax.random` is what programs should use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.limits import shallow
from purax.core.source import located
from purax.errors import shown
from purax.lax.operands import array, listed, operand, sizes_of
from purax.primitives.random.rng_bit_generator import RandomAlgorithm, rng_bit_generator_p
from purax.primitives.random.rng_uniform import rng_uniform_p
from purax.sharding.constraints import put_at
from purax.typing import ArrayLike


def rng_bit_generator(
    key: Array,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm | int = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """Random bits from a state, and the state for the next draw.

    Args:
        key: the state, uint32[4] or uint64[2].
        shape: of the bits.
        dtype: of the bits: uint8, uint16, uint32 or uint64.
        algorithm: the generator; which one the default is, and so the bits, depends on the platform.

    >>> from purax import lax, numpy as jnp
    >>> key, bits = lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (2,))
    >>> bits
    Array([ 895509795, 3230209149], dtype=uint32)
    """
    new_key, bits = rng_bit_generator_p.bind(
        array("rng_bit_generator", key),
        shape=sizes_of(shape),
        dtype=dtypes.as_dtype(dtype),
        algorithm=_algorithm(algorithm),
    )
    return new_key, put_at(bits, out_sharding)


def _algorithm(algorithm: Any) -> RandomAlgorithm:
    try:
        return RandomAlgorithm(shallow(algorithm))
    except (ValueError, TypeError, RecursionError):
        raise located(
            ValueError, f"lax.rng_bit_generator: {shown(algorithm)} is no algorithm; see lax.RandomAlgorithm"
        ) from None


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Numbers that are spread evenly over [a, b), other ones in each run.

    Args:
        a, b: scalars of one dtype, integers or floating point numbers.
        shape: of the result.

    >>> from purax import lax
    >>> lax.rng_uniform(0.0, 1.0, (3,)).shape
    (3,)
    """
    bounds = [operand("rng_uniform", a), operand("rng_uniform", b, 1)]
    avals = [aval_of(x) for x in bounds]
    if avals[0].dtype != avals[1].dtype or avals[0].shape or avals[1].shape:
        raise located(ValueError, f"lax.rng_uniform needs two scalars of one dtype, got {listed(avals)}")
    return rng_uniform_p.bind(*bounds, shape=sizes_of(shape))
