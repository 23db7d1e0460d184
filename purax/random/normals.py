"""Normal numbers, and distributions made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.primitives.elementwise.arithmetic import div, max_, min_, nextafter, sqrt, square, sub
from purax.primitives.elementwise.conversion import complex_, convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import le, lt, select
from purax.primitives.elementwise.xla_functions import exp
from purax.primitives.shape.broadcasting import reduce_sum
from purax.primitives.special.special import erf, erf_inv
from purax.random.arguments import as_operand, as_shape, broadcast_to, float_dtype, placed, result_shape
from purax.random.continuous import below_minus_one, draw, uniform_between
from purax.random.from_bits import like, scaled_uniform, unit_uniform, unstack
from purax.random.keys import single_key
from purax.random.sampling import sampler
from purax.typing import ArrayLike, DTypeLike, Shape

__all__ = ["double_sided_maxwell", "lognormal", "maxwell", "normal", "truncated_normal", "wald"]


def standard_normal(words, implementation, shape, dtype):
    """√2 erf⁻¹(u), with u in (−1, 1); complex numbers have independent parts of variance ½."""
    if dtypes.is_complex(dtype):
        part = dtypes.to_real_dtype(dtype)
        keys = unstack(implementation.split(words, (2,)), 2)
        both = complex_(*(standard_normal(key, implementation, shape, part) for key in keys))
        return div(both, like(both, math.sqrt(2)))
    u = uniform_between(words, below_minus_one(dtype), 1, implementation, shape, dtype)
    return mul(erf_inv(u), np.array(math.sqrt(2), dtype))


@sampler()
def _normal(words, *, implementation, shape, dtype):
    return standard_normal(words, implementation, shape, dtype)


def normal(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Standard normal numbers: density exp(−x²/2) / √(2π).

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A float or complex dtype, float32 by default (float64 with `config.enable_x64`).
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.normal(random.PRNGKey(0), (4,))
    Array([ 1.8160863 , -0.75488514,  0.33988908, -0.53483534], dtype=float32)
    """
    found = single_key(key, "normal")
    chosen = float_dtype(dtype, "normal", or_complex=True)
    static = {"implementation": found.implementation, "shape": as_shape(shape, "normal"), "dtype": chosen}
    return placed(_normal(found.words, **static), out_sharding)


@sampler()
def _truncated_normal(words, lower, upper, *, implementation, shape, dtype):
    root = np.array(math.sqrt(2), dtype)
    low, high = (broadcast_to(erf(div(bound, root)), shape) for bound in (lower, upper))
    u = scaled_uniform(words, low, high, implementation, shape, dtype)
    x = mul(erf_inv(u), root)
    # The bounds themselves are excluded, also after rounding.
    above = nextafter(lower, like(lower, np.inf))
    below = nextafter(upper, like(upper, -np.inf))
    return min_(broadcast_to(below, shape), max_(broadcast_to(above, shape), x))


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Standard normal numbers, given that they lie in (lower, upper).

    Args:
        key: A key.
        lower: The lower bound.
        upper: The upper bound.
        shape: The shape of the result, which the bounds broadcast to; their own by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> x = random.truncated_normal(random.key(0), -1.0, 2.0, (100,))
    >>> bool(((x > -1) & (x < 2)).all())
    True
    """
    return draw(
        "truncated_normal", _truncated_normal, key, shape, dtype, out_sharding, lower=lower, upper=upper
    )


@sampler()
def _lognormal(words, sigma, *, implementation, shape, dtype):
    return exp(mul(standard_normal(words, implementation, shape, dtype), broadcast_to(sigma, shape)))


def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers exp(σ z) with z standard normal.

    Args:
        key: A key.
        sigma: σ.
        shape: The shape of the result, which `sigma` broadcasts to; that of `sigma` by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> random.lognormal(random.key(0), 0.5, (3,)).shape
    (3,)
    """
    return draw("lognormal", _lognormal, key, shape, dtype, out_sharding, sigma=sigma)


# --- the length of a normal vector


def standard_maxwell(words, implementation, shape, dtype):
    x = standard_normal(words, implementation, (*shape, 3), dtype)
    return sqrt(reduce_sum(mul(x, x), (len(shape),)))


@sampler()
def _maxwell(words, *, implementation, shape, dtype):
    return standard_maxwell(words, implementation, shape, dtype)


def maxwell(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Maxwell numbers: density √(2/π) x² exp(−x²/2) for x ≥ 0, the length of a standard normal vector in 3 dimensions.

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> bool((random.maxwell(random.key(0), (100,)) >= 0).all())
    True
    """
    return draw("maxwell", _maxwell, key, shape, dtype, out_sharding)


@sampler()
def _double_sided_maxwell(words, loc, scale, *, implementation, shape, dtype):
    first, second = unstack(implementation.split(words, (2,)), 2)
    length = standard_maxwell(first, implementation, shape, dtype)
    u = unit_uniform(second, implementation, shape, dtypes.default_float())
    sign = sub(mul(convert_element_type(lt(u, 0.5), dtype), 2), 1)
    return add(mul(mul(sign, length), broadcast_to(scale, shape)), broadcast_to(loc, shape))


def double_sided_maxwell(
    key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Numbers μ + σ s m, with m a Maxwell number and s a random sign.

    Args:
        key: A key.
        loc: μ.
        scale: σ, positive.
        shape: The shape of the result, followed by that which `loc` and `scale` have together.
        dtype: A float dtype, float32 by default.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (3,)).shape
    (3,)
    """
    found = single_key(key, "double_sided_maxwell")
    chosen = float_dtype(dtype, "double_sided_maxwell")
    place = as_operand(loc, chosen, "double_sided_maxwell", "loc")
    spread = as_operand(scale, chosen, "double_sided_maxwell", "scale")
    tail = result_shape(None, "double_sided_maxwell", loc=place, scale=spread)
    full = (*as_shape(shape, "double_sided_maxwell"), *tail)
    return _double_sided_maxwell(
        found.words, place, spread, implementation=found.implementation, shape=full, dtype=chosen
    )


# --- Wald


@sampler()
def _wald(words, mean, *, implementation, shape, dtype):
    """A root of the quadratic equation that a squared normal number solves (Michael, Schucany, Haas 1976)."""
    first, second = unstack(implementation.split(words, (2,)), 2)
    mean = broadcast_to(mean, shape)
    v = square(standard_normal(first, implementation, shape, dtype))
    u = unit_uniform(second, implementation, shape, dtype)
    mean_squared = square(mean)
    root = sqrt(add(mul(mul(mean, 4), v), mul(mean_squared, square(v))))
    x = sub(add(mean, div(mul(mean_squared, v), 2)), mul(div(mean, 2), root))
    return select(le(u, div(mean, add(mean, x))), x, div(mean_squared, x))


def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Wald (inverse Gaussian) numbers: density exp(−(x − μ)²/2μ²x) / √(2πx³) for x > 0.

    Args:
        key: A key.
        mean: μ, positive.
        shape: The shape of the result, which `mean` broadcasts to; that of `mean` by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> bool((random.wald(random.key(0), 2.0, (100,)) > 0).all())
    True
    """
    return draw("wald", _wald, key, shape, dtype, out_sharding, mean=mean)
