"""Products of vectors, matrices and arrays of more axes: dot, matmul, tensordot and related functions.

All become `dot_general`. Operands are promoted to one dtype; booleans are combined by and, or. `precision` and
`preferred_element_type` are handed on; a `precision` of None means the configured `default_matmul_precision`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._elementwise.arithmetic import multiply
from purax.numpy._linalg.matrices import diagonal
from purax.numpy._programs import as_one_program
from purax.numpy._promotion import (
    IncompatibleShapesError,
    as_array,
    broadcast_shapes,
    common_dtype,
    convert,
    refuse_out,
)
from purax.numpy._reductions.reductions import sum as reduced_sum
from purax.numpy._shape.axes import canonical_axis
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.conversion import conj, convert_element_type
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.products.contraction import canonical_precision, dot_general_p
from purax.primitives.shape.broadcasting import broadcast_in_dim, move_axis, transpose
from purax.primitives.shape.reshaping import reshape, squeeze, stack
from purax.primitives.shape.slicing import slice_axis
from purax.sharding.constraints import freely
from purax.typing import ArrayLike, DTypeLike

_NONE = ((), ())
_VECTORS = (((0,), (0,)), _NONE)
_MATRICES = (((1,), (0,)), _NONE)
_FAST = {(1, 1): _VECTORS, (2, 1): _MATRICES, (2, 2): _MATRICES, (1, 2): _VECTORS}  # by the numbers of axes


def product_operands(name: str, a: Any, b: Any) -> tuple[Array, Array]:
    """Two arguments as arrays of one dtype, of any shapes."""
    a, b = as_array(a, name, 0), as_array(b, name, 1)
    if a.aval.dtype is b.aval.dtype and a.aval.weak_type == b.aval.weak_type:
        return a, b
    dtype, weak = common_dtype((a, b))
    return convert(a, dtype, weak), convert(b, dtype, weak)


def contracted(
    name: str, a: Array, b: Array, dimension_numbers: tuple, precision: Any, preferred: Any
) -> Array:
    """`dot_general`, with an error that names the user's function."""
    (a_axes, b_axes), _ = dimension_numbers
    for i, j in zip(a_axes, b_axes, strict=True):
        if a.shape[i] != b.shape[j]:
            raise located(
                IncompatibleShapesError,
                f"{name} got incompatible shapes {a.shape} and {b.shape}: axis {i} of the first has size "
                f"{a.shape[i]}, axis {j} of the second has size {b.shape[j]}, and they are summed over together "
                "(dot_general requires contracting dimensions to have the same shape, got "
                f"{tuple(a.shape[k] for k in a_axes)} and {tuple(b.shape[k] for k in b_axes)})",
            )
    if preferred is not None:
        preferred = dtypes.as_dtype(preferred, f"{name}: preferred_element_type")
    return dot_general_p.bind(
        a,
        b,
        dimension_numbers=dimension_numbers,
        precision=canonical_precision(precision),
        preferred_element_type=preferred,
    )


