"""The logistic distribution: e^(−z)/(scale (1 + e^(−z))²) with z = (x − loc)/scale."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.entropy import expit, logit
from purax.scipy.stats.distribution import of_numbers, positive, standardized
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import logistic
    >>> round(float(logistic.logpdf(0.0)), 4)
    -1.3863
    """
    size = jnp.abs(standardized(x, loc, scale))
    return -size - 2 * jnp.log1p(jnp.exp(-size)) - jnp.log(scale)


@of_numbers
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    decay = jnp.exp(-jnp.abs(standardized(x, loc, scale)))
    return decay / (scale * jnp.square(1 + decay))


@of_numbers
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x."""
    return expit(standardized(x, loc, scale))


@of_numbers
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    return expit(-standardized(x, loc, scale))


@of_numbers
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    return logit(x) * positive(scale) + loc


@of_numbers
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`."""
    return loc - logit(x) * positive(scale)
