"""Linear algebra with the names and arguments of `jax.numpy.linalg`; matrices stand in the last two axes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from purax.core.array import Array
from purax.core.source import located
from purax.numpy._linalg import matrices as _matrices
from purax.numpy._linalg import products
from purax.numpy._linalg.decompositions import (
    EighResult,
    EigResult,
    QRResult,
    SVDResult,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from purax.numpy._linalg.least_squares import cond, lstsq, matrix_rank, pinv
from purax.numpy._linalg.norms import matrix_norm, norm, vector_norm
from purax.numpy._linalg.products import product_operands
from purax.numpy._linalg.solving import (
    SlogdetResult,
    det,
    inv,
    matrix_power,
    slogdet,
    solve,
    tensorinv,
    tensorsolve,
)
from purax.numpy._promotion import as_array, common_dtype, convert
from purax.numpy._shape import shaping
from purax.numpy._shape.axes import canonical_axis, items
from purax.typing import ArrayLike, DTypeLike


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The transposes of matrices: the last two axes swapped.

    Args:
        x: an array with at least two axes.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return shaping.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """A diagonal of matrices.

    Args:
        x: an array of shape [..., m, n].
        offset: which diagonal: positive ones lie above the main one.

    Returns:
        An array with one axis less.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return _matrices.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices.

    Args:
        x: an array of shape [..., m, n].
        offset: which diagonal: positive ones lie above the main one.
        dtype: of the result.

    Returns:
        An array with two axes less.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return products.trace(x, offset, -2, -1, dtype)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three components; `jnp.cross` also takes two.

    Args:
        x1, x2: arrays of vectors, broadcast against each other.
        axis: which holds the components.

    Returns:
        The vectors orthogonal to both.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    a, b = product_operands("linalg.cross", x1, x2)
    sizes = [x.shape[canonical_axis("linalg.cross", axis, x.ndim)] for x in (a, b)]
    if sizes != [3, 3]:
        raise located(
            ValueError,
            f"linalg.cross: vectors must have 3 components, got {sizes[0]} and {sizes[1]} along axis={axis} of "
            f"shapes {a.shape} and {b.shape}",
        )
    return products.cross(a, b, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of every element of one vector with every element of another.

    Args:
        x1: a vector.
        x2: another vector.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([1, 10]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    a, b = product_operands("linalg.outer", x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise located(
            ValueError, f"linalg.outer: both arrays must have 1 axis, got shapes {a.shape} and {b.shape}"
        )
    return products.outer(a, b)


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The product of matrices; see `jnp.matmul`.

    Args:
        x1: an array with at least one axis.
        x2: another.
        precision: of the products, as for `jnp.matmul`.
        preferred_element_type: the dtype that products are summed in and returned as.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The scalar products of the vectors along an axis; see `jnp.vecdot`.

    Args:
        x1: an array with at least one axis.
        x2: another, broadcast against it.
        axis: the axis of the vectors.
        precision: of the products, as for `jnp.matmul`.
        preferred_element_type: the dtype that products are summed in and returned as.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.vecdot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    return products.vecdot(
        x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sums of products over pairs of axes; see `jnp.tensordot`.

    Args:
        x1: an array with at least one axis.
        x2: another.
        axes: how many axes, or which of each, are summed over.
        precision: of the products, as for `jnp.matmul`.
        preferred_element_type: the dtype that products are summed in and returned as.
        out_sharding: how the result is sharded over devices.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.tensordot(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 1]]))
    Array(5, dtype=int32)
    """
    return products.tensordot(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
        arrays: at least two matrices; the first may be a vector, taken as a row, and the last one, taken as a column.
        precision: see `lax.Precision`.

    Returns:
        The product, without the axes of vectors.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.array([1, 2]), jnp.array([[1, 0], [0, 1]]), jnp.array([3, 4])])
    Array(11, dtype=int32)
    """
    arrays = items("linalg.multi_dot", "arrays", arrays, "a sequence of arrays")
    operands = [as_array(x, "linalg.multi_dot", i) for i, x in enumerate(arrays)]
    if len(operands) < 2:
        raise located(ValueError, f"linalg.multi_dot needs at least two arrays, got {len(operands)}")
    shapes = [x.shape for x in operands]
    ends = (0, len(operands) - 1)
    if any(len(shape) != 2 and not (len(shape) == 1 and i in ends) for i, shape in enumerate(shapes)):
        raise located(
            ValueError,
            "linalg.multi_dot: all arrays must have 2 axes, the first and the last may have 1; got shapes "
            f"{', '.join(map(str, shapes))}",
        )
    rows = [shape[0] if len(shape) == 2 else (1, shape[0])[i > 0] for i, shape in enumerate(shapes)]
    columns = [shape[-1] if len(shape) == 2 or i == 0 else 1 for i, shape in enumerate(shapes)]
    if any(columns[i] != rows[i + 1] for i in range(len(operands) - 1)):
        raise located(
            ValueError,
            "linalg.multi_dot: each matrix must have as many columns as the next one has rows; got shapes "
            f"{', '.join(map(str, shapes))}",
        )
    splits = _best_order((*rows, columns[-1]))
    dtype, weak = common_dtype(operands)  # of all factors, so that the order changes no rounding
    operands = [convert(x, dtype, weak) for x in operands]

    def product(first: int, last: int) -> Array:
        if first == last:
            return operands[first]
        middle = splits[first, last]
        return products.matmul(product(first, middle), product(middle + 1, last), precision=precision)

    return product(0, len(operands) - 1)


@functools.lru_cache(1024)
def _best_order(sizes: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Where to split each range of factors, factor i having sizes[i] rows and sizes[i + 1] columns."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    splits = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            costs = [
                (
                    cost[first, middle]
                    + cost[middle + 1, last]
                    + sizes[first] * sizes[middle + 1] * sizes[last + 1],
                    middle,
                )
                for middle in range(first, last)
            ]
            cost[first, last], splits[first, last] = min(costs)
    return splits


__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "cross", "det", "diagonal",
    "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip
