"""Other frames for the same elements: repeated, reshaped, reordered, joined and cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.core.avals import MAX_AXES
from purax.core.limits import finite
from purax.core.source import located
from purax.lax.operands import array, axes_in, axis_in, listed, same_dtypes, sizes_of
from purax.primitives.shape import broadcasting, reshaping
from purax.sharding.constraints import freely
from purax.typing import ArrayLike


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Repeats an array along new axes in front.

    >>> from purax import lax, numpy as jnp
    >>> lax.broadcast(jnp.arange(2), (3,))
    Array([[0, 1],
           [0, 1],
           [0, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return freely(lambda x: broadcast(x, sizes), out_sharding, operand)
    x, new = array("broadcast", operand), sizes_of(sizes, "sizes")
    return broadcasting.broadcast_in_dim(x, (*new, *x.aval.shape), range(len(new), len(new) + x.aval.ndim))


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Repeats an array over a shape.

    Args:
        operand: an array.
        shape: of the result.
        broadcast_dimensions: for each axis of the operand, in increasing order, the axis of the result that it
            becomes; it has that axis' size, or size 1.

    >>> from purax import lax, numpy as jnp
    >>> lax.broadcast_in_dim(jnp.arange(2), (2, 3), (0,))
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return freely(lambda x: broadcast_in_dim(x, shape, broadcast_dimensions), out_sharding, operand)
    x, sizes, axes = array("broadcast_in_dim", operand), sizes_of(shape), sizes_of(broadcast_dimensions)
    if x.aval.shape == sizes and axes == tuple(range(len(sizes))):
        return x
    return broadcasting.broadcast_in_dim_p.bind(x, shape=sizes, broadcast_dimensions=axes)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Repeats an array over the shape of another, whose last axes are its own.

    >>> from purax import lax, numpy as jnp
    >>> lax.broadcast_like(jnp.arange(3), jnp.zeros((2, 3)))
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    x, shape = array("broadcast_like", arr), array("broadcast_like", like_arr, 1).aval.shape
    missing = len(shape) - x.aval.ndim
    if missing < 0:
        raise located(
            TypeError, f"lax.broadcast_like: an array of shape {x.aval.shape} has more axes than {shape}"
        )
    return broadcasting.broadcast_in_dim(x, shape, range(missing, len(shape)))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of some shapes are repeated to when they meet.

    >>> from purax import lax
    >>> lax.broadcast_shapes((3,), (2, 1))
    (2, 3)
    """
    sizes = [sizes_of(shape) for shape in shapes]
    ndim = max(map(len, sizes), default=0)
    result = []
    for along in zip(*[(1,) * (ndim - len(size)) + size for size in sizes], strict=True):
        different = set(along) - {1}
        if len(different) > 1:
            raise located(ValueError, f"Incompatible shapes for broadcasting: {', '.join(map(str, sizes))}")
        result.append(different.pop() if different else 1)
    return tuple(result)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """An array with axes of size 1 put in front until it has `rank` axes.

    >>> from purax import lax, numpy as jnp
    >>> lax.broadcast_to_rank(jnp.arange(3), 3).shape
    (1, 1, 3)
    """
    x = array("broadcast_to_rank", x)
    return reshaping.expand_dims(x, finite(range(max(rank - x.aval.ndim, 0))))


