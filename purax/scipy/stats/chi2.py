"""The χ² distribution with `df` degrees of freedom: the gamma distribution with a = df/2, twice as wide."""

from __future__ import annotations

from purax.core.array import Array
from purax.scipy.stats import gamma
from purax.scipy.stats.distribution import of_numbers
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import chi2
    >>> round(float(chi2.logpdf(1.0, 2.0)), 4)
    -1.1931
    """
    return gamma.logpdf(x, df / 2, loc, scale * 2)


@of_numbers
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return gamma.pdf(x, df / 2, loc, scale * 2)


@of_numbers
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x.

    >>> from purax.scipy.stats import chi2
    >>> round(float(chi2.cdf(3.84, 1.0)), 2)
    0.95
    """
    return gamma.cdf(x, df / 2, loc, scale * 2)


@of_numbers
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `cdf`."""
    return gamma.logcdf(x, df / 2, loc, scale * 2)


@of_numbers
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being more than x."""
    return gamma.sf(x, df / 2, loc, scale * 2)


@of_numbers
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of `sf`."""
    return gamma.logsf(x, df / 2, loc, scale * 2)
