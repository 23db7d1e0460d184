"""The normal distribution between a and b, in units of `scale` around `loc`.

The mass between two points is computed by its logarithm, from whichever tail it is in.
"""

from __future__ import annotations

import functools
import math

from purax import numpy as jnp
from purax.core.array import Array
from purax.nn.activations import log1mexp
from purax.primitives.special.errors import log_ndtr_p, ndtr_p
from purax.scipy.stats.distribution import of_numbers, standardized
from purax.typing import ArrayLike

strongly_of_numbers = functools.partial(of_numbers, strongly=True)


def _log_mass(a, b):
    """log(Φ(b) − Φ(a)) for a ≤ b."""
    is_right = a > 0  # there the same mass lies mirrored on the left
    low, high = jnp.where(is_right, -b, a), jnp.where(is_right, -a, b)
    is_split = high > 0
    left_high = jnp.where(is_split, -1, high)
    left_low = jnp.where(is_split, -2, low)
    top = log_ndtr_p.bind(left_high)
    is_empty = left_low == left_high
    gap = jnp.where(is_empty, 1, top - log_ndtr_p.bind(jnp.where(is_empty, left_low - 1, left_low)))
    left = jnp.where(is_empty, -jnp.inf, top + log1mexp(gap))
    outer_low, outer_high = jnp.where(is_split, low, -1), jnp.where(is_split, high, 1)
    split = jnp.log1p(-ndtr_p.bind(outer_low) - ndtr_p.bind(-outer_high))
    return jnp.where(is_split, split, left)


def _valid(a, b):
    return jnp.where(a < b, a, jnp.nan), jnp.where(a < b, b, jnp.nan)


@strongly_of_numbers
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import truncnorm
    >>> round(float(truncnorm.logpdf(0.0, -2.0, 2.0)), 4)
    -0.8724
    """
    z = standardized(x, loc, scale)
    low, high = _valid(a, b)
    inner = -0.5 * z * z - 0.5 * math.log(2 * math.pi) - jnp.log(scale) - _log_mass(low, high)
    return jnp.where((z < low) | (z > high), -jnp.inf, inner)


@strongly_of_numbers
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def _log_lower(x, a, b, loc, scale):
    low, high = _valid(a, b)
    z = jnp.clip(standardized(x, loc, scale), low, high)
    return jnp.where(z == high, 0, _log_mass(low, z) - _log_mass(low, high))


def _log_upper(x, a, b, loc, scale):
    low, high = _valid(a, b)
    z = jnp.clip(standardized(x, loc, scale), low, high)
    return jnp.where(z == low, 0, _log_mass(z, high) - _log_mass(low, high))


@strongly_of_numbers
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return _log_lower(x, a, b, loc, scale)


@strongly_of_numbers
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x.

    >>> from purax.scipy.stats import truncnorm
    >>> float(truncnorm.cdf(0.0, -2.0, 2.0))
    0.5
    """
    return jnp.exp(_log_lower(x, a, b, loc, scale))


@strongly_of_numbers
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return _log_upper(x, a, b, loc, scale)


@strongly_of_numbers
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    return jnp.exp(_log_upper(x, a, b, loc, scale))
