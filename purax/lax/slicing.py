"""Windows of arrays, at places that are known or computed; and frames around arrays."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.dimensions import SymbolicDimension, as_size, exceeds
from purax.core.limits import finite
from purax.core.source import located
from purax.core.trace import current
from purax.errors import ShapeError, shown
from purax.execution.eager import eager
from purax.lax.operands import NUMBERS, array, axis_in, listed, operand, same_dtypes, sizes_of
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import lt, select
from purax.primitives.shape import dynamic_slicing, slicing
from purax.primitives.shape.dimension_value import dimension_as_value
from purax.primitives.shape.reshaping import reshape, squeeze
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray

_INT32 = np.dtype(np.int32)


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """A window of an array, at a place that is known.

    Args:
        operand: an array.
        start_indices: where it begins, along each axis.
        limit_indices: where it ends: one past its last element.
        strides: the distance of its elements; 1 unless given.

    >>> from purax import lax, numpy as jnp
    >>> lax.slice(jnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    x = array("slice", operand)
    return slicing.slice(
        x,
        sizes_of(start_indices, "start_indices"),
        sizes_of(limit_indices, "limit_indices"),
        None if strides is None else sizes_of(strides, "strides"),
    )


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """A window along one axis; indices count from the end if they are negative, None means the beginning or the end.

    >>> from purax import lax, numpy as jnp
    >>> lax.slice_in_dim(jnp.arange(6), 1, -1, 2)
    Array([1, 3], dtype=int32)
    """
    x = array("slice_in_dim", operand)
    axis = axis_in("slice_in_dim", axis, x.aval.ndim)
    n = x.aval.shape[axis]
    start = 0 if start_index is None else as_size(start_index)
    limit = n if limit_index is None else as_size(limit_index)
    return slicing.slice_axis(
        x, start + n * (start < 0), limit + n * (limit < 0), axis, as_size(stride)
    )


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The part of an array at one index of an axis.

    Args:
        operand: an array.
        index: counts from the end if it is negative.
        axis: where.
        keepdims: whether the axis stays, with size 1.

    >>> from purax import lax, numpy as jnp
    >>> lax.index_in_dim(jnp.arange(6), -1, keepdims=False)
    Array(5, dtype=int32)
    """
    x = array("index_in_dim", operand)
    axis = axis_in("index_in_dim", axis, x.aval.ndim)
    index, n = as_size(index), x.aval.shape[axis]
    if not -n <= index < n:
        raise located(
            IndexError,
            f"lax.index_in_dim: index {index} is out of bounds for axis {axis} of shape {x.aval.shape}",
        )
    index += n * (index < 0)
    part = slicing.slice_axis(x, index, index + 1, axis)
    return part if keepdims else squeeze(part, (axis,))


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Sets an array into a frame.

    Args:
        operand: an array.
        padding_value: a scalar of its dtype.
        padding_config: for each axis (low, high, interior): the padding before the elements, after them, and between
            neighbours. Negative low and high cut elements off.

    >>> from purax import lax, numpy as jnp
    >>> lax.pad(jnp.arange(1, 4), 0, [(1, 2, 1)])
    Array([0, 1, 0, 2, 0, 3, 0, 0], dtype=int32)
    """
    x, value = array("pad", operand), _operand("pad", padding_value, 1)
    same_dtypes("pad", [x.aval, aval_of(value)])
    config: list[Any] = [sizes_of(entry, "padding_config") for entry in finite(padding_config)]
    if len(config) != x.aval.ndim or any(len(entry) != 3 for entry in config):
        raise located(
            ValueError,
            "lax.pad: length of padding_config must equal the number of axes of operand, got padding_config "
            f"{shown(padding_config)} for operand shape {x.aval.shape}: it needs (low, high, interior) for each axis",
        )
    return slicing.pad(x, value, config)


# --- at computed places


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Array | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A window of fixed size at a computed place.

    Args:
        operand: an array.
        start_indices: where the window begins: an integer scalar for each axis. It is moved to lie inside of the array.
        slice_sizes: the shape of the window.
        allow_negative_indices: whether negative starts count from the end, for all axes or each.

    >>> from purax import lax, numpy as jnp
    >>> lax.dynamic_slice(jnp.arange(6), (jnp.int32(4),), (3,))
    Array([3, 4, 5], dtype=int32)
    """
    x = array("dynamic_slice", operand)
    starts = _starts("dynamic_slice", x.aval.shape, start_indices, allow_negative_indices)
    return dynamic_slicing.dynamic_slice(x, starts, sizes_of(slice_sizes, "slice_sizes"))


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A window of fixed size at a computed place along one axis; see `dynamic_slice`.

    >>> from purax import lax, numpy as jnp
    >>> lax.dynamic_slice_in_dim(jnp.arange(6), jnp.int32(2), 3)
    Array([2, 3, 4], dtype=int32)
    """
    x = array("dynamic_slice_in_dim", operand)
    shape = x.aval.shape
    axis = axis_in("dynamic_slice_in_dim", axis, len(shape))
    starts = _one_start("dynamic_slice_in_dim", shape, start_index, axis, allow_negative_indices)
    return dynamic_slicing.dynamic_slice(
        x, starts, (*shape[:axis], as_size(slice_size), *shape[axis + 1 :])
    )


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The part of an array at a computed index of an axis; `keepdims` tells whether the axis stays, with size 1.

    >>> from purax import lax, numpy as jnp
    >>> lax.dynamic_index_in_dim(jnp.arange(6), jnp.int32(2), keepdims=False)
    Array(2, dtype=int32)
    """
    part = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze(part, (axis_in("dynamic_index_in_dim", axis, part.aval.ndim),))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Array | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """An array with a window at a computed place replaced.

    Args:
        operand: an array.
        update: what stands there, of the same dtype and number of axes.
        start_indices: where the window begins: an integer scalar for each axis. It is moved to lie inside of the array.
        allow_negative_indices: whether negative starts count from the end, for all axes or each.

    >>> from purax import lax, numpy as jnp
    >>> lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    x, new = array("dynamic_update_slice", operand), array("dynamic_update_slice", update, 1)
    same_dtypes("dynamic_update_slice", [x.aval, new.aval])
    if x.aval.ndim != new.aval.ndim:
        raise located(
            TypeError,
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{new.aval.shape} for operand shape {x.aval.shape}: they are {listed((x.aval, new.aval))}",
        )
    starts = _starts("dynamic_update_slice", x.aval.shape, start_indices, allow_negative_indices)
    return dynamic_slicing.dynamic_update_slice(x, new, starts)


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """An array with a window at a computed place along one axis replaced; see `dynamic_update_slice`.

    >>> from purax import lax, numpy as jnp
    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    name = "dynamic_update_slice_in_dim"
    x = array(name, operand)
    axis = axis_in(name, axis, x.aval.ndim)
    starts = _one_start(name, x.aval.shape, start_index, axis, allow_negative_indices)
    return dynamic_update_slice(x, update, starts, allow_negative_indices=False)


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """An array with the part at a computed index of an axis replaced; the update may lack that axis.

    >>> from purax import lax, numpy as jnp
    >>> lax.dynamic_update_index_in_dim(jnp.zeros(4), 1.0, 2, 0)
    Array([0., 0., 1., 0.], dtype=float32)
    """
    name = "dynamic_update_index_in_dim"
    x, new = array(name, operand), array(name, update, 1)
    axis = axis_in(name, axis, x.aval.ndim)
    shape = new.aval.shape
    if len(shape) != x.aval.ndim:
        new = reshape(new, (*shape[:axis], 1, *shape[axis:]))
    return dynamic_update_slice_in_dim(x, new, index, axis, allow_negative_indices=allow_negative_indices)


_operand = operand  # the functions have an argument of this name


def _one_start(name: str, shape: tuple[int, ...], index: Any, axis: int, negative: bool) -> list[Any]:
    """Places of a window that begins at `index` along `axis` and at 0 along all others."""
    (start,) = _starts(name, (shape[axis],), (index,), negative)
    zero = np.zeros((), aval_of(start).dtype)
    return [start if a == axis else zero for a in range(len(shape))]


def _starts(name: str, shape: tuple[int, ...], indices: Any, negative: Any) -> list[Any]:
    """Places as integer scalars of one dtype, counted from the beginning."""
    if isinstance(indices, (Array, np.ndarray)):
        indices = _scalars(name, indices)
    elif not isinstance(indices, (tuple, list)):
        raise located(
            TypeError, f"lax.{name}: start_indices must be an integer for each axis, got {shown(indices)}"
        )
    if len(indices) != len(shape):
        raise located(
            ShapeError,
            f"lax.{name}: Length of slice indices must match number of operand dimensions ({len(indices)} vs {shape}); "
            f"got {shown(indices)}",
        )
    may_be_negative = negative if isinstance(negative, (tuple, list)) else [negative] * len(shape)
    arrays = [x for x in indices if type(x) not in NUMBERS and not isinstance(x, np.generic)]
    dtype = aval_of(arrays[0]).dtype if arrays else _INT32
    starts = [
        _start(name, index, n, dtype, allowed)
        for index, n, allowed in zip(indices, shape, may_be_negative, strict=True)
    ]
    # Places counted from the end of a long axis need not fit into the dtype of the indices.
    is_narrow = dtypes.is_integer(dtype) and any(exceeds(n - 1, dtypes.iinfo(dtype).max) for n in shape)
    wide = _INT32 if is_narrow and not dtypes.is_unsigned(dtype) else dtype
    return [
        _from_the_beginning(start, n, wide, allowed)
        for start, n, allowed in zip(starts, shape, may_be_negative, strict=True)
    ]


def _scalars(name: str, indices: Any) -> list[Any]:
    """The elements of a vector of places."""
    indices = array(name, indices, 1)
    if indices.aval.ndim != 1:
        raise located(
            ShapeError,
            f"lax.{name}: Slice indices must be a 1D sequence, got {indices.aval.shape}: start_indices is "
            f"{indices.aval.str_short()}",
        )
    return [
        reshape(slicing.slice_axis(indices, i, i + 1, 0), ()) for i in builtins.range(indices.aval.shape[0])
    ]


def _start(name: str, index: Any, n: int, dtype: np.dtype, negative: bool) -> Any:
    if type(index) is int or isinstance(index, np.integer):
        if index < 0 and not negative:
            raise located(
                ValueError, f"lax.{name}: index {index} is negative, and allow_negative_indices is False"
            )
        index = int(index) + (n if index < 0 else 0)
        if isinstance(index, SymbolicDimension):
            return convert_element_type(dimension_as_value(index), dtype)
        is_far = dtypes.is_integer(dtype) and index > dtypes.iinfo(dtype).max
        return np.array(index, _INT32 if is_far and not dtypes.is_unsigned(dtype) else dtype)
    index = array(name, index, 1)
    aval = index.aval
    if aval.shape or not dtypes.is_integer(aval.dtype):
        fault = (
            f"start_indices arguments to {name} must be scalars"
            if aval.ndim
            else f"index arguments to {name} must be integers of the same type"
        )
        raise located(TypeError, f"lax.{name}: {fault}, got: {aval.str_short(short_dtypes=False)}")
    if aval.dtype != dtype:
        if not aval.weak_type:
            raise located(
                TypeError,
                f"lax.{name}: index arguments to {name} must be integers of the same type, got: {dtype}, {aval.dtype}",
            )
        index = convert_element_type(index, dtype)
    return index


def _from_the_beginning(index: Any, n: int, dtype: np.dtype, negative: bool) -> Any:
    """A place as a scalar of a dtype that can hold it."""
    if isinstance(index, np.ndarray):
        return index if index.dtype == dtype else index.astype(dtype)
    if aval_of(index).dtype != dtype:
        index = convert_element_type(index, dtype)
    if not negative or dtypes.is_unsigned(dtype):
        return index
    if current.trace is eager and type(index) is DeviceArray and index._host is not None:
        return index if index._host >= 0 else np.array(int(index._host) + n, dtype)
    return select(lt(index, 0), add(index, n), index)
