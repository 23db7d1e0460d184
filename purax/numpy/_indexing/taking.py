"""Reading and writing elements at arrays of indices: `take`, `put` and related functions.

Negative indices count from the end. Writing gives a new array: arrays are immutable, so `inplace=False` is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import ShapeError, shown
from purax.numpy._indexing.nonzero import indices_of_mask
from purax.numpy._programs import as_one_program, constant_value
from purax.numpy._promotion import BOOL, IncompatibleShapesError, as_array, broadcast_shapes, refuse_out
from purax.numpy._reductions.reductions import as_truth
from purax.numpy._shape.axes import canonical_axis
from purax.numpy._shape.shaping import broadcast_to
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import clamp, lt, select
from purax.primitives.shape import gather_scatter
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.gather_scatter import (
    CLIP,
    FILL_OR_DROP,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    scatter,
)
from purax.primitives.shape.reshaping import expand_dims, reshape, tile
from purax.primitives.shape.slicing import slice_axis
from purax.typing import ArrayLike


def _indices(name: str, indices: Any, position: int) -> Array:
    """An argument as integer indices, of 32 bits at least so that the size of an axis can be added to them."""
    index = as_array(indices, name, position)
    if index.dtype == BOOL:
        return convert_element_type(index, np.int32)
    if not dtypes.is_integer(index.dtype):
        raise located(
            ShapeError, f"{name}: indices must be of integer type, got {dtypes.dtype_name(index.dtype)}"
        )
    if dtypes.itemsize_bits(index.dtype) < 32:
        return convert_element_type(index, np.int32)
    return convert_element_type(index, index.dtype)


def from_the_end(indices: Any, size: int) -> Any:
    """Indices with the size of the axis added to negative ones."""
    if dtypes.is_unsigned(indices.dtype):
        return indices
    return select(lt(indices, 0), add(indices, size), indices)


def _known_fill(name: str, fill_value: Any) -> Any:
    """A fill value as a Python number."""
    if fill_value is None:
        return None
    known = constant_value(fill_value)
    if known is None or known.ndim:
        raise located(ValueError, f"{name}: fill_value must be a known number, got {shown(fill_value)}")
    return known.item()


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """The elements of an array at indices along an axis.

    Args:
        a: the array.
        indices: integers, in an array of any shape.
        axis: the axis; None to flatten the array first.
        out: not supported.
        mode: what indices that are out of bounds give: "fill" (the default) a fill value, "clip" the nearest element
            (then negative indices are 0), "wrap" counts on from the other end.
        unique_indices: a promise that no index occurs twice, counted from the front.
        indices_are_sorted: a promise that indices are in increasing order.
        fill_value: for the mode "fill"; if it is not given, NaN, the least signed or the largest unsigned integer.

    Returns:
        An array with the axes of `indices` in the place of `axis`.

    >>> import purax.numpy as jnp
    >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([[0, -1], [1, 1]]))
    Array([[10, 30],
           [20, 20]], dtype=int32)
    """
    refuse_out("take", out)
    x, index = as_array(a, "take", 0), _indices("take", indices, 1)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = canonical_axis("take", axis, x.ndim)
    if mode == "raise":
        raise located(
            NotImplementedError, "take: the mode 'raise' is not supported; use 'fill', 'clip' or 'wrap'"
        )
    if mode not in (None, "fill", "clip", "wrap"):
        raise located(ValueError, f"take: mode must be 'fill', 'clip' or 'wrap', got {shown(mode)}")
    size = x.shape[axis]
    if not size and index.size:
        raise located(
            IndexError,
            f"take: cannot take elements of an empty axis: axis {axis} of an array of shape {x.shape}",
        )
    return _take(
        x,
        index,
        axis=axis,
        mode=mode or "fill",
        fill_value=_known_fill("take", fill_value),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
    )


def _take_on_host(x, index, *, axis, mode, fill_value, unique_indices, indices_are_sorted):
    size = x.shape[axis]
    if mode != "fill":
        return np.take(x, index, axis, mode=mode)
    result = np.take(x, index, axis, mode="wrap") if size else np.take(x, index, axis)
    if index.size and (index.max() >= size or index.min() < -size):
        outside = ((index >= size) | (index < -size)).reshape(index.shape + (1,) * (x.ndim - 1 - axis))
        fill = gather_scatter.fill_for(x.dtype, fill_value)
        return np.where(outside, fill, result)
    return result


@as_one_program(_take_on_host, weak="first")
def _take(x, index, *, axis, mode, fill_value, unique_indices, indices_are_sorted):
    size = x.shape[axis]
    if mode == "wrap" and size:
        index = index % number_as(size, index.dtype)
    elif mode == "fill":
        index = from_the_end(index, size)
    ndim = index.ndim
    offsets = (*range(axis), *range(axis + ndim, x.ndim - 1 + ndim))
    if not size:
        return reshape(x, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))
    return gather_scatter.gather(
        x,
        expand_dims(index, (ndim,)),
        GatherDimensionNumbers(offsets, (axis,), (axis,)),
        (*x.shape[:axis], 1, *x.shape[axis + 1 :]),
        mode=FILL_OR_DROP if mode == "fill" else CLIP,
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
    )


# --- one index for each row


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """The elements of an array at indices along an axis, with indices of their own for every row.

    Args:
        arr: the array.
        indices: integers, in an array with as many axes; the others are broadcast against those of `arr`.
        axis: the axis; None to flatten the array first.
        mode: what indices that are out of bounds give: "fill" (the default) a fill value, "clip" the nearest element.
        fill_value: for the mode "fill".
        wrap_negative_indices: whether negative indices count from the end, as they do unless this is False.

    Returns:
        An array of the shape of `indices`, broadcast.

    >>> import purax.numpy as jnp
    >>> x = jnp.array([[3, 1, 2], [6, 5, 4]])
    >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    x, index, axis = _along("take_along_axis", arr, indices, axis)
    size = x.shape[axis]
    if not size and index.size:
        raise located(
            IndexError,
            f"take_along_axis: cannot take elements of an empty axis: axis {axis} of an array of shape {x.shape}",
        )
    if wrap_negative_indices is None or wrap_negative_indices:
        index = from_the_end(index, size)
    fill = _known_fill("take_along_axis", fill_value)
    return _take_along(x, index, axis=axis, mode=GatherScatterMode.from_any(mode), fill_value=fill)


