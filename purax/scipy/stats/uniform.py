"""The uniform distribution between `loc` and `loc + scale`."""

from __future__ import annotations

import functools

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.stats.distribution import of_numbers, positive, quantile, standardized
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import uniform
    >>> float(uniform.logpdf(0.5)), float(uniform.logpdf(2.0))
    (-0.0, -inf)
    """
    z = standardized(x, loc, scale)
    return jnp.where((z < 0) | (z > 1), -jnp.inf, jnp.where(jnp.isnan(z), z, -jnp.log(scale)))


@of_numbers
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    z = standardized(x, loc, scale)
    return jnp.where((z < 0) | (z > 1), 0, jnp.where(jnp.isnan(z), z, 1 / scale))


@functools.partial(of_numbers, strongly=True)
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of being at most x."""
    return jnp.clip(standardized(x, loc, scale), 0, 1)


@of_numbers
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of `cdf`."""
    return quantile(q, q) * positive(scale) + loc
