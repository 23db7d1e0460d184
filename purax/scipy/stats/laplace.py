"""Laplace's distribution: e^(−|z|)/(2 scale) with z = (x − loc)/scale."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.stats.distribution import of_numbers, standardized
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import laplace
    >>> round(float(laplace.logpdf(0.0)), 4)
    -0.6931
    """
    return -jnp.abs(standardized(x, loc, scale)) - jnp.log(2 * scale)


@of_numbers
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return jnp.exp(-jnp.abs(standardized(x, loc, scale))) / (2 * scale)


@of_numbers
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x.

    >>> from purax.scipy.stats import laplace
    >>> float(laplace.cdf(0.0))
    0.5
    """
    z = standardized(x, loc, scale)
    tail = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z < 0, tail, 1 - tail)