def _take_along_on_host(x, index, *, axis, mode, fill_value):
    size = x.shape[axis]
    inside = np.clip(index, 0, max(size - 1, 0))
    result = np.take_along_axis(x, inside, axis)
    if mode in (CLIP, GatherScatterMode.PROMISE_IN_BOUNDS):
        return result
    fill = gather_scatter.fill_for(x.dtype, 0 if mode is GatherScatterMode.ONE_HOT else fill_value)
    return np.where(inside == index, result, fill)


@as_one_program(_take_along_on_host, weak="first")
def _take_along(x, index, *, axis, mode, fill_value):
    return gather_scatter.take_along_axis(x, index, axis, mode=mode, fill_value=fill_value)


def _along(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[Array, Array, int]:
    """The array and the indices of one shape but along the axis."""
    x, index = as_array(arr, name, 0), _indices(name, indices, 1)
    if axis is None:
        if index.ndim != 1:
            raise located(
                ValueError, f"{name}: with axis=None indices must be 1-dimensional, got shape {index.shape}"
            )
        return reshape(x, (x.size,)), index, 0
    if x.ndim != index.ndim:
        raise located(
            ValueError,
            f"{name}: indices and arr must have the same number of dimensions; {index.ndim} vs. {x.ndim} (shapes "
            f"{index.shape} and {x.shape})",
        )
    axis = canonical_axis(name, axis, x.ndim)
    own, wanted = (tuple([1 if i == axis else n for i, n in enumerate(y.shape)]) for y in (x, index))
    try:
        common = broadcast_shapes(own, wanted)
    except IncompatibleShapesError:
        raise located(
            IncompatibleShapesError,
            f"{name}: incompatible shapes for broadcasting, arr {x.shape} and indices {index.shape}: they must be "
            f"equal or 1 along all axes but axis={axis}",
        ) from None
    x = broadcast_to(x, (*common[:axis], x.shape[axis], *common[axis + 1 :]))
    return x, broadcast_to(index, (*common[:axis], index.shape[axis], *common[axis + 1 :])), axis


def refuse_inplace(name: str, inplace: bool) -> None:
    """Raises unless the user said that a new array is wanted."""
    if inplace:
        raise located(
            ValueError,
            f"{name} cannot modify arrays in place, because arrays are immutable. Pass inplace=False to get an "
            "updated array instead.",
        )


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """An array with values written to indices along an axis, with indices of their own for every row.

    Args:
        arr: the array.
        indices: integers, in an array with as many axes.
        values: what is written, broadcast to the shape of `indices`.
        axis: the axis; None to flatten the array first.
        inplace: must be False.
        mode: what becomes of indices that are out of bounds: "drop" (the default) leaves them out, "clip" moves them.

    Returns:
        A new array of the shape of `arr`.

    >>> import purax.numpy as jnp
    >>> jnp.put_along_axis(jnp.zeros((2, 3)), jnp.array([[0], [2]]), 1.0, axis=1, inplace=False)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    refuse_inplace("put_along_axis", inplace)
    whole = as_array(arr, "put_along_axis", 0)
    x, index, position = _along("put_along_axis", whole, indices, axis)
    if axis is not None and x.shape != whole.shape:
        raise located(
            ValueError,
            f"put_along_axis: indices of shape {index.shape} do not fit into the array of shape {whole.shape}",
        )
    new = convert_element_type(as_array(values, "put_along_axis", 2), x.dtype)
    own_shape = as_array(indices, "put_along_axis", 1).shape
    try:
        if broadcast_shapes(new.shape, own_shape) != own_shape:
            raise IncompatibleShapesError
    except IncompatibleShapesError:
        raise located(
            ValueError,
            f"put_along_axis: values of shape {new.shape} must be broadcastable to indices of shape {own_shape}",
        ) from None
    if not x.size or not index.size:
        return whole
    new, index = broadcast_to(new, index.shape), from_the_end(index, x.shape[position])
    others = tuple([i for i in range(x.ndim) if i != position])
    numbers = ScatterDimensionNumbers((), (position,), (position,), others, others)
    result = scatter(x, expand_dims(index, (x.ndim,)), new, numbers, mode=GatherScatterMode.from_any(mode))
    return reshape(result, whole.shape)


# --- the flattened array


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """An array with values written to places of its flattened form.

    Args:
        a: the array.
        ind: integers.
        v: what is written, repeated if there are fewer values than indices.
        mode: what becomes of indices that are out of bounds: "clip" moves them to the ends (then negative indices are
            0), "wrap" counts on from the other end. By default negative indices count from the end, the others are
            clipped.
        inplace: must be False.

    Returns:
        A new array of the shape of `a`.

    >>> import purax.numpy as jnp
    >>> jnp.put(jnp.zeros(4), jnp.array([0, 2]), jnp.array([1.0, 2.0]), inplace=False)
    Array([1., 0., 2., 0.], dtype=float32)
    """
    refuse_inplace("put", inplace)
    x, index, values = as_array(a, "put", 0), _indices("put", ind, 1), as_array(v, "put", 2)
    if not x.size or not index.size or not values.size:
        return x
    flat, index = reshape(x, (x.size,)), reshape(index, (index.size,))
    new = _repeated(reshape(values, (values.size,)), index.size)
    if mode in (None, "clip"):
        if mode is None:
            index = from_the_end(index, x.size)
        index = clamp(np.array(0, index.dtype), index, np.array(x.size - 1, index.dtype))
    elif mode == "wrap":
        index = index % np.array(x.size, index.dtype)
    else:
        raise located(ValueError, f"put: mode must be 'clip' or 'wrap', got {shown(mode)}")
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    new = convert_element_type(new, x.dtype, x.weak_type)
    return reshape(scatter(flat, expand_dims(index, (1,)), new, numbers), x.shape)


def _repeated(values: Any, size: int) -> Any:
    """A vector repeated up to a length."""
    times = -(-size // values.shape[0])
    return slice_axis(tile(values, (times,)) if times > 1 else values, 0, size, 0)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """An array with values written, one after the other, to where a mask is true.

    Args:
        arr: the array.
        mask: booleans, as many as `arr` has elements.
        vals: what is written, repeated if there are too few.
        inplace: must be False.

    Returns:
        A new array of the shape of `arr`.

    >>> import purax.numpy as jnp
    >>> x = jnp.array([1, 2, 3, 4])
    >>> jnp.place(x, x > 2, jnp.array([10, 20]), inplace=False)
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    refuse_inplace("place", inplace)
    x, values = as_array(arr, "place", 0), as_array(vals, "place", 2)
    chosen = as_truth(as_array(mask, "place", 1), "place")
    if chosen.size != x.size:
        raise located(
            ValueError, f"place: arr and mask must be the same size, got shapes {x.shape} and {chosen.shape}"
        )
    if not x.size:
        return x
    if not values.size:
        raise located(ValueError, "place: cannot place values from an empty array")
    index = dtypes.default_int()
    beyond = as_array(np.array(x.size, index), "place")
    (places,) = indices_of_mask(reshape(chosen, (x.size,)), beyond, size=x.size)
    new = convert_element_type(_repeated(reshape(values, (values.size,)), x.size), x.dtype, x.weak_type)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    return reshape(
        scatter(reshape(x, (x.size,)), expand_dims(places, (1,)), new, numbers, mode=FILL_OR_DROP), x.shape
    )
