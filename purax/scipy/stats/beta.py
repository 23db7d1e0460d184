"""The beta distribution: zᵃ⁻¹ (1 − z)ᵇ⁻¹/(B(a, b) scale) for z = (x − loc)/scale between 0 and 1."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.entropy import xlog1py, xlogy
from purax.scipy.special.gamma import betainc, betaln
from purax.scipy.stats.distribution import log_in_double, of_numbers, positive, standardized
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import beta
    >>> round(float(beta.logpdf(0.5, 2.0, 2.0)), 4)
    0.4055
    """
    z = standardized(x, loc, scale)
    a, b = positive(a), positive(b)
    is_outside = (z < 0) | (z > 1)
    safe = jnp.where(is_outside, 0.5, z)
    inner = xlogy(a - 1, safe) + xlog1py(b - 1, -safe) - betaln(a, b) - jnp.log(scale)
    return jnp.where(is_outside, -jnp.inf, inner)


@of_numbers
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def _lower(x, a, b, loc, scale):
    """The arguments of `betainc` for the probability of being less than x."""
    return positive(a), positive(b), jnp.clip(standardized(x, loc, scale), 0, 1)


def _upper(x, a, b, loc, scale):
    return positive(b), positive(a), 1 - jnp.clip(standardized(x, loc, scale), 0, 1)


@of_numbers
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x.

    >>> from purax.scipy.stats import beta
    >>> float(beta.cdf(0.5, 1.0, 2.0))
    0.75
    """
    return betainc(*_lower(x, a, b, loc, scale))


@of_numbers
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return log_in_double(betainc, *_lower(x, a, b, loc, scale))


@of_numbers
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    return betainc(*_upper(x, a, b, loc, scale))


@of_numbers
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return log_in_double(betainc, *_upper(x, a, b, loc, scale))
