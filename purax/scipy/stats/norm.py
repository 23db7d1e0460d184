"""The normal distribution of mean `loc` and standard deviation `scale`: e^(−z²/2)/(√2π scale), z = (x − loc)/scale."""

from __future__ import annotations

import math

from purax import numpy as jnp
from purax.core.array import Array
from purax.numpy._promotion import strong
from purax.primitives.special.errors import log_ndtr_p, ndtr_p, normal_quantile_p
from purax.scipy.stats.distribution import of_numbers, positive, standardized
from purax.typing import ArrayLike

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@of_numbers
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import norm
    >>> round(float(norm.logpdf(0.0)), 4)
    -0.9189
    """
    z = standardized(x, loc, scale)
    return -0.5 * z * z - (jnp.log(scale) + HALF_LOG_2PI)


@of_numbers
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> from purax.scipy.stats import norm
    >>> round(float(norm.pdf(0.0)), 4)
    0.3989
    """
    z = standardized(x, loc, scale)
    return jnp.exp(-0.5 * z * z) / (scale * math.sqrt(2 * math.pi))


@of_numbers
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x.

    >>> from purax.scipy.stats import norm
    >>> float(norm.cdf(0.0))
    0.5
    """
    return ndtr_p.bind(strong(standardized(x, loc, scale)))


@of_numbers
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`, accurate in both tails."""
    return log_ndtr_p.bind(strong(standardized(x, loc, scale)))


@of_numbers
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    return ndtr_p.bind(strong(-standardized(x, loc, scale)))


@of_numbers
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`, accurate in both tails."""
    return log_ndtr_p.bind(strong(-standardized(x, loc, scale)))


@of_numbers
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`.

    >>> from purax.scipy.stats import norm
    >>> round(float(norm.ppf(0.975)), 4)
    1.96
    """
    return normal_quantile_p.bind(strong(jnp.asarray(q))) * positive(scale) + loc


@of_numbers
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `sf`."""
    return loc - normal_quantile_p.bind(strong(jnp.asarray(q))) * positive(scale)
