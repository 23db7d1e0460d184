"""Norms of vectors and matrices.

The 2-norm, Frobenius' norm and the p-norms have derivative 0 at 0, where it does not exist: it is a subgradient, and a
NaN would spoil every sum that the norm is part of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._linalg.arguments import inexact_arrays
from purax.numpy._programs import as_one_program
from purax.numpy._promotion import FLOAT32
from purax.numpy._shape.axes import canonical_axes, items, with_kept_axes
from purax.primitives.elementwise.arithmetic import abs_, sqrt, square
from purax.primitives.elementwise.conversion import convert_element_type, imag, real
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import eq, ne, select
from purax.primitives.elementwise.transcendental import pow_
from purax.primitives.linalg.lapack import real_dtype
from purax.primitives.linalg.singular_values import svd
from purax.primitives.reductions.reduction import reduce_max, reduce_min
from purax.primitives.shape.broadcasting import move_axis, reduce_sum, zeros
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray

Axis = int | Sequence[int] | None


def _argument(name: str, x: Any) -> Array:
    if x.__class__ is DeviceArray and x.aval.dtype is FLOAT32 and not x.aval.weak_type:
        return x
    return inexact_arrays(name, x, narrow=True)[0]


# --- vectors


def _vector_norm_on_host(x: np.ndarray, *, order: Any, axes: tuple[int, ...]) -> np.ndarray:
    dtype = real_dtype(x.dtype)
    if order == 2:
        squares = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
        return np.sqrt(np.add.reduce(squares, axes))
    size = np.abs(x)
    if order == np.inf:
        return np.maximum.reduce(size, axes, initial=0)
    if order == -np.inf:
        return np.minimum.reduce(size, axes)
    if order == 0:
        return np.asarray(np.count_nonzero(size, axes)).astype(dtype)
    if order == 1:
        return np.add.reduce(size, axes, dtype=dtype)
    exponent = dtype.type(order)
    return np.power(np.add.reduce(np.power(size, exponent), axes), dtype.type(1 / order))


def _vector_norm(x: Array, *, order: Any, axes: tuple[int, ...]) -> Array:
    """Norms of vectors; those of narrow floats are computed in float32."""
    dtype = x.aval.dtype
    if dtype.itemsize >= 4:
        return _wide_vector_norm(x, order=order, axes=axes)
    result = _wide_vector_norm(convert_element_type(x, FLOAT32), order=order, axes=axes)
    return convert_element_type(result, dtype)


@as_one_program(_vector_norm_on_host)
def _wide_vector_norm(x: Array, *, order: Any, axes: tuple[int, ...]) -> Array:
    if order == 2:
        return _unless_zero(sqrt, reduce_sum(_squares(x), axes))
    size = abs_(x)
    if order == np.inf:
        return reduce_max(size, axes) if x.size else zeros_without(size, axes)
    if order == -np.inf:
        return reduce_min(size, axes)
    if order == 0:
        return reduce_sum(convert_element_type(ne(size, np.zeros((), size.dtype)), size.dtype), axes)
    if order == 1:
        return reduce_sum(size, axes)
    total = reduce_sum(pow_(size, np.array(order, size.dtype)), axes)
    if order < 0:
        return pow_(total, np.array(1 / order, size.dtype))
    return _unless_zero(lambda positive: pow_(positive, np.array(1 / order, size.dtype)), total)


def _squares(x: Any) -> Any:
    """|x|²"""
    if dtypes.is_complex(x.dtype):
        return add(square(real(x)), square(imag(x)))
    return square(x)


def _unless_zero(root: Callable[[Any], Any], total: Any) -> Any:
    """root(total), a root of a sum of powers, with derivative 0 at 0.

    The compiler may compute `total` once for each comparison, and round once so that it is 0 and once so that it is
    not. What stands for 0 under the root is therefore next to 0: the result is then small, too.
    """
    zero = np.zeros((), total.dtype)
    is_zero = eq(total, zero)
    positive = select(is_zero, dtypes.finfo(total.dtype).tiny, total)
    return select(is_zero, zero, root(positive))


def zeros_without(x: Any, axes: tuple[int, ...]) -> Any:
    """Zeros of the shape of a reduction of `x` over `axes`."""
    return zeros(x.aval.with_shape(tuple([n for axis, n in enumerate(x.shape) if axis not in axes])))


def _vector_order(name: str, order: Any) -> float:
    if order is None:
        return 2
    if isinstance(order, str) or not isinstance(order, (int, float, np.integer, np.floating)):
        raise located(
            ValueError,
            f"linalg.{name}: the order of a norm of vectors must be a number, inf or -inf, got {shown(order)}",
        )
    return float(order)


def vector_norm(
    x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: int | float | str = 2
) -> Array:
    """The norms of the vectors along axes.

    Args:
        x: an array.
        axis: one axis, several, or None for all: whose elements make up a vector.
        keepdims: whether these axes stay, with size 1.
        ord: p of the p-norm (Σ|xᵢ|ᵖ)^(1/p); `inf` is the largest, `-inf` the smallest size of an element, 0 the number
            of elements that are not zero.

    Returns:
        The norms, real.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    array = _argument("vector_norm", x)
    axes = canonical_axes("linalg.vector_norm", axis, array.aval.ndim)
    return _kept(
        _vector_norm(array, order=_vector_order("vector_norm", ord), axes=axes), array, axes, keepdims
    )


