"""Dirichlet's distribution on the numbers xᵢ ≥ 0 of sum 1: Γ(Σ αᵢ) Π xᵢ^(αᵢ − 1)/Γ(αᵢ)."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._promotion import common_dtype, convert
from purax.scipy.special.entropy import xlogy
from purax.scipy.special.gamma import gammaln
from purax.typing import ArrayLike


def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density.

    Args:
        x: points of shape [k, ...]; or [k − 1, ...], where the last number is the rest to 1.
        alpha: positive numbers, of shape [k].

    Returns:
        An array of the shape of `x` without its first axis; −∞ for points whose sum is not 1.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.stats import dirichlet
    >>> round(float(dirichlet.logpdf(jnp.array([0.5, 0.5]), jnp.array([1.0, 2.0]))), 4)
    0.0
    """
    x, alpha = jnp.asarray(x), jnp.asarray(alpha)
    dtype = dtypes.to_inexact_dtype(common_dtype([x, alpha])[0])
    x, alpha = convert(x, dtype), convert(alpha, dtype)
    if alpha.ndim != 1:
        raise located(ValueError, f"dirichlet.logpdf: alpha must have one axis, got shape {alpha.shape}")
    size = alpha.shape[0]
    if x.ndim == 0 or x.shape[0] not in (size, size - 1):
        raise located(
            ValueError,
            f"dirichlet.logpdf: for alpha of shape {alpha.shape}, x must have {size} or {size - 1} numbers along "
            f"its first axis, got shape {x.shape}",
        )
    if x.shape[0] == size - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    column = jnp.reshape(alpha, (size, *([1] * (x.ndim - 1))))
    tolerance = 8 * size * float(dtypes.finfo(dtype).eps)
    is_inside = jnp.all((x >= 0) & (x <= 1), axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) <= tolerance)
    safe = jnp.where(is_inside, x, 1 / size)
    constant = gammaln(jnp.sum(alpha)) - jnp.sum(gammaln(alpha))
    valid = jnp.where(jnp.all(alpha > 0), constant, jnp.nan)
    return jnp.where(is_inside, jnp.sum(xlogy(column - 1, safe), axis=0) + valid, -jnp.inf)


def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density; arguments as those of `logpdf`."""
    return jnp.exp(logpdf(x, alpha))
