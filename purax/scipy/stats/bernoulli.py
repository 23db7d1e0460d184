"""Bernoulli's distribution: 1 with probability p, else 0."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.entropy import xlog1py, xlogy
from purax.scipy.stats.distribution import of_numbers, quantile
from purax.typing import ArrayLike


def _probability(p):
    return jnp.where((p >= 0) & (p <= 1), p, jnp.nan)


@of_numbers
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> from purax.scipy.stats import bernoulli
    >>> round(float(bernoulli.logpmf(1, 0.5)), 4)
    -0.6931
    """
    x = k - loc
    is_outside = (x != 0) & (x != 1)
    safe = jnp.where(is_outside, 0, x)
    p = _probability(p)
    return jnp.where(
        is_outside & (p == p) & (x == x), -jnp.inf, xlogy(safe, p) + xlog1py(1 - safe, -p) + (x - x)
    )


@of_numbers
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return jnp.exp(logpmf(k, p, loc))


@of_numbers
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of being at most k."""
    p = _probability(p)
    return jnp.where(jnp.isnan(k), jnp.nan, jnp.where(k < 0, 0 * p, jnp.where(k < 1, 1 - p, 1 + 0 * p)))


@of_numbers
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The smallest k whose `cdf` is at least q."""
    p = _probability(p)
    is_success = jnp.where(q >= 0.5, p > 1 - q, q > 1 - p)  # of these differences one is exact
    return quantile(q, jnp.where(is_success, 1, 0) + 0 * p)