def scaled(a: Array, b: Array, preferred: Any) -> Array:
    """The product where one of the two is a scalar."""
    result = multiply(a, b)
    return result if preferred is None else convert_element_type(result, preferred, result.weak_type)


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sums of products over the last axis of `a` and the last but one of `b`.

    Args:
        a: an array.
        b: an array; its only axis, if it is a vector, is summed over.
        precision: see `lax.Precision`.
        preferred_element_type: the dtype of the result.
        out_sharding: how the result is sharded over devices.

    Returns:
        The product of two vectors, of a matrix and a vector, of two matrices; a plain product if one is a scalar.

    >>> import purax.numpy as jnp
    >>> jnp.dot(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0]))
    Array([21., 43.], dtype=float32)
    """
    if out_sharding is not None:
        product = functools.partial(dot, precision=precision, preferred_element_type=preferred_element_type)
        return freely(product, out_sharding, a, b)
    if isinstance(a, Array) and isinstance(b, Array):
        one, other = a.aval, b.aval
        if one.dtype is other.dtype and precision is None and preferred_element_type is None:
            if not (one.weak_type or other.weak_type) and config.default_matmul_precision is None:
                numbers = _FAST.get((one.ndim, other.ndim))
                if numbers is not None and one.shape[-1] == other.shape[0]:
                    return dot_general_p.bind(
                        a, b, dimension_numbers=numbers, precision=None, preferred_element_type=None
                    )
    x, y = product_operands("dot", a, b)
    if not x.ndim or not y.ndim:
        return scaled(x, y, preferred_element_type)
    axes = (((x.ndim - 1,), (max(y.ndim - 2, 0),)), _NONE)
    return contracted("dot", x, y, axes, precision, preferred_element_type)


# --- matmul


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product of matrices; `a @ b`.

    Args:
        a: a vector, a matrix, or an array of matrices in its last two axes.
        b: a vector, a matrix, or an array of matrices in its last two axes.
        precision: see `lax.Precision`.
        preferred_element_type: the dtype of the result.
        out_sharding: how the result is sharded over devices.

    Returns:
        The products; the axes before the last two are broadcast against each other. A vector on the left is a row, on
        the right a column, and its axis is not in the result.

    >>> import purax.numpy as jnp
    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([[0, 1], [1, 0]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    if out_sharding is not None:
        product = functools.partial(
            matmul, precision=precision, preferred_element_type=preferred_element_type
        )
        return freely(product, out_sharding, a, b)
    if isinstance(a, Array) and isinstance(b, Array):
        one, other = a.aval, b.aval
        if one.dtype is other.dtype and precision is None and preferred_element_type is None:
            if not (one.weak_type or other.weak_type) and config.default_matmul_precision is None:
                numbers = _FAST.get((one.ndim, other.ndim))
                if numbers is not None and one.shape[-1] == other.shape[0]:
                    return dot_general_p.bind(
                        a, b, dimension_numbers=numbers, precision=None, preferred_element_type=None
                    )
    x, y = product_operands("matmul", a, b)
    for position, operand in enumerate((x, y)):
        if not operand.ndim:
            raise located(
                ValueError,
                f"matmul: input operand {position} must have ndim at least 1, but it has ndim 0. For products "
                "with a scalar write a * b.",
            )
    x_squeezed, y_squeezed, numbers, order = _matmul_plan(x.shape, y.shape)
    x, y = squeeze(x, x_squeezed), squeeze(y, y_squeezed)
    result = contracted("matmul", x, y, numbers, precision, preferred_element_type)
    return transpose(result, order)


@functools.lru_cache(4096)
def _matmul_plan(a: tuple[int, ...], b: tuple[int, ...]) -> tuple:
    """Axes to squeeze, the numbers of the product, and the order of its axes, for operands of two shapes.

    An axis of size 1 that meets a larger one is squeezed away, so that nothing is repeated.
    """
    a_batch, b_batch = a[:-2], b[:-2]
    try:
        batch = broadcast_shapes(a_batch, b_batch)
    except IncompatibleShapesError:
        raise IncompatibleShapesError(
            f"matmul got incompatible shapes for broadcasting: {a} and {b}; the axes before the last two, {a_batch} "
            f"and {b_batch}, must be equal or 1"
        ) from None
    kinds = []  # per axis of the batch: is it in a, is it in b
    squeezed: tuple[list[int], list[int]] = ([], [])
    for position in range(-len(batch), 0):
        present = []
        for side, own in enumerate((a_batch, b_batch)):
            has_axis = -position <= len(own)
            if has_axis and own[position] != batch[position]:
                squeezed[side].append(len(own) + position)
                has_axis = False
            present.append(has_axis)
        kinds.append(tuple(present))
    # Number the axes that are left in each operand, and say where each axis of the batch is in the product.
    a_axis = b_axis = 0
    pairs, a_free, b_free = [], [], []
    for position, (in_a, in_b) in enumerate(kinds):
        if in_a and in_b:
            pairs.append((position, a_axis, b_axis))
        elif in_a:
            a_free.append(position)
        elif in_b:
            b_free.append(position)
        a_axis += in_a
        b_axis += in_b
    a_contract = a_axis + (len(a) > 1)
    b_contract = b_axis
    numbers = (
        ((a_contract,), (b_contract,)),
        (tuple([i for _, i, _ in pairs]), tuple([j for _, _, j in pairs])),
    )
    labels: list[Any] = [position for position, _, _ in pairs]
    labels += [*a_free, *(["rows"] if len(a) > 1 else []), *b_free, *(["columns"] if len(b) > 1 else [])]
    wanted = [*range(len(batch)), *[label for label in ("rows", "columns") if label in labels]]
    order = tuple([labels.index(label) for label in wanted])
    return tuple(squeezed[0]), tuple(squeezed[1]), numbers, order


# --- other products of two


def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The scalar product of two arrays, flattened; `a` is conjugated.

    Args:
        a: an array.
        b: another array.
        precision: of the products, as for `jnp.matmul`.
        preferred_element_type: the dtype that products are summed in and returned as.

    >>> import purax.numpy as jnp
    >>> jnp.vdot(jnp.array([1j, 2.0]), jnp.array([1j, 1.0]))
    Array(3.+0.j, dtype=complex64)
    """
    x, y = as_array(a, "vdot", 0), as_array(b, "vdot", 1)
    return dot(
        reshape(conjugate(x), (x.size,)),
        reshape(y, (y.size,)),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conjugate(x: Array) -> Array:
    """The conjugate of a complex array, a real one as it is."""
    return conj(x) if dtypes.is_complex(x.dtype) else x


def inner(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The sums of products over the last axes of `a` and `b`.

    Args:
        a: an array.
        b: another array.
        precision: of the products, as for `jnp.matmul`.
        preferred_element_type: the dtype that products are summed in and returned as.

    >>> import purax.numpy as jnp
    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    x, y = product_operands("inner", a, b)
    if not x.ndim or not y.ndim:
        return scaled(x, y, preferred_element_type)
    numbers = (((x.ndim - 1,), (y.ndim - 1,)), _NONE)
    return contracted("inner", x, y, numbers, precision, preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The products of every element of `a` with every element of `b`, both flattened.

    Args:
        a: an array.
        b: another array.
        out: not supported: arrays are immutable.

    >>> import purax.numpy as jnp
    >>> jnp.outer(jnp.array([1, 2]), jnp.array([1, 10]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    refuse_out("outer", out)
    return _outer(*product_operands("outer", a, b))


@as_one_program(lambda a, b: np.multiply.outer(a.ravel(), b.ravel()), weak="all")
def _outer(a, b):
    return multiply(reshape(a, (a.size, 1)), reshape(b, (1, b.size)))


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sums of products over pairs of axes.

    Args:
        a: an array.
        b: an array.
        axes: n, for the last n axes of `a` and the first n of `b`; or a pair of axes, or of lists of axes.
        precision: see `lax.Precision`.
        preferred_element_type: the dtype of the result.
        out_sharding: how the result is sharded over devices.

    Returns:
        An array with the other axes of `a`, then those of `b`.

    >>> import purax.numpy as jnp
    >>> jnp.tensordot(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 1]]), axes=2)
    Array(5, dtype=int32)
    """
    if out_sharding is not None:
        product = functools.partial(
            tensordot, axes=axes, precision=precision, preferred_element_type=preferred_element_type
        )
        return freely(product, out_sharding, a, b)
    x, y = product_operands("tensordot", a, b)
    x_axes, y_axes = _tensordot_axes(axes, x, y)
    if not x_axes and not (x.ndim and y.ndim):
        return scaled(x, y, preferred_element_type)
    return contracted("tensordot", x, y, ((x_axes, y_axes), _NONE), precision, preferred_element_type)


def _tensordot_axes(axes: Any, a: Array, b: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (int, np.integer)):
        count = operator.index(axes)
        if count > min(a.ndim, b.ndim) or count < 0:
            raise located(
                TypeError,
                f"tensordot: axes={count} exceeds the ranks of the arrays, shapes {a.shape} and {b.shape}",
            )
        return tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        pair = [(one,) if isinstance(one, (int, np.integer)) else one for one in axes]
        if all(isinstance(one, (tuple, list)) for one in pair):
            if len(pair[0]) != len(pair[1]):
                raise located(
                    TypeError,
                    f"tensordot requires axes lists to have equal length, got {pair[0]} and {pair[1]}",
                )
            first = tuple([canonical_axis("tensordot", i, a.ndim, "axes") for i in pair[0]])
            return first, tuple([canonical_axis("tensordot", i, b.ndim, "axes") for i in pair[1]])
    raise located(
        TypeError,
        "tensordot: the axes argument must be an int, a pair of ints, or a pair of lists/tuples of ints; got "
        f"{shown(axes)}",
    )


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: every element of `a` times the whole of `b`.

    Args:
        a: an array.
        b: another array.

    >>> import purax.numpy as jnp
    >>> jnp.kron(jnp.array([1, 10]), jnp.array([[1, 2]]))
    Array([[ 1,  2, 10, 20]], dtype=int32)
    """
    return _kron(*product_operands("kron", a, b))


@as_one_program(np.kron, weak="all")
def _kron(a, b):
    ndim = max(a.ndim, b.ndim)
    a_shape, b_shape = ((1,) * (ndim - x.ndim) + x.shape for x in (a, b))
    product = multiply(
        reshape(a, [size for n in a_shape for size in (n, 1)]),
        reshape(b, [size for n in b_shape for size in (1, n)]),
    )
    return reshape(product, tuple([n * m for n, m in zip(a_shape, b_shape, strict=True)]))


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross product of vectors of two or three components.

    Args:
        a, b: arrays of vectors, broadcast against each other.
        axisa, axisb: the axes of `a` and `b` that hold the components.
        axisc: the axis of the result that holds the components.
        axis: all three of them at once.

    Returns:
        The vectors that are orthogonal to both; their third components alone if all vectors have two.

    >>> import purax.numpy as jnp
    >>> jnp.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = product_operands("cross", a, b)
    x = move_axis(x, canonical_axis("cross", axisa, x.ndim, "axisa"), x.ndim - 1)
    y = move_axis(y, canonical_axis("cross", axisb, y.ndim, "axisb"), y.ndim - 1)
    sizes = x.shape[-1], y.shape[-1]
    if any(n not in (2, 3) for n in sizes):
        raise located(
            ValueError,
            f"cross: dimension must be either 2 or 3 for cross product; the vectors have {sizes[0]} and {sizes[1]} "
            "components",
        )
    shape = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    parts = []
    for vector in (x, y):
        own = [
            squeeze(slice_axis(vector, i, i + 1, vector.ndim - 1), (vector.ndim - 1,))
            for i in range(vector.shape[-1])
        ]
        first = len(shape) - vector.ndim + 1
        parts.append([broadcast_in_dim(part, shape, range(first, len(shape))) for part in own])
    (ax, ay, *az), (bx, by, *bz) = parts
    third = sub(mul(ax, by), mul(ay, bx))
    if not az and not bz:
        return third
    if not az:
        first, second = mul(ay, bz[0]), mul(ax, bz[0])
        second = sub(np.array(0, second.dtype), second)
    elif not bz:
        first, second = mul(az[0], by), mul(az[0], bx)
        first = sub(np.array(0, first.dtype), first)
    else:
        first, second = sub(mul(ay, bz[0]), mul(az[0], by)), sub(mul(az[0], bx), mul(ax, bz[0]))
    return stack([first, second, third], canonical_axis("cross", axisc, len(shape) + 1, "axisc"))


# --- vectors and matrices in the last axes


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The scalar products of the vectors along an axis; `x1` is conjugated.

    Args:
        x1, x2: arrays of vectors; their other axes are broadcast against each other.
        axis: the axis of both that holds the vectors.
        precision: see `lax.Precision`.
        preferred_element_type: the dtype of the result.

    Returns:
        The products, without that axis.

    >>> import purax.numpy as jnp
    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    a, b = product_operands("vecdot", x1, x2)
    a = move_axis(a, canonical_axis("vecdot", axis, a.ndim), a.ndim - 1)
    b = move_axis(b, canonical_axis("vecdot", axis, b.ndim), b.ndim - 1)
    if a.shape[-1] != b.shape[-1]:
        raise located(
            IncompatibleShapesError,
            f"vecdot: axes must match; got {a.shape[-1]} and {b.shape[-1]} along axis={axis}",
        )
    result = matmul(
        reshape(conjugate(a), (*a.shape[:-1], 1, a.shape[-1])),
        reshape(b, (*b.shape, 1)),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return reshape(result, result.shape[:-2])


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices and vectors: `x1 @ x2` where `x2` holds vectors in its last axis.

    Args:
        x1: a stack of matrices.
        x2: a stack of vectors.

    >>> import purax.numpy as jnp
    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 10], [1, 0]]))
    Array([[21, 43],
           [ 1,  3]], dtype=int32)
    """
    a, b = product_operands("matvec", x1, x2)
    _check_axes_of_core("matvec", a, "x1", 2, "a matrix")
    _check_axes_of_core("matvec", b, "x2", 1, "a vector")
    result = matmul(a, reshape(b, (*b.shape, 1)))
    return reshape(result, result.shape[:-1])


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of vectors and matrices: `x1 @ x2` where `x1` holds vectors in its last axis; it is conjugated.

    Args:
        x1: a stack of vectors.
        x2: a stack of matrices.

    >>> import purax.numpy as jnp
    >>> jnp.vecmat(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
    Array([31, 42], dtype=int32)
    """
    a, b = product_operands("vecmat", x1, x2)
    _check_axes_of_core("vecmat", a, "x1", 1, "a vector")
    _check_axes_of_core("vecmat", b, "x2", 2, "a matrix")
    result = matmul(reshape(conjugate(a), (*a.shape[:-1], 1, a.shape[-1])), b)
    return reshape(result, (*result.shape[:-2], result.shape[-1]))


def _check_axes_of_core(name: str, x: Array, argument: str, count: int, what: str) -> None:
    if x.ndim < count:
        raise located(
            ValueError,
            f"{name}: {argument} of shape {x.shape} does not have enough dimensions: it must hold {what} in its "
            f"last {'axis' if count == 1 else 'two axes'}",
        )


# --- the trace


def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of the elements of a diagonal.

    Args:
        a: an array with at least two axes.
        offset: which diagonal: positive ones lie above the main one.
        axis1: the axis of rows.
        axis2: the axis of columns.
        dtype: of the result. Narrow integers are summed in the default integers.
        out: not supported.

    Returns:
        An array with two axes less.

    >>> import purax.numpy as jnp
    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    refuse_out("trace", out)
    return reduced_sum(diagonal(a, offset, axis1, axis2), -1, dtype)


__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace", "vdot", "vecdot", "vecmat",
]  # fmt: skip
