"""Normal vectors with a given covariance, and random orthogonal matrices."""

from __future__ import annotations

from typing import Any

from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.errors import shown
from purax.primitives.elementwise.arithmetic import sign, sqrt
from purax.primitives.elementwise.elementwise import add
from purax.primitives.linalg.eigen import eigh
from purax.primitives.linalg.matrices import diagonal_of, scale_columns, transposed
from purax.primitives.linalg.orthogonal import qr
from purax.primitives.linalg.singular_values import svd
from purax.primitives.linalg.triangular import cholesky, symmetrize
from purax.primitives.products.contraction import dot_general
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.random.arguments import as_operand, as_shape, float_dtype, placed, result_shape
from purax.random.keys import single_key
from purax.random.normals import standard_normal
from purax.random.sampling import sampler
from purax.typing import ArrayLike, DTypeLike, Shape

__all__ = ["multivariate_normal", "orthogonal"]


def _factor(covariance, method: str):
    """A with A Aᵀ = covariance."""
    if method == "cholesky":
        return cholesky(covariance)
    if method == "eigh":
        vectors, values = eigh(symmetrize(covariance))
    else:
        values, vectors, _ = svd(covariance)
    return scale_columns(vectors, sqrt(values))


@sampler()
def _multivariate_normal(words, mean, cov, *, implementation, shape, dtype, method):
    factor = _factor(cov, method)
    *batch, n, _ = aval_of(factor).shape
    z = standard_normal(words, implementation, shape, dtype)
    if batch:
        full = (*shape[:-1], n, n)
        factor = broadcast_in_dim(factor, full, range(len(full) - len(batch) - 2, len(full)))
        leading = tuple(range(len(shape) - 1))
        contracted = ((len(shape),), (len(shape) - 1,))
        x = dot_general(factor, z, dimension_numbers=(contracted, (leading, leading)))
    else:
        x = dot_general(z, factor, dimension_numbers=(((len(shape) - 1,), (1,)), ((), ())))
    return add(broadcast_in_dim(mean, shape, range(len(shape) - aval_of(mean).ndim, len(shape))), x)


def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Normal vectors with a given mean and covariance.

    Args:
        key: A key.
        mean: The mean, (…, n).
        cov: The covariance, (…, n, n), symmetric and positive definite (semidefinite, if `method` is not 'cholesky').
        shape: The shape of an array of vectors, which the leading axes of `mean` and `cov` broadcast to; what
            these have together by default.
        dtype: A float dtype, float32 by default.
        method: How the covariance is factored: 'cholesky', 'eigh' or 'svd'.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of shape (*shape, n).

    >>> import numpy as np
    >>> from purax import random
    >>> random.multivariate_normal(random.key(0), np.zeros(2), np.eye(2), (5,)).shape
    (5, 2)
    """
    found = single_key(key, "multivariate_normal")
    chosen = float_dtype(dtype, "multivariate_normal")
    if method not in ("cholesky", "eigh", "svd"):
        raise located(
            ValueError,
            f"multivariate_normal: method must be 'cholesky', 'eigh' or 'svd', got {shown(method)}",
        )
    centre = as_operand(mean, chosen, "multivariate_normal", "mean")
    covariance = as_operand(cov, chosen, "multivariate_normal", "cov")
    if not centre.ndim or covariance.ndim < 2 or covariance.shape[-2:] != (centre.shape[-1],) * 2:
        raise located(
            ValueError,
            "multivariate_normal: mean must have shape (..., n) and cov shape (..., n, n); got "
            f"{centre.shape} and {covariance.shape}",
        )
    leading = {"mean": _Leading(centre, 1), "cov": _Leading(covariance, 2)}
    batch = result_shape(shape, "multivariate_normal", **leading)
    static = {"implementation": found.implementation, "shape": (*batch, centre.shape[-1]), "dtype": chosen}
    drawn = _multivariate_normal(found.words, centre, covariance, **static, method=method)
    return placed(drawn, out_sharding)


class _Leading:
    """Stands for an operand without its last axes."""

    def __init__(self, x: Any, axes: int):
        self.aval = aval_of(x).with_shape(x.shape[: x.ndim - axes])


@sampler()
def _orthogonal(words, *, implementation, shape, dtype):
    *batch, n, m = shape
    z = standard_normal(words, implementation, (*batch, max(n, m), min(n, m)), dtype)
    q, r = qr(z, full_matrices=False)
    q = scale_columns(q, sign(diagonal_of(r)))  # makes the factors unique, and q uniform
    return transposed(q) if n < m else q


def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform orthogonal matrices, or unitary ones for a complex dtype.

    Args:
        key: A key.
        n: The number of rows.
        shape: The shape of an array of matrices.
        dtype: A float or complex dtype, float32 by default.
        m: The number of columns, `n` by default; rows or columns, whichever are fewer, are orthonormal.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of shape (*shape, n, m).

    >>> from purax import random
    >>> random.orthogonal(random.key(0), 3, (2,)).shape
    (2, 3, 3)
    """
    found = single_key(key, "orthogonal")
    chosen = float_dtype(dtype, "orthogonal", or_complex=True)
    try:
        rows = as_size(n)
        columns = rows if m is None else as_size(m)
    except TypeError:
        raise located(
            TypeError, f"orthogonal: n and m must be integers, got {shown(n):.60} and {shown(m):.60}"
        ) from None
    full = as_shape((*as_shape(shape, "orthogonal"), rows, columns), "orthogonal", "n and m")
    static = {"implementation": found.implementation, "shape": full, "dtype": chosen}
    return placed(_orthogonal(found.words, **static), out_sharding)
