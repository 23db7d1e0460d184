"""Repeating, reversing, rolling, deleting and inserting elements along axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import SymbolicDimension, as_size
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import ShapeError, shown
from purax.numpy._creation.creation import array, asarray
from purax.numpy._creation.filled_arrays import filled, shape_argument
from purax.numpy._programs import concrete_value
from purax.numpy._promotion import as_array, as_operand, convert, shape_of, stretch
from purax.numpy._shape.axes import canonical_axes, canonical_axis, integer, items
from purax.numpy._shape.joining import concatenate
from purax.numpy._shape.shaping import ravel, reshape, transpose
from purax.primitives.elementwise.arithmetic import max_, min_, rem, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import ge, le, lt, select
from purax.primitives.reductions.cumulative import cumsum
from purax.primitives.shape.broadcasting import broadcast_in_dim, reduce_sum
from purax.primitives.shape.dynamic_slicing import dynamic_slice
from purax.primitives.shape.gather_scatter import take
from purax.primitives.shape.reshaping import iota, rev
from purax.primitives.shape.reshaping import tile as tile_axes
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.sorting import argsort
from purax.sharding.constraints import freely
from purax.typing import ArrayLike

_INT32 = np.dtype(np.int32)


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """`A` repeated as a whole along its axes.

    Args:
        A: an array.
        reps: how often, for each axis; fewer numbers are for the last axes, more of them add axes in front.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = as_array(A, "tile")
    counts = shape_argument(reps, "tile")
    ndim = max(x.aval.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    if x.aval.ndim < ndim:
        x = reshape(x, (1,) * (ndim - x.aval.ndim) + x.aval.shape)
    return tile_axes(x, counts) if any(n != 1 for n in counts) else x


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """`a` with each element repeated along an axis.

    Args:
        a: an array.
        repeats: how often; one number for all elements, or an array with one for each.
        axis: the axis; None repeats the elements of the flattened array.
        total_repeat_length: the length of the result along the axis. It must be given where `repeats` is traced; the
            result is cut there, or filled with the last element.
        out_sharding: how the result is sharded over devices.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([1, 3]))
    Array([1, 2, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        repeated = functools.partial(repeat, axis=axis, total_repeat_length=total_repeat_length)
        return freely(repeated, out_sharding, a, repeats)
    x = as_array(a, "repeat", 0)
    counts = as_operand(repeats, "repeat", 1)
    if axis is None:
        x, axis = ravel(x), 0
    elif not x.aval.ndim:
        x = ravel(x)
    axis = canonical_axis("repeat", axis, x.aval.ndim)
    size = x.aval.shape[axis]
    shape = shape_of(counts)
    if len(shape) > 1 or (shape and shape[0] not in (1, size)):
        raise located(
            ValueError,
            f"repeat: repeats must be a number or have the length {size} of the axis, got shape {shape}",
        )
    known = concrete_value(counts)
    if known is None:
        if total_repeat_length is None:
            counts.concrete("the argument `repeats` of jnp.repeat, unless total_repeat_length is given,")
        assert total_repeat_length is not None, "concrete raises"
        return _repeat_traced(x, counts, axis, as_size(total_repeat_length))
    if not dtypes.is_integer(dtypes.as_exact_dtype(known.dtype)) and known.dtype != np.bool_:
        raise located(TypeError, f"repeat: repeats must be integers, got dtype {known.dtype}")
    if (known < 0).any():
        raise located(ShapeError, f"repeat: repeats may not be negative, got {known.tolist()}")
    if total_repeat_length is None and (known.size == 1 or not size):
        return _repeat_equally(x, int(known.reshape(())) if known.size else 0, axis)
    indices = np.repeat(
        np.arange(size), np.broadcast_to(known.reshape(-1), size) if known.size == 1 else known
    )
    if total_repeat_length is not None:
        missing = max(as_size(total_repeat_length) - len(indices), 0)
        if missing and not size:
            raise located(ValueError, "repeat: an empty array has no last element to fill the result with")
        indices = np.concatenate([indices[:total_repeat_length], np.full(missing, size - 1)]).astype(int)
    return take(x, asarray(indices.astype(np.int32)), axis)


def _repeat_equally(x: Array, count: int, axis: int) -> Array:
    if count == 1:
        return x
    shape = x.aval.shape
    wide = (*shape[: axis + 1], count, *shape[axis + 1 :])
    kept = [i for i in range(len(wide)) if i != axis + 1]
    return reshape(broadcast_in_dim(x, wide, kept), (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def _repeat_traced(x: Array, counts: Any, axis: int, length: int) -> Array:
    """Output position p shows element i, the number of elements that end at or before p."""
    size = x.aval.shape[axis]
    counts = convert_element_type(counts, _INT32)
    if shape_of(counts) != (size,):
        counts = broadcast_in_dim(reshape(counts, ()), (size,), ())
    ends = cumsum(counts, 0)
    ended = le(broadcast_in_dim(ends, (length, size), (1,)), iota(_INT32, (length, size), 0))
    indices = reduce_sum(convert_element_type(ended, _INT32), (1,))
    return take(x, min_(indices, size - 1), axis)


# --- reversing and turning


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """`m` with the order of elements reversed along axes.

    Args:
        m: an array.
        axis: the axes; None for all.

    Returns:
        An array of the same shape.

    >>> import purax.numpy as jnp
    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    m = as_array(m, "flip")
    return rev(m, canonical_axes("flip", axis, m.aval.ndim))


def flipud(m: ArrayLike) -> Array:
    """`m` with the order of rows reversed.

    Args:
        m: an array with at least one axis.

    >>> import purax.numpy as jnp
    >>> jnp.flipud(jnp.array([1, 2]))
    Array([2, 1], dtype=int32)
    """
    m = as_array(m, "flipud")
    return rev(m, (canonical_axis("flipud", 0, m.aval.ndim),))


def fliplr(m: ArrayLike) -> Array:
    """`m` with the order of columns reversed.

    Args:
        m: an array with at least two axes.

    >>> import purax.numpy as jnp
    >>> jnp.fliplr(jnp.array([[1, 2]]))
    Array([[2, 1]], dtype=int32)
    """
    m = as_array(m, "fliplr")
    return rev(m, (canonical_axis("fliplr", 1, m.aval.ndim),))


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """`m` turned by 90 degrees in the plane of two axes.

    Args:
        m: an array with at least two axes.
        k: how often.
        axes: from the first towards the second.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    m = as_array(m, "rot90")
    ndim = m.aval.ndim
    if ndim < 2:
        raise located(ValueError, f"rot90: the array must have at least 2 axes, got shape {m.shape}")
    first, second = (canonical_axis("rot90", axis, ndim, "axes") for axis in items("rot90", "axes", axes))
    if first == second:
        raise located(ValueError, f"rot90: axes must be different, got {axes}")
    turns = integer("rot90", "k", k) % 4
    if turns == 2:
        return rev(m, (first, second))
    if not turns:
        return m
    order = list(range(ndim))
    order[first], order[second] = second, first
    return rev(transpose(m, order), (first,)) if turns == 1 else transpose(rev(m, (first,)), order)


def roll(a: ArrayLike, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """`a` with its elements moved along axes; those moved past the end come in again at the start.

    Args:
        a: an array.
        shift: by how many places, for each axis; may be traced.
        axis: the axes; None rolls the flattened array.

    Returns:
        An array of the same shape.

    >>> import purax.numpy as jnp
    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = as_array(a, "roll", 0)
    if axis is None:
        return reshape(roll(ravel(x), _total_shift(shift), 0), x.aval.shape)
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple([canonical_axis("roll", one, x.aval.ndim) for one in given])  # one may come several times
    shifts = _shifts(shift)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    elif len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise located(ValueError, f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for one, along in zip(shifts, axes, strict=True):
        x = _roll_axis(x, one, along)
    return x


def _shifts(shift: Any) -> list[Any]:
    if isinstance(shift, (list, tuple)):
        return list(shift)
    if isinstance(shift, (Array, np.ndarray)) and shift.ndim:
        return (
            [shift[i] for i in range(shift.shape[0])]
            if isinstance(shift, Tracer)
            else list(np.asarray(shift))
        )
    return [shift]


def _total_shift(shift: Any) -> Any:
    shifts = _shifts(shift)
    total = shifts[0]
    for one in shifts[1:]:
        total = total + one
    return total


def _roll_axis(x: Array, shift: Any, axis: int) -> Array:
    size = x.aval.shape[axis]
    if not size:
        return x
    known = concrete_value(as_operand(shift, "roll", 1))
    if known is not None:
        if not (known.dtype.kind in "iub" or known == np.trunc(known)):
            raise located(TypeError, f"roll: shift must be an integer, got {shown(shift)}")
        start = -int(known.reshape(())) % size
        return (
            concatenate([slice_axis(x, start, size, axis), slice_axis(x, 0, start, axis)], axis)
            if isinstance(start, SymbolicDimension) or start != 0
            else x
        )
    shift = convert_element_type(reshape(shift, ()), _INT32)
    remainder = rem(shift, size)
    start = sub(size, select(lt(remainder, 0), add(remainder, size), remainder))
    zero = np.zeros((), np.int32)
    doubled = concatenate([x, x], axis)
    return dynamic_slice(doubled, [start if i == axis else zero for i in range(x.aval.ndim)], x.aval.shape)


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements of `a` in another shape, repeated or cut as needed.

    Args:
        a: an array.
        new_shape: the shape; it may have any number of elements.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    x = ravel(as_array(a, "resize"))
    shape = shape_argument(new_shape, "resize")
    size = math.prod(shape)
    if not x.aval.size or not size:
        return filled(shape, 0, x.aval.dtype)
    repeats = -(-size // x.aval.size)
    line = tile_axes(x, (repeats,)) if repeats > 1 else x
    return reshape(slice_axis(line, 0, size, 0), shape)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """`filt` without leading and trailing zeros.

    Args:
        filt: an array, whose values must be known.
        trim: "f" for the front, "b" for the back.
        axis: the axes; None for all.

    Returns:
        A part of the array.

    >>> import purax.numpy as jnp
    >>> jnp.trim_zeros(jnp.array([0, 0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    x: Any = as_array(filt, "trim_zeros")
    known = concrete_value(x)
    if known is None:
        x.concrete("jnp.trim_zeros, whose result has a length that depends on the values,")
    if not isinstance(trim, str) or set(trim.lower()) - set("fb"):
        raise located(ValueError, f"trim_zeros: trim must be made of 'f' and 'b', got {shown(trim)}")
    trim = trim.lower()
    axes = canonical_axes("trim_zeros", axis, x.aval.ndim)
    places = np.argwhere(known)
    for i in axes:
        start, stop = (int(places[:, i].min()), int(places[:, i].max()) + 1) if len(places) else (0, 0)
        size = x.aval.shape[i]
        if not len(places):
            x = slice_axis(x, 0, 0, i)
            continue
        x = slice_axis(x, start if "f" in trim else 0, stop if "b" in trim else size, i)
    return x


# --- deleting and inserting


def delete(
    arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """`arr` without some of its elements along an axis.

    Args:
        arr: an array.
        obj: which: an index, an array of indices, a slice, or a boolean mask.
        axis: the axis; None deletes from the flattened array.
        assume_unique_indices: whether the indices are known to be distinct, so that they may be traced.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.delete(jnp.arange(5), jnp.array([1, 3]))
    Array([0, 2, 4], dtype=int32)
    """
    x = as_array(arr, "delete", 0)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis("delete", axis, x.aval.ndim)
    size = x.aval.shape[axis]
    if isinstance(obj, slice):
        keep = np.ones(size, bool)
        keep[obj] = False
        return _kept(x, keep, axis)
    obj = as_operand(obj, "delete", 1)
    known = concrete_value(obj)
    if known is None:
        return _delete_traced(x, obj, axis, assume_unique_indices)
    if known.dtype == bool:
        if known.shape != (size,):
            raise located(
                ValueError, f"delete: the mask of shape {known.shape} must have the shape ({size},)"
            )
        return _kept(x, ~known, axis)
    if known.dtype.kind not in "iu":
        if known.size:
            raise located(TypeError, f"delete: indices must be integers, got dtype {known.dtype}")
        known = known.astype(int)
    _check_bounds("delete", known, size)
    keep = np.ones(size, bool)
    keep[known.reshape(-1)] = False
    return _kept(x, keep, axis)


def _check_bounds(name: str, indices: np.ndarray, size: int) -> None:
    for index in indices.reshape(-1).tolist():
        if not -size <= index < size:
            raise located(IndexError, f"{name}: index {index} is out of bounds for an axis of size {size}")


def _kept(x: Array, keep: np.ndarray, axis: int) -> Array:
    """The elements of `x` along `axis` where `keep` holds, as joined slices if they are few."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], keep, [False]])))
    runs = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
    if not runs:
        return slice_axis(x, 0, 0, axis)
    if len(runs) <= 8:
        return concatenate([slice_axis(x, start, stop, axis) for start, stop in runs], axis)
    return take(x, asarray(np.flatnonzero(keep).astype(np.int32)), axis)


def _delete_traced(x: Array, obj: Array, axis: int, unique: bool) -> Array:
    size = x.aval.shape[axis]
    if obj.aval.dtype == np.bool_:
        raise located(
            errors.NonConcreteBooleanIndexError,
            "delete: a traced boolean mask gives a result of unknown size; use where",
        )
    if obj.aval.size != 1 and not unique:
        traced: Any = obj
        traced.concrete("the argument `obj` of jnp.delete, unless assume_unique_indices=True,")
    indices = reshape(convert_element_type(obj, _INT32), (obj.aval.size,))
    indices = select(lt(indices, 0), add(indices, size), indices)
    count = indices.aval.shape[0]
    ordered = indices if count == 1 else take(indices, argsort(indices, 0), 0)
    # Position p of the result is p plus the number of deleted elements before it: those with index − rank ≤ p.
    shifted = sub(ordered, iota(_INT32, (count,)))
    kept = size - count
    before = le(broadcast_in_dim(shifted, (kept, count), (1,)), iota(_INT32, (kept, count), 0))
    places = add(iota(_INT32, (kept,)), reduce_sum(convert_element_type(before, _INT32), (1,)))
    return take(x, places, axis)


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` with values inserted before some of its elements along an axis.

    Args:
        arr: an array.
        obj: before which: an index, an array of indices, or a slice.
        values: what to insert; converted to the dtype of `arr`.
        axis: the axis; None inserts into the flattened array.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    """
    x = as_array(arr, "insert", 0)
    values = as_array(values, "insert", 2)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis("insert", axis, x.aval.ndim)
    size = x.aval.shape[axis]
    obj = array(np.arange(*obj.indices(size))) if isinstance(obj, slice) else as_array(obj, "insert", 1)
    if obj.aval.ndim > 1:
        raise located(ValueError, f"insert: indices must have at most one axis, got shape {obj.shape}")
    known = concrete_value(obj)
    if known is not None:
        for index in known.reshape(-1).tolist():
            if not -size <= index <= size:
                raise located(
                    IndexError, f"insert: index {index} is out of bounds for an axis of size {size}"
                )
    inserted: Array = convert(values, x.aval.dtype)
    ndim = x.aval.ndim
    scalar_index = obj.aval.ndim == 0 or obj.aval.shape == (1,)
    if scalar_index:
        if obj.aval.ndim == 0 and inserted.aval.ndim:
            # A single index takes values whose first axis is the inserted one, as NumPy does.
            inserted = reshape(inserted, (1,) * (ndim - inserted.aval.ndim) + inserted.aval.shape)
            order = list(range(1, ndim))
            order.insert(axis, 0)
            inserted = transpose(inserted, order)
        count = inserted.aval.shape[axis - ndim] if inserted.aval.ndim >= ndim - axis else 1
        indices = broadcast_in_dim(reshape(convert_element_type(obj, _INT32), ()), (count,), ())
    else:
        count = obj.aval.shape[0]
        indices = convert_element_type(obj, _INT32)
    shape = (*x.aval.shape[:axis], count, *x.aval.shape[axis + 1 :])
    inserted = stretch(inserted, shape) if inserted.aval.shape != shape else inserted
    indices = select(lt(indices, 0), add(indices, size), indices)
    indices = min_(max_(indices, 0), size)
    order = argsort(indices, 0)
    places = add(take(indices, order, 0), iota(_INT32, (count,)))
    # Where the old elements go: moved by the number of insertions before them.
    moved = ge(
        broadcast_in_dim(iota(_INT32, (size,)), (size, count), (0,)),
        broadcast_in_dim(indices, (size, count), (1,)),
    )
    old_places = add(iota(_INT32, (size,)), reduce_sum(convert_element_type(moved, _INT32), (1,)))
    source_order = argsort(concatenate([old_places, places]), 0)
    joined = concatenate([x, take(inserted, order, axis)], axis)
    return take(joined, source_order, axis)


__all__ = [
    "delete", "flip", "fliplr", "flipud", "insert", "repeat", "resize", "roll", "rot90", "tile",
    "trim_zeros",
]  # fmt: skip
