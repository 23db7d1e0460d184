"""Poisson's distribution: μᵏ e^(−μ)/k!."""

from __future__ import annotations

import math

import numpy as np

from purax import numpy as jnp
from purax.core.array import Array
from purax.numpy._promotion import promotes_freely
from purax.scipy.special.entropy import xlogy
from purax.scipy.special.gamma import gammaincc, gammaln
from purax.scipy.stats.distribution import of_numbers, whole
from purax.typing import ArrayLike


@of_numbers
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithm of the probability of k.

    >>> from purax.scipy.stats import poisson
    >>> round(float(poisson.logpmf(1, 2.0)), 4)
    -1.3069
    """
    x = k - loc
    is_valid = (mu >= 0) & (x == x)
    is_inside = is_valid & (x >= 0) & whole(x)
    x, mu = jnp.where(is_inside, x, 0), jnp.where(is_inside, mu, 1)
    inner = xlogy(x, mu) - gammaln(x + 1) - mu
    return jnp.where(is_inside, inner, jnp.where(is_valid, -jnp.inf, jnp.nan))


@of_numbers
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of k."""
    return jnp.exp(logpmf(k, mu, loc))


@of_numbers
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of being at most k.

    >>> from purax.scipy.stats import poisson
    >>> round(float(poisson.cdf(1, 2.0)), 4)
    0.406
    """
    x = jnp.floor(k - loc)
    is_valid = (mu >= 0) & (x == x)
    is_inside = is_valid & (x >= 0)
    inner = gammaincc(jnp.where(is_inside, x, 0) + 1, jnp.where(is_inside, mu, 1))
    return jnp.where(is_inside, inner, jnp.where(is_valid, 0, jnp.nan))


LARGE = 100.0  # from here on by an asymptotic series
TERMS = 240  # of the sum below


@of_numbers
@promotes_freely
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy, in units of e.

    >>> from purax.scipy.stats import poisson
    >>> round(float(poisson.entropy(1.0)), 4)
    1.3048
    """
    mu = jnp.asarray(mu)
    is_large = mu > LARGE
    small = jnp.where(is_large | ~(mu > 0), 1, mu)[..., None]
    k = jnp.asarray(np.arange(TERMS), small.dtype)
    log_probability = k * jnp.log(small) - gammaln(k + 1) - small
    total = -jnp.sum(jnp.exp(log_probability) * log_probability, axis=-1)
    inverse = 1 / jnp.where(is_large, mu, LARGE)
    series = inverse * (1 / 12 + inverse * (1 / 24 + inverse * (19 / 360 + inverse * (9 / 80))))
    far = 0.5 * jnp.log(2 * math.pi * math.e * jnp.where(is_large, mu, LARGE)) - series
    result = jnp.where(is_large, far, total) + (loc - loc)
    return jnp.where(mu == 0, 0, jnp.where(mu > 0, result, jnp.nan))
