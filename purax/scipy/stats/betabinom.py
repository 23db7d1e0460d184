"""The binomial distribution of n trials whose probability of success has the beta distribution of a and b."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.gamma import betaln
from purax.scipy.stats.distribution import of_numbers, whole
from purax.typing import ArrayLike


@of_numbers
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k successes.

    >>> from purax.scipy.stats import betabinom
    >>> round(float(betabinom.logpmf(1, 2, 1.0, 1.0)), 4)
    -1.0986
    """
    x = k - loc
    is_valid = (n >= 0) & whole(n) & (a > 0) & (b > 0) & (x == x)
    is_inside = is_valid & (x >= 0) & (x <= n) & whole(x)
    x, trials = jnp.where(is_inside, x, 0), jnp.where(is_inside, n, 1)
    a, b = jnp.where(is_inside, a, 1), jnp.where(is_inside, b, 1)
    log_count = -betaln(trials - x + 1, x + 1) - jnp.log1p(trials)
    inner = log_count + betaln(x + a, trials - x + b) - betaln(a, b)
    return jnp.where(is_inside, inner, jnp.where(is_valid, -jnp.inf, jnp.nan))


@of_numbers
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k successes."""
    return jnp.exp(logpmf(k, n, a, b, loc))