def collapse(operand: Array, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Joins neighbouring axes to one.

    Args:
        operand: an array.
        start_dimension: the first of them.
        stop_dimension: one past the last of them; None for all that follow.

    >>> from purax import lax, numpy as jnp
    >>> lax.collapse(jnp.zeros((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = array("collapse", operand)
    shape = x.aval.shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise located(
            ValueError,
            f"lax.collapse: no axes between {start_dimension} and {stop_dimension} of shape {shape}",
        )
    return reshaping.reshape(x, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """An array with new axes of size 1, which are `dimensions` of the result.

    >>> from purax import lax, numpy as jnp
    >>> lax.expand_dims(jnp.arange(3), (0, -1)).shape
    (1, 3, 1)
    """
    x = _array("expand_dims", array)
    dimensions = finite(dimensions, MAX_AXES)
    return reshaping.expand_dims(x, axes_in("expand_dims", dimensions, x.aval.ndim + len(dimensions)))


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """An array without some of its axes, which have size 1.

    >>> from purax import lax, numpy as jnp
    >>> lax.squeeze(jnp.zeros((1, 3, 1)), (0, 2)).shape
    (3,)
    """
    x = _array("squeeze", array)
    return reshaping.squeeze(x, axes_in("squeeze", dimensions, x.aval.ndim))


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The elements of an array in another frame.

    Args:
        operand: an array.
        new_sizes: the shape of the result.
        dimensions: the order in which the axes of the operand are read; None for their own.

    >>> from purax import lax, numpy as jnp
    >>> lax.reshape(jnp.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        return freely(lambda x: reshape(x, new_sizes, dimensions), out_sharding, operand)
    order = None if dimensions is None else finite(dimensions)
    return reshaping.reshape(array("reshape", operand), sizes_of(new_sizes, "new_sizes"), order)


def transpose(operand: ArrayLike, permutation: Sequence[int] | np.ndarray) -> Array:
    """Reorders axes: axis i of the result is axis `permutation[i]` of the operand.

    >>> from purax import lax, numpy as jnp
    >>> lax.transpose(jnp.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    x, order = array("transpose", operand), sizes_of(permutation, "permutation")
    if order == tuple(range(x.aval.ndim)):
        return x
    if sorted(order) != list(range(x.aval.ndim)):
        raise located(
            TypeError,
            f"lax.transpose: transpose permutation isn't a permutation of operand dimensions, got permutation {order} "
            f"for operand shape {x.aval.shape}.",
        )
    return broadcasting.transpose_p.bind(x, permutation=order)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """An array with the order of its elements reversed along some axes.

    >>> from purax import lax, numpy as jnp
    >>> lax.rev(jnp.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    return reshaping.rev(array("rev", operand), sizes_of(dimensions, "dimensions"))


def concatenate(operands: Array | Sequence[ArrayLike], dimension: int) -> Array:
    """Arrays one after the other along an axis.

    Args:
        operands: of one dtype, of shapes that differ along `dimension` only.
        dimension: the axis.

    >>> from purax import lax, numpy as jnp
    >>> lax.concatenate([jnp.arange(2), jnp.arange(3)], 0)
    Array([0, 1, 0, 1, 2], dtype=int32)
    """
    arrays = _several("concatenate", operands)
    axis = axis_in("concatenate", dimension, arrays[0].aval.ndim)
    return arrays[0] if len(arrays) == 1 else reshaping.concatenate(arrays, axis)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Arrays of one shape and dtype side by side along a new axis.

    >>> from purax import lax, numpy as jnp
    >>> lax.stack([jnp.arange(2), jnp.arange(2)], 1)
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    arrays = _several("stack", operands)
    return reshaping.stack(arrays, axis_in("stack", axis, arrays[0].aval.ndim + 1))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis, without that axis.

    >>> from purax import lax, numpy as jnp
    >>> lax.unstack(jnp.arange(2))
    (Array(0, dtype=int32), Array(1, dtype=int32))
    """
    x = array("unstack", x)
    axis = axis_in("unstack", axis, x.aval.ndim)
    parts = reshaping.split(x, [1] * x.aval.shape[axis], axis) if x.aval.shape[axis] else ()
    return tuple(reshaping.squeeze(part, (axis,)) for part in parts)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cuts an array along an axis into parts of the given sizes.

    >>> from purax import lax, numpy as jnp
    >>> lax.split(jnp.arange(4), (1, 3))
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32)]
    """
    x = array("split", operand)
    return reshaping.split(x, sizes_of(sizes, "sizes"), axis_in("split", axis, x.aval.ndim))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """An array repeated `reps[i]` times along axis i.

    >>> from purax import lax, numpy as jnp
    >>> lax.tile(jnp.arange(2), (2,))
    Array([0, 1, 0, 1], dtype=int32)
    """
    return reshaping.tile(array("tile", operand), sizes_of(reps, "reps"))


_array = array  # some functions have an argument of this name


def _several(name: str, operands: Any) -> list[Any]:
    """The operands as arrays of one dtype; an array stands for its parts along the first axis."""
    if isinstance(operands, (Array, np.ndarray)):
        return list(unstack(operands))
    arrays = [array(name, x, i) for i, x in enumerate(finite(operands))]
    if not arrays:
        raise located(ValueError, f"lax.{name}: {name} requires a non-empty sequences of arrays")
    avals = [x.aval for x in arrays]
    same_dtypes(name, avals)
    if len({aval.ndim for aval in avals}) > 1:
        raise located(
            TypeError,
            f"Cannot {name} arrays with different numbers of dimensions: got "
            f"{', '.join(str(aval.shape) for aval in avals)}: lax.{name} of {listed(avals)}",
        )
    return arrays
