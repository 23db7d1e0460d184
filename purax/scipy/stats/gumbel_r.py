"""Gumbel's distribution of largest values: e^(−z − e^(−z))/scale with z = (x − loc)/scale."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.nn.activations import log1mexp
from purax.scipy.stats.distribution import of_numbers, positive, quantile, standardized
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import gumbel_r
    >>> float(gumbel_r.logpdf(0.0))
    -1.0
    """
    z = standardized(x, loc, scale)
    return -z - jnp.exp(-z) - jnp.log(scale)


@of_numbers
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    z = standardized(x, loc, scale)
    return jnp.exp(-z - jnp.exp(-z)) / scale


@of_numbers
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x."""
    return jnp.exp(-jnp.exp(-standardized(x, loc, scale)))


@of_numbers
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return -jnp.exp(-standardized(x, loc, scale))


@of_numbers
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    return -jnp.expm1(-jnp.exp(-standardized(x, loc, scale)))


@of_numbers
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return log_survival(standardized(x, loc, scale))


def log_survival(z):
    """log(1 − e^(−e^(−z))), which is −z where e^(−z) is tiny."""
    is_far = z > 40
    return jnp.where(is_far, -z, log1mexp(jnp.exp(-jnp.where(is_far, 0, z))))


@of_numbers
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    return quantile(p, -jnp.log(-jnp.log(p))) * positive(scale) + loc