def _kept(result: Array, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return with_kept_axes(result, x.shape, axes) if keepdims else result


# --- matrices

_MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def _matrix_norm(name: str, x: Array, order: Any, axes: tuple[int, int]) -> Array:
    if order is None or order == "fro":
        return _vector_norm(x, order=2, axes=tuple(sorted(axes)))
    if order in ("nuc", 2, -2):
        row, column = axes
        moved = move_axis(x, row, x.ndim - 1)
        moved = move_axis(moved, column - (row < column), x.ndim - 1)
        s = svd(inexact_arrays(name, moved)[0], compute_uv=False)[0]
        last = (s.ndim - 1,)
        if order == "nuc":
            return reduce_sum(s, last)
        if not s.shape[-1]:
            return zeros_without(s, last)
        return reduce_max(s, last) if order == 2 else reduce_min(s, last)
    if order in (1, -1, math.inf, -math.inf):
        summed, left = axes if order in (1, -1) else axes[::-1]
        sums = _vector_norm(x, order=1, axes=(summed,))
        left -= summed < left
        if order > 0:
            return reduce_max(sums, (left,)) if sums.size else zeros_without(sums, (left,))
        return reduce_min(sums, (left,))
    raise located(
        ValueError,
        f"linalg.{name}: the order of a norm of matrices must be one of {_MATRIX_ORDERS} or None, got "
        f"{shown(order)}",
    )


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str = "fro") -> Array:
    """The norms of the matrices in the last two axes.

    Args:
        x: an array of shape [..., m, n].
        keepdims: whether the last two axes stay, with size 1.
        ord: "fro" for Frobenius' norm, "nuc" for the sum of singular values; 2 and -2 for the largest and smallest of
            them; 1 and -1 for the largest and smallest sum of sizes in a column, `inf` and `-inf` in a row.

    Returns:
        The norms, of shape [...].

    >>> import purax.numpy as jnp
    >>> jnp.linalg.matrix_norm(jnp.array([[1.0, 2.0], [3.0, 4.0]]), ord=1)
    Array(6., dtype=float32)
    """
    array = _argument("matrix_norm", x)
    if array.ndim < 2:
        raise located(
            ValueError, f"linalg.matrix_norm: the array must have at least 2 axes, got shape {array.shape}"
        )
    axes = (array.ndim - 2, array.ndim - 1)
    return _kept(_matrix_norm("matrix_norm", array, ord, axes), array, axes, keepdims)


def norm(
    x: ArrayLike, ord: int | float | str | None = None, axis: Axis = None, keepdims: bool = False
) -> Array:
    """The norm of vectors or of matrices.

    Args:
        x: an array.
        ord: the order; see `vector_norm` and `matrix_norm`. None is the 2-norm of vectors, Frobenius' of matrices.
        axis: one axis for norms of vectors, two for norms of matrices. None takes the whole array: as one vector if
            `ord` is None, else as the vector or matrix that it must be.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The norms, real. Their derivative at 0 is 0, not NaN as in JAX.

    >>> import purax as px, purax.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    >>> px.grad(jnp.linalg.norm)(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    array = _argument("norm", x)
    ndim = array.aval.ndim
    if axis is None:
        axes = tuple(range(ndim))
        if ord is None:
            return _kept(_vector_norm(array, order=2, axes=axes), array, axes, keepdims)
    else:
        axes = (axis,) if isinstance(axis, (int, np.integer)) else items("linalg.norm", "axis", axis)
        axes = tuple([canonical_axes("linalg.norm", one, ndim)[0] for one in axes])
        if len(set(axes)) != len(axes):
            raise located(ValueError, f"linalg.norm: duplicate value in 'axis': {axis}")
    if len(axes) == 1:
        return _kept(_vector_norm(array, order=_vector_order("norm", ord), axes=axes), array, axes, keepdims)
    if len(axes) == 2:
        return _kept(_matrix_norm("norm", array, ord, axes), array, axes, keepdims)
    raise located(
        ValueError,
        f"linalg.norm: one axis is needed for norms of vectors, two for norms of matrices; got axis={axis} for an "
        f"array of shape {array.shape}",
    )


__all__ = ["matrix_norm", "norm", "vector_norm"]
