"""Changing the shape of arrays and the order of their axes.

Nothing here changes or moves elements but the order of axes; small arrays on the host are views of one another.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import MAX_AXES, ShapedArray
from purax.core.dimensions import SymbolicDimension, as_size
from purax.core.limits import finite
from purax.core.source import located
from purax.core.trace import Tracer, current
from purax.errors import InconclusiveDimensionOperation, ShapeError, shown
from purax.execution.eager import eager
from purax.numpy._creation.creation import asarray, copied
from purax.numpy._creation.filled_arrays import shape_argument
from purax.numpy._promotion import as_array, broadcast_operands, broadcast_shapes
from purax.numpy._shape.axes import canonical_axes, canonical_axis, items
from purax.primitives.shape.broadcasting import broadcast_in_dim_p, transpose_p
from purax.primitives.shape.reshaping import expand_dims as insert_axes
from purax.primitives.shape.reshaping import reshape_p, squeeze_p
from purax.sharding.constraints import freely
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray

_PLAIN = frozenset(dtypes.ALL_DTYPES)  # whose elements are elements of NumPy arrays, too


# --- reshaping


def reshape(
    a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The elements of `a` in another shape.

    Args:
        a: an array.
        shape: the new shape; one size may be −1, which is then computed.
        order: "C" reads and writes rows first, "F" columns first.
        copy: True for memory of its own.
        out_sharding: how the result is sharded over devices.

    Returns:
        An array with the same elements.

    Raises:
        TypeError: the number of elements does not fit.

    >>> import purax.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return freely(lambda x: reshape(x, shape, order, copy=copy), out_sharding, a)
    a = as_array(a, "reshape")
    if shape.__class__ is not tuple:
        shape = _shape_with_unknown(shape)
    aval = a.aval
    sizes = _new_sizes(aval.shape, shape)
    if order != "C":
        return _reshape_in_order(a, sizes, order)
    if sizes == aval.shape:
        return copied(a) if copy else a
    if (
        a.__class__ is DeviceArray
        and a._host is not None
        and a._placement is None
        and aval.dtype in _PLAIN
        and current.trace is eager
    ):
        result = DeviceArray(
            ShapedArray(sizes, aval.dtype, aval.weak_type), a._host.reshape(sizes)
        )  # at once: a view
    else:
        result = reshape_p.bind(a, new_sizes=sizes, dimensions=None)
    return copied(result) if copy else result


def _shape_with_unknown(shape: Any) -> tuple:
    if isinstance(shape, (list, tuple)):
        return tuple(shape)
    if isinstance(shape, (Array, np.ndarray)) and shape.ndim == 1:
        return tuple(np.asarray(shape).tolist())
    return (shape,)


def _new_sizes(old: tuple[int, ...], new: tuple) -> tuple[int, ...]:
    try:
        if tuple not in map(type, new):
            return _cached_sizes(old, new)
    except TypeError:
        pass
    try:
        return _cached_sizes(old, tuple([as_size(n) for n in finite(new)]))
    except TypeError as error:
        if any(isinstance(n, Tracer) for n in new) or "reshape" in str(error):
            raise source.with_location(error) from None
        raise located(
            TypeError, f"reshape: a shape is an integer or a sequence of integers, got {shown(new)}"
        ) from None


@functools.lru_cache(4096, typed=True)
def _cached_sizes(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """The new sizes, with −1 replaced."""
    if any(type(n) not in (int, SymbolicDimension) for n in new):
        raise TypeError("not integers")
    size = math.prod(old)
    unknown = [axis for axis, n in enumerate(new) if n == -1]
    known = math.prod([n for n in new if n != -1])
    if len(unknown) > 1:
        raise ShapeError(f"reshape: can only specify one unknown axis size with a `-1` value, got {new}")
    if any(n < -1 for n in new):
        raise ShapeError(f"reshape: negative sizes other than -1 are not allowed, got the shape {new}")
    if unknown:
        remainder = size % known if known else size
        if isinstance(remainder, SymbolicDimension) and remainder.scope.is_zero(remainder) is None:
            raise InconclusiveDimensionOperation(
                f"Cannot divide evenly the sizes of shapes {old} and {new}: the remainder {remainder} should be 0. If "
                f'it always is, say so when the shape is made: symbolic_shape(..., constraints=["{remainder} == 0"]).'
            )
        if remainder != 0:
            raise ShapeError(
                f"cannot reshape array of shape {old} (size {size}) into shape {new} because the product of specified "
                f"axis sizes ({known}) does not evenly divide {size}"
            )
        if not known:
            raise ShapeError(
                f"reshape: any size fits for -1 in the shape {new}, as there are no elements; write the size out"
            )
        return tuple([n if n != -1 else size // known for n in new])
    if known != size:
        raise ShapeError(
            f"cannot reshape array of shape {old} (size {size}) into shape {new} (size {known}): the sizes of the new "
            f"shape must have the product {size}"
        )
    return new


def _reshape_in_order(a: Array, sizes: tuple[int, ...], order: str) -> Array:
    if order == "F":
        reversed_axes = reshape_p.bind(transpose(a), new_sizes=sizes[::-1], dimensions=None)
        return transpose(reversed_axes)
    if order == "A":
        raise NotImplementedError(
            "np.reshape order=A is not implemented: arrays have no user-visible layout; use 'C' or 'F'"
        )
    raise located(
        ValueError, f"reshape: Unexpected value for 'order' argument: {shown(order)}. It must be 'C' or 'F'"
    )


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements of `a` in one axis.

    Args:
        a: an array.
        order: "C" reads rows first, "F" columns first.
        out_sharding: how the result is sharded over devices.

    Returns:
        An array with one axis.

    >>> import purax.numpy as jnp
    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    if out_sharding is not None:
        return freely(lambda x: ravel(x, order), out_sharding, a)
    a = as_array(a, "ravel")
    if order == "K":
        raise NotImplementedError(
            "ravel: order='K' is not supported, arrays have no user-visible layout; use 'C' or 'F'"
        )
    return reshape(a, (a.aval.size,), order)


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """`a` without axes of size 1.

    Args:
        a: an array.
        axis: which of them; by default all.

    Returns:
        An array with fewer axes.

    >>> import purax.numpy as jnp
    >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape, jnp.squeeze(jnp.ones((1, 3, 1)), 0).shape
    ((3,), (3, 1))
    """
    a = as_array(a, "squeeze")
    shape = a.aval.shape
    if axis is None:
        axes = tuple([i for i, n in enumerate(shape) if n == 1])
    else:
        axes = tuple(sorted(canonical_axes("squeeze", axis, len(shape))))
        for i in axes:
            if shape[i] != 1:
                raise located(
                    ValueError,
                    "cannot select an axis to squeeze out which has size not equal to one, got "
                    f"shape={shape} and dimensions={axes}: cannot squeeze axis {i}, which has size {shape[i]}",
                )
    return squeeze_p.bind(a, dimensions=axes) if axes else a


def expand_dims(a: ArrayLike, axis: int | Sequence[int] = 0) -> Array:
    """`a` with new axes of size 1.

    Args:
        a: an array.
        axis: where the new axes are in the result.

    Returns:
        An array with more axes.

    >>> import purax.numpy as jnp
    >>> jnp.expand_dims(jnp.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    a = as_array(a, "expand_dims")
    axis = finite(axis, MAX_AXES) if isinstance(axis, (range, tuple, list)) else axis
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = canonical_axes("expand_dims", axis, a.aval.ndim + count)
    if current.trace is eager:  # a view
        sizes = iter(a.aval.shape)
        shape = tuple([1 if i in axes else next(sizes) for i in range(a.aval.ndim + len(axes))])
        return reshape_p.bind(a, new_sizes=shape, dimensions=None)
    return insert_axes(a, axes) if axes else a


# --- orders of axes


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """`a` with its axes in another order.

    Args:
        a: an array.
        axes: a permutation of the axes: axis i of the result is `axes[i]` of `a`. By default the reverse order.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    a = as_array(a, "transpose")
    ndim = a.aval.ndim
    if axes is None:
        return transpose_p.bind(a, permutation=tuple(range(ndim - 1, -1, -1))) if ndim > 1 else a
    order = canonical_axes("transpose", items("transpose", "axes", axes), ndim)
    if len(order) != ndim:
        raise located(
            ShapeError,
            f"transpose permutation isn't a permutation of operand dimensions, got permutation {tuple(axes)} for "
            f"operand shape {a.shape}: axes {tuple(axes)} must be a permutation of the {ndim} axes of shape {a.shape}",
        )
    return a if order == tuple(range(ndim)) else transpose_p.bind(a, permutation=order)


def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """`a` with its axes in the order `axes`; see `transpose`.

    Args:
        a: an array.
        axes: the old axes in their new order.

    >>> import purax.numpy as jnp
    >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(as_array(a, "permute_dims"), axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """`x` with its last two axes swapped.

    Args:
        x: an array with at least two axes.

    >>> import purax.numpy as jnp
    >>> jnp.matrix_transpose(jnp.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = as_array(x, "matrix_transpose")
    ndim = x.aval.ndim
    if ndim < 2:
        raise located(ValueError, f"matrix_transpose needs at least two axes, got shape {x.shape}")
    return transpose_p.bind(x, permutation=(*range(ndim - 2), ndim - 1, ndim - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """`a` with two axes swapped.

    Args:
        a: an array.
        axis1: one axis.
        axis2: the other.

    >>> import purax.numpy as jnp
    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    a = as_array(a, "swapaxes")
    ndim = a.aval.ndim
    first, second = canonical_axis("swapaxes", axis1, ndim), canonical_axis("swapaxes", axis2, ndim)
    order = list(range(ndim))
    order[first], order[second] = second, first
    return a if first == second else transpose_p.bind(a, permutation=tuple(order))


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """`a` with axes moved to other positions; the others keep their order.

    Args:
        a: an array.
        source: the axes to move.
        destination: where they go.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = as_array(a, "moveaxis")
    ndim = a.aval.ndim
    moved, targets = canonical_axes("moveaxis", source, ndim), canonical_axes("moveaxis", destination, ndim)
    if len(moved) != len(targets):
        raise located(
            ValueError, f"moveaxis: source {source} and destination {destination} must name equally many axes"
        )
    order = [axis for axis in range(ndim) if axis not in moved]
    for target, axis in sorted(zip(targets, moved, strict=True)):
        order.insert(target, axis)
    return a if order == list(range(ndim)) else transpose_p.bind(a, permutation=tuple(order))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """`a` with one axis moved in front of the axis `start`.

    Args:
        a: an array.
        axis: the axis to move.
        start: the axis that it is put in front of.

    >>> import purax.numpy as jnp
    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = as_array(a, "rollaxis")
    ndim = a.aval.ndim
    moved = canonical_axis("rollaxis", axis, ndim)
    if not -ndim <= start <= ndim:
        raise located(ValueError, f"rollaxis: start {start} must be in [{-ndim}, {ndim}]")
    target = start + ndim if start < 0 else start
    return moveaxis(a, moved, target - 1 if moved < target else target)


# --- repeating along axes


def broadcast_to(array: ArrayLike, shape: Any, *, out_sharding: Any = None) -> Array:
    """`array` repeated over a larger shape.

    Args:
        array: an array, whose axes are the last ones of `shape`, of the same size or 1.
        shape: of the result.
        out_sharding: how the result is sharded over devices.

    Returns:
        An array of that shape.

    >>> import purax.numpy as jnp
    >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return freely(lambda x: broadcast_to(x, shape), out_sharding, array)
    array = as_array(array, "broadcast_to")
    sizes = shape_argument(shape, "broadcast_to")
    own = array.aval.shape
    if own == sizes:
        return array
    first = len(sizes) - len(own)
    if first < 0 or any(n not in (1, m) for n, m in zip(own, sizes[first:], strict=True)):
        raise located(
            ValueError,
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={own} shape={sizes}"
            if first < 0
            else f"Incompatible types for broadcasting: input type={array.aval.str_short(short_dtypes=False)} and "
            f"requested type={array.aval.with_shape(sizes).str_short(short_dtypes=False)}: broadcast_to of an array of "
            f"shape {own} to the shape {sizes}",
        )
    return broadcast_in_dim_p.bind(array, shape=sizes, broadcast_dimensions=tuple(range(first, len(sizes))))


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """The arrays, all repeated over their common shape.

    Args:
        args: arrays.

    >>> import purax.numpy as jnp
    >>> jnp.broadcast_arrays(jnp.arange(2), 5)
    (Array([0, 1], dtype=int32), Array([5, 5], dtype=int32, weak_type=True))
    """
    arrays = [as_array(x, "broadcast_arrays", i) for i, x in enumerate(args)]
    return tuple(broadcast_operands("broadcast_arrays", arrays, scalars=True))


def _at_least(count: int, name: str, place: Any, arys: tuple) -> Any:
    results = []
    for i, x in enumerate(arys):
        x = as_array(x, name, i)
        if x.aval.ndim < count:
            x = reshape_p.bind(x, new_sizes=place(x.aval.shape), dimensions=None)
        results.append(x)
    return results[0] if len(results) == 1 else results


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least one axis.

    Args:
        arys: arrays or numbers.

    >>> import purax.numpy as jnp
    >>> jnp.atleast_1d(3.0)
    Array([3.], dtype=float32, weak_type=True)
    """
    return _at_least(1, "atleast_1d", lambda shape: (1,), arys)


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least two axes; new ones come first.

    Args:
        arys: arrays or numbers.

    >>> import purax.numpy as jnp
    >>> jnp.atleast_2d(jnp.arange(2))
    Array([[0, 1]], dtype=int32)
    """
    return _at_least(2, "atleast_2d", lambda shape: (1,) * (2 - len(shape)) + shape, arys)


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least three axes: (n,) becomes (1, n, 1), (n, m) becomes (n, m, 1).

    Args:
        arys: arrays or numbers.

    >>> import purax.numpy as jnp
    >>> jnp.atleast_3d(jnp.arange(2)).shape
    (1, 2, 1)
    """
    return _at_least(
        3, "atleast_3d", lambda shape: (*((1,) * (len(shape) < 2)), *shape, 1) if shape else (1, 1, 1), arys
    )


# --- sizes


def shape(a: Any) -> tuple[int, ...]:
    """The shape of an array or a number.

    Args:
        a: an array.

    >>> import purax.numpy as jnp
    >>> jnp.shape(jnp.ones((2, 3))), jnp.shape(1.0)
    ((2, 3), ())
    """
    return tuple(a.shape) if hasattr(a, "shape") else _plain(a, "shape").shape


def _plain(a: Any, name: str) -> Any:
    """A value of which only the shape is asked for: nested lists are fine here, and None counts as a scalar."""
    if a is None:
        message = f"{name} requires ndarray or scalar arguments, got None, which counts as a scalar here"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        return np.float32(0)
    return asarray(a) if isinstance(a, (list, tuple)) else as_array(a, name)


def ndim(a: Any) -> int:
    """The number of axes of an array or a number.

    Args:
        a: an array.

    >>> import purax.numpy as jnp
    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    return a.ndim if hasattr(a, "ndim") else _plain(a, "ndim").ndim


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of an array, or of those along some axes.

    Args:
        a: an array.
        axis: the axis, or several; None for all.

    >>> import purax.numpy as jnp
    >>> jnp.size(jnp.ones((2, 3))), jnp.size(jnp.ones((2, 3)), axis=1)
    (6, 3)
    """
    sizes = tuple(a.shape) if hasattr(a, "shape") else _plain(a, "size").shape
    if axis is None:
        return math.prod(sizes)
    return math.prod([sizes[i] for i in canonical_axes("size", axis, len(sizes))])


__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "expand_dims", "matrix_transpose", "moveaxis", "ndim", "permute_dims", "ravel", "reshape",
    "rollaxis", "shape", "size", "squeeze", "swapaxes", "transpose",
]  # fmt: skip
