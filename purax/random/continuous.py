"""Distributions that are the image of a uniform number: x = F⁻¹(u), with F the distribution's cumulative function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.primitives.elementwise.arithmetic import abs_, div, sign, sqrt, sub
from purax.primitives.elementwise.elementwise import add, mul, neg
from purax.primitives.elementwise.logic import ge, lt, select
from purax.primitives.elementwise.transcendental import pow_, tan
from purax.primitives.elementwise.xla_functions import exp, log, log1p
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.primitives.shape.reshaping import reshape
from purax.primitives.shape.slicing import slice_axis
from purax.random.arguments import as_operand, as_shape, broadcast_to, float_dtype, placed, result_shape
from purax.random.from_bits import like, scaled_uniform, unit_uniform
from purax.random.keys import single_key
from purax.random.sampling import sampler
from purax.typing import ArrayLike, DTypeLike, Shape

__all__ = [
    "cauchy", "exponential", "gumbel", "laplace", "logistic", "pareto", "rayleigh", "triangular", "weibull_min",
]  # fmt: skip


def draw(
    name: str, sample: Any, key: Any, shape: Any, dtype: Any, out_sharding: Any, **parameters: Any
) -> Array:
    """Draws from `sample(words, *parameters, implementation, shape, dtype)`, after reading the user's arguments."""
    found = single_key(key, name)
    chosen = float_dtype(dtype, name)
    operands = {each: as_operand(x, chosen, name, each) for each, x in parameters.items()}
    shape = result_shape(shape, name, **operands) if operands else as_shape(shape, name)
    values = operands.values()
    return placed(
        sample(found.words, *values, implementation=found.implementation, shape=shape, dtype=chosen),
        out_sharding,
    )


def uniform_between(words, low: float, high: float, implementation, shape, dtype):
    """Uniform numbers in [low, high), for bounds known while tracing."""
    low, high = np.array(low, dtype), np.array(high, dtype)
    return scaled_uniform(words, low, high, implementation, shape, dtype)


def smallest(dtype) -> Any:
    """The smallest normal number."""
    return dtypes.finfo(dtype).tiny


def below_minus_one(dtype) -> Any:
    """The number next to −1, towards 0."""
    return np.nextafter(np.array(-1, dtype), np.array(0, dtype))


# --- exponential


def standard_exponential(words, implementation, shape, dtype):
    """−log(1 − u)"""
    return neg(log1p(neg(unit_uniform(words, implementation, shape, dtype))))


@sampler()
def _exponential(words, *, implementation, shape, dtype):
    return standard_exponential(words, implementation, shape, dtype)


