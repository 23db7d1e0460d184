"""The generalized normal distribution: β/(2 Γ(1/β)) e^(−|x|^β)."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.gamma import gammaincc, gammaln
from purax.scipy.stats.distribution import of_numbers, positive
from purax.typing import ArrayLike


def _power(x, beta):
    """|x|^β with the derivative 0 with respect to β at x = 0."""
    size = jnp.abs(x)
    return jnp.where(size == 0, 0, jnp.where(size == 0, 1, size) ** beta)


@of_numbers
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import gennorm
    >>> round(float(gennorm.logpdf(0.0, 2.0)), 4)
    -0.5724
    """
    beta = positive(beta)
    return jnp.log(beta / 2) - gammaln(1 / beta) - _power(x, beta)


@of_numbers
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, beta))


@of_numbers
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of being at most x."""
    beta = positive(beta)
    tail = 0.5 * gammaincc(1 / beta, _power(x, beta))
    return jnp.where(x < 0, tail, 1 - tail)
