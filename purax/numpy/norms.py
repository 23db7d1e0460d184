"""Norms of vectors and matrices.

Vector norms and the norms of matrices by rows and columns are sums and extrema; the spectral and the nuclear norm are
made of singular values. Results are real, and floating point numbers for integers, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes, source
from purax.core.array import Array
from purax.numpy.arithmetic import abs, power, sqrt
from purax.numpy.axes import canonical_axes
from purax.numpy.programs import as_one_program, strong_array
from purax.numpy.promotion import as_array, convert
from purax.numpy.reductions import max, min, sum
from purax.numpy.shaping import expand_dims, moveaxis
from purax.numpy.statistics import computed_dtype, square_length
from purax.ops.singular_values import svd
from purax.typing import ArrayLike


def _numbers(name: str, x: Any) -> tuple[Array, np.dtype]:
    """An argument as floating point numbers to compute with, and the dtype of its norm."""
    array = strong_array(x, name)
    dtype = dtypes.to_inexact_dtype(array.dtype)
    return convert(array, computed_dtype(dtype)), dtypes.to_real_dtype(dtype)


def norm(
    x: ArrayLike,
    ord: Any = None,
    axis: None | tuple[int, ...] | int = None,
    keepdims: bool = False,
) -> Array:
    """The norm of vectors or of matrices.

    Args:
        x: the array.
        ord: which norm. For vectors: a number p for (Σ|x|ᵖ)^(1/p), inf, -inf, or 0 for the number of elements that are
            not 0. For matrices: "fro", "nuc", 1, -1, 2, -2, inf, -inf. None for the 2-norm of all elements.
        axis: the axis of vectors, or the pair of axes of matrices; None for the whole array.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The norms, real.

    >>> import purax.numpy as jnp
    >>> norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    array, result = _numbers("norm", x)
    ndim = array.ndim
    if axis is None and ord is None:
        return convert(_euclidean(array, axes=tuple(range(ndim)), keepdims=bool(keepdims)), result)
    axes = canonical_axes("norm", axis, ndim)
    if len(axes) == 1:
        return convert(_vector_norm(array, axes, ord, keepdims), result)
    if len(axes) == 2:
        return convert(_matrix_norm(array, axes, ord, keepdims), result)
    raise source.with_location(
        ValueError(
            f"norm: improper number of axes for norm: axis={axes} of an array of shape {array.shape}. Pass one axis to "
            "compute a vector norm, or two axes to compute a matrix norm."
        )
    )


def vector_norm(
    x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: Any = 2
) -> Array:
    """The norm of vectors along axes; several axes together hold one vector.

    Args:
        x: the array.
        axis: one axis, several, or None for all.
        keepdims: whether the axes stay, with size 1.
        ord: a number p for (Σ|x|ᵖ)^(1/p), inf, -inf, or 0 for the number of elements that are not 0.

    Returns:
        The norms, real.

    >>> import purax.numpy as jnp
    >>> vector_norm(jnp.array([[3.0, 4.0], [0.0, 1.0]]), axis=1)
    Array([5., 1.], dtype=float32)
    """
    array, result = _numbers("vector_norm", x)
    axes = canonical_axes("vector_norm", axis, array.ndim)
    return convert(_vector_norm(array, axes, ord, keepdims), result)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of the matrices in the last two axes.

    Args:
        x: the array.
        keepdims: whether the axes stay, with size 1.
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    Returns:
        The norms, real.

    >>> import purax.numpy as jnp
    >>> matrix_norm(jnp.array([[1.0, -2.0], [3.0, 4.0]]), ord=1)
    Array(6., dtype=float32)
    """
    array, result = _numbers("matrix_norm", x)
    if array.ndim < 2:
        raise source.with_location(
            ValueError(f"matrix_norm needs matrices in the last two axes, got shape {array.shape}")
        )
    axes = (array.ndim - 2, array.ndim - 1)
    return convert(_matrix_norm(array, axes, ord, keepdims), result)


def _euclidean_on_host(x, *, axes, keepdims):
    squares = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
    return np.sqrt(np.add.reduce(squares, axes, keepdims=keepdims))


@as_one_program(_euclidean_on_host)
def _euclidean(x, *, axes, keepdims):
    return sqrt(sum(square_length(x), axes, None, None, keepdims))


def _vector_norm(x: Array, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Array:
    if ord is None or (isinstance(ord, (int, float)) and ord == 2):
        return _euclidean(x, axes=axes, keepdims=bool(keepdims))
    if isinstance(ord, str) and ord not in ("inf", "-inf"):
        raise source.with_location(ValueError(f"norm: invalid order {ord!r} for vector norm; give a number"))
    if ord in ("inf", np.inf):
        return max(abs(x), axes, None, keepdims, 0)
    if ord in ("-inf", -np.inf):
        return min(abs(x), axes, None, keepdims, np.inf)
    if isinstance(ord, (int, float)) and ord == 0:
        real = dtypes.to_real_dtype(x.dtype)
        return sum((x != 0).astype(real), axes, None, None, keepdims)
    if isinstance(ord, (int, float)) and ord == 1:
        return sum(abs(x), axes, None, None, keepdims)
    p = as_array(ord, "norm(ord=...)")
    if p.ndim:
        raise source.with_location(ValueError(f"norm: ord must be a number, got an array of shape {p.shape}"))
    p = p.astype(dtypes.to_real_dtype(x.dtype))
    return power(sum(power(abs(x), p), axes, None, None, keepdims), 1 / p)


def _matrix_norm(x: Array, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Array:
    rows, columns = axes
    if ord is None or ord in ("f", "fro"):
        return _euclidean(x, axes=axes, keepdims=bool(keepdims))
    if not isinstance(ord, str) and ord in (1, -1, np.inf, -np.inf):
        sums = sum(abs(x), rows if ord in (1, -1) else columns, None, None, True)
        return (max if ord > 0 else min)(sums, axes, None, keepdims)
    if ord == "nuc" or (not isinstance(ord, str) and ord in (2, -2)):
        (values,) = svd(moveaxis(x, (rows, columns), (-2, -1)), compute_uv=False)
        if ord == "nuc":
            result = sum(values, -1)
        else:
            result = max(values, -1, None, False, 0) if ord == 2 else min(values, -1, None, False, np.inf)
        return expand_dims(result, sorted(axes)) if keepdims else result
    raise source.with_location(
        ValueError(
            f"norm: invalid order {ord!r} for matrix norm; give 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        )
    )
