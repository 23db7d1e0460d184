"""The binomial distribution: of n trials that each succeed with probability p, k do."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.entropy import xlog1py, xlogy
from purax.scipy.special.gamma import betaln
from purax.scipy.stats.distribution import of_numbers, whole
from purax.typing import ArrayLike


@of_numbers
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k successes.

    >>> from purax.scipy.stats import binom
    >>> round(float(binom.logpmf(1, 2, 0.5)), 4)
    -0.6931
    """
    x = k - loc
    is_valid = (n >= 0) & whole(n) & (p >= 0) & (p <= 1) & (x == x)
    is_inside = is_valid & (x >= 0) & (x <= n) & whole(x)
    x, trials, p = jnp.where(is_inside, x, 0), jnp.where(is_inside, n, 1), jnp.where(is_inside, p, 0.5)
    log_count = -betaln(trials - x + 1, x + 1) - jnp.log1p(trials)
    inner = log_count + xlogy(x, p) + xlog1py(trials - x, -p)
    return jnp.where(is_inside, inner, jnp.where(is_valid, -jnp.inf, jnp.nan))


@of_numbers
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k successes."""
    return jnp.exp(logpmf(k, n, p, loc))