def exponential(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Exponential numbers: density exp(−x) for x ≥ 0.

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> bool((random.exponential(random.key(0), (100,)) >= 0).all())
    True
    """
    return draw("exponential", _exponential, key, shape, dtype, out_sharding)


@sampler()
def _pareto(words, b, *, implementation, shape, dtype):
    return exp(div(standard_exponential(words, implementation, shape, dtype), broadcast_to(b, shape)))


def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Pareto numbers: density b / x^(b + 1) for x ≥ 1.

    Args:
        key: A key.
        b: The shape parameter, positive.
        shape: The shape of the result, which `b` broadcasts to; that of `b` by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> bool((random.pareto(random.key(0), 2.0, (100,)) >= 1).all())
    True
    """
    return draw("pareto", _pareto, key, shape, dtype, out_sharding, b=b)


@sampler()
def _weibull_min(words, scale, concentration, *, implementation, shape, dtype):
    power = broadcast_to(div(like(concentration, 1), concentration), shape)
    base = standard_exponential(words, implementation, shape, dtype)
    if not power.shape and shape:
        power = broadcast_in_dim(power, shape, ())
    return mul(pow_(base, power), broadcast_to(scale, shape))


def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Shape | None = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Weibull numbers: density c/σ (x/σ)^(c − 1) exp(−(x/σ)^c) for x ≥ 0.

    Args:
        key: A key.
        scale: σ, positive.
        concentration: c, positive.
        shape: The shape of the result, which the parameters broadcast to.
        dtype: A float dtype, float32 by default.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.weibull_min(random.key(0), 1.0, 2.0, (3,)).shape
    (3,)
    """
    return draw(
        "weibull_min", _weibull_min, key, shape, dtype, None, scale=scale, concentration=concentration
    )


@sampler()
def _rayleigh(words, scale, *, implementation, shape, dtype):
    u = unit_uniform(words, implementation, shape, dtype)
    return mul(broadcast_to(scale, shape), sqrt(mul(log(u), -2)))


def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Rayleigh numbers: density x/σ² exp(−x²/2σ²) for x ≥ 0.

    Args:
        key: A key.
        scale: σ, positive.
        shape: The shape of the result, which `scale` broadcasts to; that of `scale` by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> bool((random.rayleigh(random.key(0), 2.0, (100,)) >= 0).all())
    True
    """
    return draw("rayleigh", _rayleigh, key, shape, dtype, out_sharding, scale=scale)


# --- others


def standard_gumbel(words, implementation, shape, dtype, high_precision: bool = False):
    """−log(−log u); with `high_precision` from twice as many bits, so that the left tail is not cut."""
    if not high_precision:
        # In one long row, since loops over rows of a few elements are slow.
        u = uniform_between(words, smallest(dtype), 1, implementation, (math.prod(shape),), dtype)
        return reshape(neg(log(neg(log(u)))), shape)
    both = unit_uniform(words, implementation, (2, *shape), dtype)
    coarse, fine = (reshape(slice_axis(both, i, i + 1, 0), shape) for i in range(2))
    refined = add(add(coarse, mul(fine, like(fine, dtypes.finfo(dtype).eps))), like(fine, smallest(dtype)))
    u = select(ge(coarse, 0.5), coarse, refined)
    return neg(log(neg(log1p(neg(u)))))


@sampler()
def _gumbel(words, *, implementation, shape, dtype, high_precision):
    return standard_gumbel(words, implementation, shape, dtype, high_precision)


def is_high_precision(mode: Any, name: str) -> bool:
    """Whether a `mode` argument asks for twice as many bits."""
    if mode not in (None, "low", "high"):
        raise located(ValueError, f"{name}: mode must be None, 'low' or 'high', got {shown(mode)}")
    return mode == "high"


def gumbel(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Gumbel numbers: density exp(−x − exp(−x)).

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A float dtype, float32 by default.
        mode: 'low' (the default), or 'high' for more accurate tails with twice as many bits.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.gumbel(random.key(0), (2, 3)).shape
    (2, 3)
    """
    found = single_key(key, "gumbel")
    static = {"implementation": found.implementation, "shape": as_shape(shape, "gumbel")}
    chosen = float_dtype(dtype, "gumbel")
    precise = is_high_precision(mode, "gumbel")
    return placed(_gumbel(found.words, **static, dtype=chosen, high_precision=precise), out_sharding)


@sampler()
def _laplace(words, *, implementation, shape, dtype):
    u = uniform_between(words, below_minus_one(dtype), 1, implementation, shape, dtype)
    return mul(sign(u), log1p(neg(abs_(u))))


def laplace(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Laplace numbers: density exp(−|x|) / 2.

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.laplace(random.key(0), (3,)).shape
    (3,)
    """
    return draw("laplace", _laplace, key, shape, dtype, out_sharding)


@sampler()
def _logistic(words, *, implementation, shape, dtype):
    u = uniform_between(words, smallest(dtype), 1, implementation, shape, dtype)
    return sub(log(u), log1p(neg(u)))


def logistic(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Logistic numbers: density exp(−x) / (1 + exp(−x))².

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.logistic(random.key(0), (3,)).shape
    (3,)
    """
    return draw("logistic", _logistic, key, shape, dtype, out_sharding)


@sampler()
def _cauchy(words, *, implementation, shape, dtype):
    u = uniform_between(words, dtypes.finfo(dtype).eps, 1, implementation, shape, dtype)
    return tan(mul(sub(u, 0.5), math.pi))


def cauchy(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Cauchy numbers: density 1 / π(1 + x²).

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.cauchy(random.key(0), (3,)).shape
    (3,)
    """
    return draw("cauchy", _cauchy, key, shape, dtype, out_sharding)


@sampler()
def _triangular(words, left, mode, right, *, implementation, shape, dtype):
    left, mode, right = (broadcast_to(x, shape) for x in (left, mode, right))
    u = unit_uniform(words, implementation, shape, dtype)
    width = sub(right, left)
    rising = add(left, sqrt(mul(mul(u, width), sub(mode, left))))
    falling = sub(right, sqrt(mul(mul(sub(1, u), width), sub(right, mode))))
    return select(lt(u, div(sub(mode, left), width)), rising, falling)


def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Triangular numbers: the density rises linearly from `left` to `mode`, and falls linearly to `right`.

    Args:
        key: A key.
        left: The lower end.
        mode: Where the density is largest.
        right: The upper end, larger than `left`.
        shape: The shape of the result, which the parameters broadcast to; their own by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> random.triangular(random.key(0), 0.0, 1.0, 3.0, (3,)).shape
    (3,)
    """
    return draw("triangular", _triangular, key, shape, dtype, out_sharding, left=left, mode=mode, right=right)
