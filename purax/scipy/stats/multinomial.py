"""The multinomial distribution: of n trials, xᵢ have outcome i, each with probability pᵢ."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.numpy._promotion import promote_inexact
from purax.scipy.special.entropy import xlogy
from purax.scipy.special.gamma import gammaln
from purax.scipy.stats.distribution import whole
from purax.typing import ArrayLike


def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithm of the probability of the counts x.

    Args:
        x: how often each outcome came, along the last axis.
        n: how many trials there were; −∞ results if the counts have another sum.
        p: the probabilities of the outcomes, along the last axis.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.stats import multinomial
    >>> round(float(multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5]))), 4)
    -0.6931
    """
    x, p = map(jnp.asarray, promote_inexact("multinomial.logpmf", x, p))
    n = jnp.asarray(n).astype(x.dtype)
    is_count = (x >= 0) & whole(x)
    counts = jnp.where(is_count, x, 0)
    terms = xlogy(counts, p) - gammaln(counts + 1)
    is_possible = jnp.all(is_count, axis=-1) & (jnp.sum(x, axis=-1) == n)
    return jnp.where(is_possible, gammaln(n + 1) + jnp.sum(terms, axis=-1), -jnp.inf)


def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probability of the counts x; arguments as those of `logpmf`."""
    return jnp.exp(logpmf(x, n, p))
