"""Gumbel's distribution of smallest values: e^(z − e^z)/scale with z = (x − loc)/scale."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.stats.distribution import of_numbers, positive, quantile, standardized
from purax.scipy.stats.gumbel_r import log_survival
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import gumbel_l
    >>> float(gumbel_l.logpdf(0.0))
    -1.0
    """
    z = standardized(x, loc, scale)
    return z - jnp.exp(z) - jnp.log(scale)


@of_numbers
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    z = standardized(x, loc, scale)
    return jnp.exp(z - jnp.exp(z)) / scale


@of_numbers
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x."""
    return -jnp.expm1(-jnp.exp(standardized(x, loc, scale)))


@of_numbers
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return log_survival(-standardized(x, loc, scale))


@of_numbers
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    return jnp.exp(-jnp.exp(standardized(x, loc, scale)))


@of_numbers
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return -jnp.exp(standardized(x, loc, scale))


@of_numbers
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    return quantile(p, jnp.log(-jnp.log1p(-p))) * positive(scale) + loc
