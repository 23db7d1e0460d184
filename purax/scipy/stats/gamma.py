"""The gamma distribution: zᵃ⁻¹ e^(−z)/(Γ(a) scale) for z = (x − loc)/scale ≥ 0."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.entropy import xlogy
from purax.scipy.special.gamma import gammainc, gammaincc, gammaln
from purax.scipy.stats.distribution import log_in_double, of_numbers, positive, standardized
from purax.typing import ArrayLike


def log_density(z, a):
    """Of the standard distribution, −∞ for z < 0."""
    a = positive(a)
    is_outside = (z < 0) & (a == a)
    safe = jnp.where(z < 0, 1, z)
    return jnp.where(is_outside, -jnp.inf, xlogy(a - 1, safe) - safe - gammaln(a))


def _at_least_0(z):
    return jnp.where(z < 0, 0, z)


@of_numbers
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import gamma
    >>> round(float(gamma.logpdf(1.0, 2.0)), 4)
    -1.0
    """
    return log_density(standardized(x, loc, scale), a) - jnp.log(scale)


@of_numbers
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return jnp.exp(log_density(standardized(x, loc, scale), a)) / scale


@of_numbers
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x.

    >>> from purax.scipy.stats import gamma
    >>> round(float(gamma.cdf(1.0, 2.0)), 4)
    0.2642
    """
    return gammainc(positive(a), _at_least_0(standardized(x, loc, scale)))


@of_numbers
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return log_in_double(gammainc, positive(a), _at_least_0(standardized(x, loc, scale)))


@of_numbers
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    return gammaincc(positive(a), _at_least_0(standardized(x, loc, scale)))


@of_numbers
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return log_in_double(gammaincc, positive(a), _at_least_0(standardized(x, loc, scale)))
