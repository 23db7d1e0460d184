"""Cauchy's distribution: 1/(π scale (1 + z²)) with z = (x − loc)/scale."""

from __future__ import annotations

import math

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.stats.distribution import of_numbers, positive, quantile, standardized
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import cauchy
    >>> round(float(cauchy.logpdf(1.0)), 4)
    -1.8379
    """
    z = standardized(x, loc, scale)
    size = jnp.abs(z)
    is_far = size > 1e15  # z² may overflow
    near = jnp.log1p(jnp.square(jnp.where(is_far, 1, z)))
    far = 2 * jnp.log(jnp.where(is_far, size, 1))
    return -(math.log(math.pi) + jnp.log(scale) + jnp.where(is_far, far, near))


@of_numbers
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    z = standardized(x, loc, scale)
    return 1 / (math.pi * scale * (1 + z * z))


@of_numbers
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x.

    >>> from purax.scipy.stats import cauchy
    >>> float(cauchy.cdf(1.0))
    0.75
    """
    z = standardized(x, loc, scale)
    return jnp.arctan2(jnp.ones_like(z), -z) / math.pi  # of the angle, so that no tail cancels


@of_numbers
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return _log_tail(-standardized(x, loc, scale))


@of_numbers
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    z = standardized(x, loc, scale)
    return jnp.arctan2(jnp.ones_like(z), z) / math.pi


@of_numbers
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return _log_tail(standardized(x, loc, scale))


def _log_tail(z):
    """log(atan2(1, z)/π): where the angle is nearly π by the small rest."""
    rest = jnp.log1p(-jnp.arctan2(jnp.ones_like(z), jnp.where(z < 0, -z, 1)) / math.pi)
    return jnp.where(z < 0, rest, jnp.log(jnp.arctan2(jnp.ones_like(z), jnp.where(z < 0, 1, z)) / math.pi))


def _quantile(q):
    """−cot(πq), of q or 1 − q, whichever is smaller."""
    is_low = q < 0.5
    angle = math.pi * jnp.where(is_low, q, 1 - q)
    return quantile(q, jnp.where(is_low, -1, 1) / jnp.tan(angle))


@of_numbers
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    return _quantile(q) * positive(scale) + loc


@of_numbers
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`."""
    return loc - _quantile(q) * positive(scale)
