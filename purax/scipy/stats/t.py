"""Student's distribution with `df` degrees of freedom: (1 + z²/df)^(−(df + 1)/2)/(√df B(½, df/2) scale)."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.gamma import betaln
from purax.scipy.stats.distribution import of_numbers, positive, standardized
from purax.typing import ArrayLike


@of_numbers
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density; with infinitely many degrees of freedom that of the normal distribution.

    >>> from purax.scipy.stats import t
    >>> round(float(t.logpdf(1.0, 2.0)), 4)
    -1.6479
    """
    z = standardized(x, loc, scale)
    is_normal = jnp.isinf(df) & (df > 0)
    df = positive(jnp.where(is_normal, 1, df))
    # z²/df as (z/√df)², of which the logarithm does not overflow
    ratio = jnp.abs(z) / jnp.sqrt(df)
    is_far = ratio > 1e4
    near = jnp.log1p(jnp.square(jnp.where(is_far, 1, ratio)))
    far = 2 * jnp.log(jnp.where(is_far, ratio, 1)) + jnp.log1p(jnp.square(1 / jnp.where(is_far, ratio, 1)))
    power = -0.5 * (df + 1) * jnp.where(is_far, far, near)
    student = power - 0.5 * jnp.log(df) - betaln(jnp.full_like(df, 0.5), df / 2)
    return jnp.where(is_normal, -0.5 * z * z - 0.9189385332046727, student) - jnp.log(scale)


@of_numbers
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, df, loc, scale))
