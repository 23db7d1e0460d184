"""Cauchy's distribution wrapped around the circle: (1 − c²)/(2π (1 + c² − 2c cos x)) for 0 ≤ x ≤ 2π and 0 < c < 1."""

from __future__ import annotations

import math

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.stats.distribution import of_numbers
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import wrapcauchy
    >>> round(float(wrapcauchy.logpdf(1.0, 0.5)), 4)
    -1.7826
    """
    c = jnp.where((c > 0) & (c < 1), c, jnp.nan)
    # 1 + c² − 2c cos x = (1 − c)² + 4c sin²(x/2)
    spread = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(x / 2))
    inner = jnp.log1p(-c) + jnp.log1p(c) - math.log(2 * math.pi) - jnp.log(spread)
    return jnp.where(((x < 0) | (x > 2 * math.pi)) & (c == c), -jnp.inf, inner)


@of_numbers
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, c))
