"""The negative binomial distribution: k failures before success number n, each success with probability p."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.entropy import xlog1py, xlogy
from purax.scipy.special.gamma import betaln
from purax.scipy.stats.distribution import of_numbers, whole
from purax.typing import ArrayLike


@of_numbers
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k failures.

    >>> from purax.scipy.stats import nbinom
    >>> round(float(nbinom.logpmf(1, 1, 0.5)), 4)
    -1.3863
    """
    x = k - loc
    is_valid = (n > 0) & (p > 0) & (p <= 1) & (x == x)
    is_inside = is_valid & (x >= 0) & whole(x)
    x, n, p = jnp.where(is_inside, x, 0), jnp.where(is_inside, n, 1), jnp.where(is_inside, p, 0.5)
    log_count = -betaln(x + 1, n) - jnp.log(x + n)  # Γ(x + n)/(x! Γ(n))
    inner = log_count + xlogy(n, p) + xlog1py(x, -p)
    return jnp.where(is_inside, inner, jnp.where(is_valid, -jnp.inf, jnp.nan))


@of_numbers
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k failures."""
    return jnp.exp(logpmf(k, n, p, loc))
