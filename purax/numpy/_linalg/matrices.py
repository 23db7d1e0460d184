"""Matrices of a certain form: identities, triangles, diagonals, and the indices of these."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.api.transfer import device_put
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import is_at_most, is_symbolic_shape, max_dim, min_dim
from purax.core.source import located
from purax.core.trace import current
from purax.execution.eager import eager
from purax.numpy._creation.creation import asarray
from purax.numpy._creation.filled_arrays import filled
from purax.numpy._indexing.nonzero import nonzero
from purax.numpy._promotion import as_array, convert, shape_of
from purax.numpy._shape.axes import canonical_axis, integer
from purax.numpy._shape.shaping import moveaxis, ravel
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import eq, ge, select
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.primitives.shape.gather_scatter import take_along_axis
from purax.primitives.shape.reshaping import iota
from purax.primitives.shape.slicing import pad, slice_axis
from purax.typing import ArrayLike, DTypeLike

_INT32 = np.dtype(np.int32)
_SMALL = 1 << 16


def _sizes(name: str, rows: Any, columns: Any) -> tuple[int, int]:
    sizes = integer(name, "n", rows), integer(name, "m", rows if columns is None else columns)
    if min(sizes) < 0:
        raise located(ValueError, f"{name}: negative dimensions are not allowed, got {rows} and {columns}")
    return sizes


def _offsets(shape: tuple[int, int], k: Any) -> Array:
    """row + k − column for each element: 0 on the k-th diagonal, positive below it."""
    rows, columns = iota(_INT32, shape, 0), iota(_INT32, shape, 1)
    return sub(add(rows, convert(k, _INT32)) if not isinstance(k, int) or k else rows, columns)


def eye(
    N: int, M: int | None = None, k: Any = 0, dtype: DTypeLike | None = None, *, device: Any = None
) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns, by default N.
        k: which diagonal: 0 is the main one, positive ones lie above it.
        dtype: by default float.
        device: where to put it.

    Returns:
        An array of shape (N, M).

    >>> import purax.numpy as jnp
    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    shape, wanted = _sizes("eye", N, M), dtypes.as_dtype(dtype)
    is_known = not isinstance(k, Array) and not is_symbolic_shape(shape)
    if current.trace is eager and is_known and shape[0] * shape[1] <= _SMALL:
        result = asarray(np.eye(*shape, integer("eye", "k", k)), dtype=wanted)
    else:
        k = k if isinstance(k, Array) else integer("eye", "k", k)
        result = convert_element_type(eq(_offsets(shape, k), 0), wanted)
    return result if device is None else device_put(result, device)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """The square matrix with ones on the diagonal and zeros elsewhere.

    Args:
        n: the number of rows and columns.
        dtype: of the result, by default the default float.

    >>> import purax.numpy as jnp
    >>> jnp.identity(2, int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below a diagonal and zeros above.

    Args:
        N: the number of rows.
        M: the number of columns, by default N.
        k: which diagonal; may be an array, also a traced one.
        dtype: by default float.

    Returns:
        An array of shape (N, M).

    >>> import purax.numpy as jnp
    >>> jnp.tri(2, 3, dtype=int)
    Array([[1, 0, 0],
           [1, 1, 0]], dtype=int32)
    """
    shape, wanted = _sizes("tri", N, M), dtypes.as_dtype(dtype)
    if current.trace is eager and not isinstance(k, Array) and shape[0] * shape[1] <= _SMALL:
        return asarray(np.tri(*shape, integer("tri", "k", k)), dtype=wanted)
    k = k if isinstance(k, Array) else integer("tri", "k", k)
    return convert_element_type(ge(_offsets(shape, k), 0), wanted)


def _triangle(name: str, m: Any, k: Any, lower: bool) -> Array:
    m = as_array(m, name)
    shape = m.aval.shape
    if len(shape) < 2:
        raise located(ValueError, f"{name}: the array must have at least 2 axes, got shape {shape}")
    k = integer(name, "k", k)
    rows, columns = shape[-2:]
    inside = (
        asarray(np.tri(rows, columns, k if lower else k - 1, bool))
        if is_at_most(rows * columns, _SMALL) and not is_symbolic_shape((rows, columns))
        else ge(_offsets((rows, columns), k if lower else k - 1), 0)
    )
    if len(shape) > 2:
        inside = broadcast_in_dim(inside, shape, (len(shape) - 2, len(shape) - 1))
    zero = convert(0, m.aval.dtype) if m.aval.dtype != np.bool_ else np.zeros((), bool)
    return select(inside, m, zero) if lower else select(inside, zero, m)


def tril(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros above a diagonal of its last two axes.

    Args:
        m: a matrix, or a stack of matrices.
        k: the diagonal: 0 the main one, above it positive.

    >>> import purax.numpy as jnp
    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, k, lower=True)


def triu(m: ArrayLike, k: int = 0) -> Array:
    """`m` with zeros below a diagonal of its last two axes.

    Args:
        m: a matrix, or a stack of matrices.
        k: the diagonal: 0 the main one, above it positive.

    >>> import purax.numpy as jnp
    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return _triangle("triu", m, k, lower=False)


# --- indices


def _indices(mask: np.ndarray) -> tuple[Array, Array]:
    rows, columns = np.nonzero(mask)
    return asarray(rows), asarray(columns)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The row and column indices of the elements of an (n, m) matrix on and below a diagonal.

    Args:
        n: the number of rows.
        k: the diagonal: 0 the main one, above it positive.
        m: the number of columns, by default as many.

    >>> import purax.numpy as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _indices(np.tri(*_sizes("tril_indices", n, m), integer("tril_indices", "k", k), bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The row and column indices of the elements of an (n, m) matrix on and above a diagonal.

    Args:
        n: the number of rows.
        k: the diagonal: 0 the main one, above it positive.
        m: the number of columns, by default as many.

    >>> import purax.numpy as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _indices(~np.tri(*_sizes("triu_indices", n, m), integer("triu_indices", "k", k) - 1, bool))


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = tuple(arr.shape) if hasattr(arr, "shape") else shape_of(as_array(arr, name))
    if len(shape) != 2:
        raise located(ValueError, f"{name}: only arrays with 2 axes are accepted, got shape {shape}")
    return shape


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the elements of a matrix on and below a diagonal.

    Args:
        arr: a matrix.
        k: the diagonal: 0 the main one, above it positive.

    >>> import purax.numpy as jnp
    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """The indices of the elements of a matrix on and above a diagonal.

    Args:
        arr: a matrix.
        k: the diagonal: 0 the main one, above it positive.

    >>> import purax.numpy as jnp
    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with `ndim` axes of size n.

    Args:
        n: the size of the axes.
        ndim: the number of axes.

    >>> import purax.numpy as jnp
    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = integer("diag_indices", "n", n), integer("diag_indices", "ndim", ndim)
    if n < 0 or ndim < 0:
        raise located(ValueError, f"diag_indices: n and ndim must be non-negative, got {n} and {ndim}")
    return (asarray(np.arange(n)),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array whose axes have one size.

    Args:
        arr: an array whose axes have one size.

    >>> import purax.numpy as jnp
    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    shape = as_array(arr, "diag_indices_from").shape
    if len(shape) < 2:
        raise located(
            ValueError, f"diag_indices_from: the array must have at least 2 axes, got shape {shape}"
        )
    if len(set(shape)) != 1:
        raise located(ValueError, f"diag_indices_from: all axes must have one size, got shape {shape}")
    return diag_indices(shape[0], len(shape))


def mask_indices(n: int, mask_func: Any, k: int = 0, *, size: int | None = None) -> tuple[Array, Array]:
    """The indices of an (n, n) matrix at which `mask_func(ones, k)` is not zero.

    Args:
        n: the size of the matrix.
        mask_func: such as `jnp.triu` or `jnp.tril`.
        k: which diagonal, handed to `mask_func`.
        size: how many indices to return; missing ones are 0.

    Returns:
        Arrays of row and column indices.

    >>> import purax.numpy as jnp
    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = nonzero(mask_func(filled((n, n), 1, _INT32), k), size=size)
    return rows, columns


# --- diagonals


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A diagonal of two axes of `a`, as a new last axis.

    Args:
        a: an array with at least two axes.
        offset: which diagonal: positive ones lie above the main one.
        axis1: the axis of rows.
        axis2: the axis of columns.

    Returns:
        An array with one axis less.

    >>> import purax.numpy as jnp
    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    a = as_array(a, "diagonal")
    ndim = a.aval.ndim
    if ndim < 2:
        raise located(ValueError, f"diagonal: the array must have at least 2 axes, got shape {a.shape}")
    first, second = canonical_axis("diagonal", axis1, ndim), canonical_axis("diagonal", axis2, ndim)
    if first == second:
        raise located(ValueError, f"diagonal: axis1 and axis2 must differ, got {axis1} and {axis2}")
    offset = integer("diagonal", "offset", offset)
    a = moveaxis(a, (first, second), (-2, -1))
    rows, columns = a.aval.shape[-2:]
    start = (-offset, 0) if offset < 0 else (0, offset)
    length: Any = max_dim(min_dim(rows - start[0], columns - start[1]), 0)
    if not length:
        return (
            slice_axis(slice_axis(a, 0, 0, ndim - 1), 0, 1, ndim - 2).reshape(*a.aval.shape[:-2], 0)
            if rows
            else (slice_axis(a, 0, 0, ndim - 1).reshape(*a.aval.shape[:-2], 0))
        )
    # Every (columns + 1)-th element of the rows laid end to end.
    batch = a.aval.shape[:-2]
    window = slice_axis(
        slice_axis(a, start[0], start[0] + length, ndim - 2), start[1], start[1] + length, ndim - 1
    )
    if length.__class__ is not int:
        places = broadcast_in_dim(iota(np.dtype(np.int32), (length,)), (*batch, length, 1), (len(batch),))
        return take_along_axis(window, places, len(batch) + 1).reshape(*batch, length)
    line = window.reshape(*batch, length * length)
    return slice_axis(line, 0, length * length, len(batch), length + 1)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with `v` on a diagonal, or the diagonal of a matrix `v`.

    Args:
        v: an array with one or two axes.
        k: which diagonal: positive ones lie above the main one.

    Returns:
        A matrix, or its diagonal.

    >>> import purax.numpy as jnp
    >>> jnp.diag(jnp.array([1, 2])), jnp.diag(jnp.array([[1, 2], [3, 4]]), 1)
    (Array([[1, 0],
           [0, 2]], dtype=int32), Array([2], dtype=int32))
    """
    v = as_array(v, "diag")
    k = integer("diag", "k", k)
    if v.aval.ndim == 2:
        return diagonal(v, k)
    if v.aval.ndim != 1:
        raise located(ValueError, f"diag: the array must have 1 or 2 axes, got shape {v.shape}")
    size = v.aval.shape[0] + abs(k)
    zero = np.zeros((), v.aval.dtype)
    if not v.aval.shape[0]:
        return filled((size, size), 0, v.aval.dtype)
    # Each number followed by size zeros, then cut into rows.
    spread = pad(v, zero, [(0, 0, size)])
    first = k if k >= 0 else -k * size
    line = pad(spread, zero, [(first, size * size - first - spread.aval.shape[0], 0)])
    return line.reshape(size, size)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of `v` on a diagonal.

    Args:
        v: an array, which is flattened.
        k: the diagonal: 0 the main one, above it positive.

    >>> import purax.numpy as jnp
    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    return diag(ravel(as_array(v, "diagflat")), k)


__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "eye",
    "identity", "mask_indices", "tri", "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices",
    "triu_indices_from",
]  # fmt: skip
