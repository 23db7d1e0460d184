"""Pareto's distribution: b z^(−b − 1)/scale for z = (x − loc)/scale ≥ 1."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.nn.activations import log1mexp
from purax.scipy.stats.distribution import of_numbers, positive, quantile, standardized
from purax.typing import ArrayLike


def _parts(x, b, loc, scale):
    """Whether x is below the support, and b log z."""
    z = standardized(x, loc, scale)
    is_below = (z < 1) & (b > 0)
    return is_below, positive(b) * jnp.log(jnp.where(z < 1, 1, z))


@of_numbers
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import pareto
    >>> round(float(pareto.logpdf(1.0, 2.0)), 4)
    0.6931
    """
    is_below, product = _parts(x, b, loc, scale)
    return jnp.where(is_below, -jnp.inf, jnp.log(b) - product * (1 + 1 / b) - jnp.log(scale))


@of_numbers
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, b, loc, scale))


@of_numbers
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x."""
    is_below, product = _parts(x, b, loc, scale)
    return jnp.where(is_below, 0, -jnp.expm1(-product))


@of_numbers
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    is_below, product = _parts(x, b, loc, scale)
    return jnp.where(is_below, -jnp.inf, log1mexp(jnp.where(is_below, 1, product)))


@of_numbers
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    is_below, product = _parts(x, b, loc, scale)
    return jnp.where(is_below, 1, jnp.exp(-product))


@of_numbers
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    is_below, product = _parts(x, b, loc, scale)
    return jnp.where(is_below, 0, -product)


@of_numbers
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    return quantile(q, jnp.exp(-jnp.log1p(-q) / positive(b))) * positive(scale) + loc
