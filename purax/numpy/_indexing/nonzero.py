"""Where elements are not 0, and the elements that a mask chooses.

How many there are depends on the values, so that these functions work on known arrays; while a function is being
compiled or vectorized they need `size`, the number of results.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax import errors
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import shown
from purax.numpy._programs import as_one_program, concrete_value, constant_value, host_array, strong_array
from purax.numpy._promotion import as_array, common_dtype, promote, refuse_out
from purax.numpy._reductions.reductions import as_truth
from purax.numpy._shape.axes import canonical_axis
from purax.primitives.elementwise.arithmetic import div, rem, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import lt, select
from purax.primitives.reductions.cumulative import cumsum
from purax.primitives.shape.broadcasting import broadcast_in_dim, full
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.gather_scatter import FILL_OR_DROP, ScatterDimensionNumbers, scatter, take
from purax.primitives.shape.reshaping import expand_dims, iota, reshape, stack
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


def refuse_unknown_size(name: str, x: Any, example: str) -> None:
    """Raises because the number of results depends on values that are not known yet."""
    assert isinstance(x, Tracer)
    x.refuse(
        errors.ConcretizationTypeError,
        f"{name} without `size`",
        f"The number of its results depends on the values: write {example}, with the number of results to return.",
    )


def checked_size(name: str, size: Any) -> int:
    """The argument `size` as an integer."""
    try:
        count = as_size(size)
    except TypeError:
        raise located(TypeError, f"{name}: size must be a known integer, got {shown(size)}") from None
    if count < 0:
        raise located(ValueError, f"{name}: size must not be negative, got {count}")
    return count


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that are not 0.

    Args:
        a: an array with at least one axis.
        size: how many indices to return; needed under `jit`. Surplus ones are left out, missing ones filled in.
        fill_value: what is filled in, 0 if not given; one number, or a tuple with one for each axis. The results are
            integers, or what integers and the fill value are promoted to. Where `a` has no elements, 0 is filled in.

    Returns:
        A tuple with a vector of indices for each axis of `a`, in the order of its elements.

    >>> import purax.numpy as jnp
    >>> jnp.nonzero(jnp.array([0, 5, 0, 7]))
    (Array([1, 3], dtype=int32),)
    >>> jnp.nonzero(jnp.array([0, 5, 0, 7]), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int32),)
    """
    x = as_array(a, "nonzero")
    if not x.ndim:
        raise located(
            ValueError, "nonzero of a scalar is not allowed; use jnp.atleast_1d(x) first, or jnp.argwhere"
        )
    return _places("nonzero", x, size, fill_value)


def _places(name: str, x: Array, size: int | None, fill_value: Any) -> tuple[Array, ...]:
    """The vectors of indices; of nothing, and where none are asked for, zeros whatever is filled in, as in jax."""
    known = None
    if size is None:
        known = concrete_value(x)
        if known is None:
            refuse_unknown_size(name, x, f"jnp.{name}(x, size=n)")
        count = int(np.count_nonzero(known))
    else:
        count = checked_size(name, size)
    if not x.size or not count:
        return tuple([full((count,), 0, dtypes.default_int()) for _ in range(x.ndim)])
    if known is not None and fill_value is None:
        return tuple([_index_array(one) for one in np.nonzero(known)])
    fills = _fills(name, fill_value, x.ndim)
    found = indices_of_mask(as_truth(x, name), *[strong_array(fill, name) for fill in fills], size=count)
    return tuple(
        [convert_element_type(one, one.dtype, fill.weak_type) for one, fill in zip(found, fills, strict=True)]
    )


def _index_array(indices: np.ndarray) -> DeviceArray:
    return host_array(indices.astype(dtypes.default_int()))


def _fills(name: str, fill_value: Any, ndim: int) -> list[Array]:
    """What is filled in along each axis."""
    if fill_value is None:
        fill_value = 0
    values = fill_value if isinstance(fill_value, tuple) else (fill_value,) * ndim
    arrays = [as_array(value, f"{name}(fill_value=...)") for value in values]
    if len(arrays) != ndim or any(x.ndim for x in arrays):
        raise located(
            ValueError,
            f"{name}: fill_value must be a number, or a tuple of {ndim} numbers, one for each axis; got "
            f"{shown(fill_value)}",
        )
    return [_as_wide_as_indices(x) for x in arrays]


def _as_wide_as_indices(fill: Array) -> Array:
    dtype, weak = common_dtype((np.zeros((), dtypes.default_int()), fill))
    return convert_element_type(fill, dtype, weak)


def _mask_on_host(mask, *fills, size):
    places = np.nonzero(mask)
    return tuple(
        np.concatenate([one[:size].astype(fill.dtype), np.full(max(size - len(one), 0), fill)])
        for one, fill in zip(places, fills, strict=True)
    )


