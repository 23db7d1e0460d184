"""The exponential distribution: e^(−z)/scale for z = (x − loc)/scale ≥ 0."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.nn.activations import log1mexp
from purax.scipy.stats.distribution import of_numbers, positive, quantile, standardized
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import expon
    >>> float(expon.logpdf(2.0))
    -2.0
    """
    z = standardized(x, loc, scale)
    return jnp.where(z < 0, -jnp.inf, -z - jnp.log(scale))


@of_numbers
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    z = standardized(x, loc, scale)
    return jnp.where(z < 0, 0, jnp.exp(-jnp.where(z < 0, 0, z)) / scale)


@of_numbers
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x.

    >>> from purax.scipy.stats import expon
    >>> round(float(expon.cdf(1.0)), 4)
    0.6321
    """
    z = standardized(x, loc, scale)
    return jnp.where(z < 0, 0, -jnp.expm1(-jnp.where(z < 0, 0, z)))


@of_numbers
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    z = standardized(x, loc, scale)
    return jnp.where(z < 0, -jnp.inf, log1mexp(jnp.where(z < 0, 1, z)))


@of_numbers
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    z = standardized(x, loc, scale)
    return jnp.where(z < 0, 1, jnp.exp(-jnp.where(z < 0, 0, z)))


@of_numbers
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    z = standardized(x, loc, scale)
    return jnp.where(z < 0, 0, -z)


@of_numbers
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    return quantile(q, -jnp.log1p(-q)) * positive(scale) + loc
