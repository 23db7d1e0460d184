"""Von Mises' distribution of angles: e^(κ cos x)/(2π I₀(κ))."""

from __future__ import annotations

import math

from purax import numpy as jnp
from purax.core.array import Array
from purax.scipy.special.bessel import i0e
from purax.scipy.stats.distribution import of_numbers
from purax.typing import ArrayLike


def _exponent(x, kappa):
    """κ (cos x − 1), without cancellation."""
    return -2 * jnp.where(kappa >= 0, kappa, jnp.nan) * jnp.square(jnp.sin(x / 2))


@of_numbers
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density.

    >>> from purax.scipy.stats import vonmises
    >>> round(float(vonmises.logpdf(1.0, 2.0)), 4)
    -1.5813
    """
    return _exponent(x, kappa) - jnp.log(2 * math.pi * i0e(kappa))


@of_numbers
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density."""
    return jnp.exp(_exponent(x, kappa)) / (2 * math.pi * i0e(kappa))