@as_one_program(_mask_on_host)
def indices_of_mask(mask, *fills, size):
    """The first `size` indices where a mask is true, for each of its axes, in the dtypes of what is filled in."""
    index = dtypes.default_int()
    flat = reshape(mask, (mask.size,))
    counts = cumsum(convert_element_type(flat, index), 0) if mask.size else convert_element_type(flat, index)
    # Element k that is true goes to place k; all others go to a place that does not exist.
    places = select(flat, sub(counts, np.array(1, index)), np.array(max(size, 1), index))
    start = full((size,), 0, index)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    found = start
    if mask.size and size:
        found = scatter(
            start,
            expand_dims(places, (1,)),
            iota(index, flat.shape),
            numbers,
            mode=FILL_OR_DROP,
            unique_indices=False,
        )
    total = (
        reshape(take(counts, full((1,), mask.size - 1, index), 0), ()) if mask.size else np.array(0, index)
    )
    is_real = lt(iota(index, (size,)), total)
    result = []
    for axis, fill in enumerate(fills):
        stride = math.prod(mask.shape[axis + 1 :])
        own = rem(div(found, np.array(max(stride, 1), index)), np.array(max(mask.shape[axis], 1), index))
        result.append(select(is_real, convert_element_type(own, fill.dtype), fill))
    return tuple(result)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements of the flattened array that are not 0. Arguments as those of `nonzero`.

    >>> import purax.numpy as jnp
    >>> jnp.flatnonzero(jnp.array([[0, 5], [7, 0]]))
    Array([1, 2], dtype=int32)
    """
    x = as_array(a, "flatnonzero")
    return _places("flatnonzero", reshape(x, (x.size,)), size, fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that are not 0, one row for each. Arguments as those of `nonzero`.

    >>> import purax.numpy as jnp
    >>> jnp.argwhere(jnp.array([[0, 5], [7, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    x = as_array(a, "argwhere")
    if not x.ndim:
        places = _places("argwhere", reshape(x, (1,)), size, fill_value)[0]
        return expand_dims(places, (1,))[:, :0]
    return stack(promote("argwhere", *_places("argwhere", x, size, fill_value)), 1)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The parts of an array along an axis that a mask chooses.

    Args:
        condition: a vector of booleans, not longer than the axis, or false beyond its end.
        a: the array.
        axis: the axis; None to flatten the array first.
        size: how many parts to return; needed under `jit`.
        fill_value: what is filled in if there are fewer than `size`.
        out: not supported.

    Returns:
        The parts where `condition` is true.

    >>> import purax.numpy as jnp
    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    refuse_out("compress", out)
    mask, x = as_truth(as_array(condition, "compress", 0), "compress"), as_array(a, "compress", 1)
    return _chosen("compress", mask, x, axis, size, fill_value)


def _chosen(name: str, mask: Array, x: Array, axis: int | None, size: int | None, fill_value: Any) -> Array:
    if mask.ndim != 1:
        raise located(ValueError, f"{name}: condition must be a 1D array, got shape {mask.shape}")
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = canonical_axis(name, axis, x.ndim)
    length = x.shape[axis]
    known = concrete_value(mask)
    if known is not None and known[length:].any():
        raise located(
            ValueError,
            f"{name}: condition contains entries that are out of bounds: it is true at "
            f"{int(np.flatnonzero(known)[-1])}, axis {axis} of the array of shape {x.shape} has size {length}",
        )
    if size is None:
        if known is None:
            refuse_unknown_size(name, mask, f"jnp.{name}(condition, x, size=n)")
        return take(x, _index_array(np.flatnonzero(known)), axis)
    size = checked_size(name, size)
    index = dtypes.default_int()
    (indices,) = indices_of_mask(mask, as_array(number_as(length, index), name), size=size)
    fill = constant_value(fill_value)
    if fill is None:
        fill = as_array(fill_value, f"{name}(fill_value=...)")
    if fill.ndim:
        raise located(ValueError, f"{name}: fill_value must be a number, got {shown(fill_value)}")
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    if isinstance(fill, Array):
        filled = broadcast_in_dim(convert_element_type(fill, x.dtype), shape, ())
        if not length:
            return filled
        is_chosen = lt(indices, as_array(number_as(length, indices.dtype), name))
        taken = take(x, indices, axis, mode=FILL_OR_DROP, fill_value=0)
        return select(broadcast_in_dim(is_chosen, shape, (axis,)), taken, filled)
    if not length:
        return full(shape, fill.item(), x.dtype)
    return take(x, indices, axis, mode=FILL_OR_DROP, fill_value=fill.item())


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """The elements of an array where a mask is true, as a vector.

    Args:
        condition: booleans, in the shape of `arr`.
        arr: the array.
        size: how many elements to return; needed under `jit`.
        fill_value: what is filled in if there are fewer than `size`.

    Returns:
        The elements, in order.

    >>> import purax.numpy as jnp
    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.extract(x > 1, x)
    Array([2, 3, 4], dtype=int32)
    """
    mask, x = as_truth(as_array(condition, "extract", 0), "extract"), as_array(arr, "extract", 1)
    known = concrete_value(mask)
    flat = (
        reshape(mask, (mask.size,)) if known is None else host_array(known.reshape(-1))
    )  # known inside of `jit`, too
    return _chosen("extract", flat, x, None, size, fill_value)
