"""The normal distribution of vectors, with mean vectors and covariance matrices."""

from __future__ import annotations

import math

from purax import numpy as jnp
from purax.core.array import Array
from purax.core.source import located
from purax.lax import linalg
from purax.numpy._linalg.arguments import inexact_arrays
from purax.typing import ArrayLike


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """The logarithm of the density.

    Args:
        x: points, of shape [..., n].
        mean: the means, of shape [..., n]. For a number, the elements of `x` are numbers of their own.
        cov: the covariance matrices, of shape [..., n, n]; a number stands for a multiple of the identity.
        allow_singular: not supported.

    Returns:
        An array of the axes in front, broadcast; NaN where a matrix is not positive definite.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.stats import multivariate_normal
    >>> round(float(multivariate_normal.logpdf(jnp.ones(2), jnp.zeros(2), jnp.eye(2))), 4)
    -2.8379
    """
    if allow_singular is not None:
        raise located(NotImplementedError, "multivariate_normal.logpdf: allow_singular is not supported")
    x, mean, cov = inexact_arrays("multivariate_normal.logpdf", x, mean, cov)
    if mean.ndim == 0:
        return -0.5 * jnp.square(x - mean) / cov - 0.5 * (math.log(2 * math.pi) + jnp.log(cov))
    size = mean.shape[-1]
    distance = x - mean
    if cov.ndim == 0:
        squares = jnp.sum(jnp.square(distance), axis=-1) / cov
        return -0.5 * (squares + size * (math.log(2 * math.pi) + jnp.log(cov)))
    if cov.ndim < 2 or cov.shape[-2:] != (size, size):
        raise located(
            ValueError,
            f"multivariate_normal.logpdf: for a mean of shape {mean.shape}, cov must have shape [..., {size}, "
            f"{size}], got {cov.shape}",
        )
    factor = linalg.cholesky(cov)
    half_log_det = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    batch = jnp.broadcast_shapes(distance.shape[:-1], cov.shape[:-2])
    if cov.ndim == 2:  # one matrix for all points: they are the columns of one right side
        columns = jnp.reshape(distance, (-1, size)).T
        solved = linalg.triangular_solve(factor, columns, left_side=True, lower=True)
        squares = jnp.reshape(jnp.sum(jnp.square(solved), axis=0), batch)
    else:
        factors = jnp.broadcast_to(factor, (*batch, size, size))
        columns = jnp.broadcast_to(distance, (*batch, size))[..., None]
        solved = linalg.triangular_solve(factors, columns, left_side=True, lower=True)
        squares = jnp.sum(jnp.square(solved[..., 0]), axis=-1)
    return -0.5 * squares - half_log_det - 0.5 * size * math.log(2 * math.pi)


def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density; arguments as those of `logpdf`."""
    return jnp.exp(logpdf(x, mean, cov))
