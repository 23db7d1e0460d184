"""The geometric distribution: the first success comes with trial k, each with probability p."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.entropy import xlog1py
from purax.scipy.stats.distribution import of_numbers, whole
from purax.typing import ArrayLike


@of_numbers
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> from purax.scipy.stats import geom
    >>> round(float(geom.logpmf(2, 0.5)), 4)
    -1.3863
    """
    x = k - loc
    is_valid = (p > 0) & (p <= 1) & (x == x)
    is_inside = is_valid & (x >= 1) & whole(x)
    x, p = jnp.where(is_inside, x, 1), jnp.where(is_inside, p, 0.5)
    return jnp.where(is_inside, xlog1py(x - 1, -p) + jnp.log(p), jnp.where(is_valid, -jnp.inf, jnp.nan))


@of_numbers
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return jnp.exp(logpmf(k, p, loc))
