"""Reductions over segments of an array, which an array of segment numbers tells apart: `segment_sum` and its relatives.

Each is one scatter onto an array of neutral elements, so that it is differentiated, vectorized and compiled as that.
Numbers outside of [0, num_segments) belong to no segment. `purax.ops` has these functions for users.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from purax import errors
from purax.api.vmap import vmap
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.numpy._programs import concrete_value
from purax.numpy._promotion import as_array
from purax.numpy._reductions.reductions import max as largest
from purax.numpy._reductions.reductions import min as least
from purax.numpy._reductions.reductions import prod as product
from purax.numpy._reductions.reductions import sum as total
from purax.numpy._shape.shaping import broadcast_to
from purax.primitives.shape.broadcasting import full
from purax.primitives.shape.gather_scatter import (
    FILL_OR_DROP,
    GatherScatterMode,
    ScatterDimensionNumbers,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from purax.primitives.shape.reshaping import expand_dims, reshape
from purax.primitives.shape.slicing import pad
from purax.sharding.constraints import freely
from purax.typing import ArrayLike


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sum of each segment of an array.

    Args:
        data: the array; its first axis is divided into segments. It is broadcast: a scalar, or an axis of size 1,
            is the same entry for all of `segment_ids`.
        segment_ids: the number of the segment of each entry along that axis, or numbers of several axes, for entries
            of the shape `data.shape[1:]`. Entries whose number is not in [0, num_segments) are left out.
        num_segments: how many segments there are, `max(segment_ids) + 1` if not given. It is the size of the result,
            so it must be given where the numbers are not known, as under `jit`.
        indices_are_sorted: promises that the numbers increase.
        unique_indices: promises that no number occurs twice.
        bucket_size: sums this many entries at a time, and then their sums, which has smaller rounding errors.
        mode: what becomes of numbers out of range; see `lax.GatherScatterMode`.
        out_sharding: how the result is sharded over devices.

    Returns:
        An array of the shape `(num_segments, *data.shape[1:])`; empty segments are 0.

    >>> import purax as px, purax.numpy as jnp
    >>> px.ops.segment_sum(jnp.arange(5), jnp.array([0, 0, 1, 1, 2]))
    Array([1, 5, 4], dtype=int32)
    """
    settings = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)
    return _reduced("segment_sum", scatter_add, total, lambda _: 0, data, segment_ids, settings)


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product of each segment of an array; empty segments are 1. The arguments are those of `segment_sum`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.ops.segment_prod(jnp.arange(1, 6), jnp.array([0, 0, 1, 1, 2]))
    Array([ 2, 12,  5], dtype=int32)
    """
    settings = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)
    return _reduced("segment_prod", scatter_mul, product, lambda _: 1, data, segment_ids, settings)


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Array:
    """The least element of each segment of an array; empty segments are the largest number of the dtype.

    The arguments are those of `segment_sum`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.ops.segment_min(jnp.array([3.0, 1.0, 2.0]), jnp.array([0, 0, 2]), 3)
    Array([ 1., inf,  2.], dtype=float32)
    """
    settings = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)
    return _reduced("segment_min", scatter_min, least, _largest_number, data, segment_ids, settings)


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Array:
    """The largest element of each segment of an array; empty segments are the least number of the dtype.

    The arguments are those of `segment_sum`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.ops.segment_max(jnp.array([3.0, 1.0, 2.0]), jnp.array([0, 0, 2]), 3)
    Array([  3., -inf,   2.], dtype=float32)
    """
    settings = (num_segments, indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)
    return _reduced("segment_max", scatter_max, largest, _least_number, data, segment_ids, settings)


def _largest_number(dtype: Any) -> Any:
    if dtypes.is_boolean(dtype):
        return True
    return dtypes.iinfo(dtype).max if dtypes.is_integer(dtype) else float("inf")


def _least_number(dtype: Any) -> Any:
    if dtypes.is_boolean(dtype):
        return False
    return dtypes.iinfo(dtype).min if dtypes.is_integer(dtype) else -float("inf")


def _reduced(
    name: str,
    scatter: Callable,
    reduce: Callable,
    neutral: Callable,
    data: Any,
    segment_ids: Any,
    settings: tuple,
) -> Array:
    num_segments, is_sorted, is_unique, bucket_size, mode, out_sharding = settings
    if out_sharding is not None:
        settings = (*settings[:-1], None)
        segments = lambda x, ids: _reduced(name, scatter, reduce, neutral, x, ids, settings)  # noqa: E731
        return freely(segments, out_sharding, data, segment_ids)
    values, numbers = as_array(data, name, 0), as_array(segment_ids, name, 1)
    if not dtypes.is_integer(numbers.dtype):
        raise located(TypeError, f"{name}: segment_ids must be integers, got {numbers.aval.str_short()}")
    entry = values.shape[1:]  # what one number is for; numbers of any shape take such entries
    try:
        values = broadcast_to(values, (*numbers.shape, *entry))
    except ValueError:
        raise located(
            ValueError,
            f"{name}: segment_ids must have one number for each entry along the first axis of data, got shapes "
            f"{numbers.shape} and {values.shape}: Incompatible shapes for broadcasting",
        ) from None
    values, numbers = reshape(values, (numbers.size, *entry)), reshape(numbers, (numbers.size,))
    if num_segments is None:
        num_segments = _count(name, segment_ids)
    num_segments = as_size(num_segments)
    if num_segments < 0:
        raise located(ValueError, f"{name}: num_segments must not be negative, got {num_segments}")
    dtype = values.dtype
    how = {
        "mode": FILL_OR_DROP if mode is None else GatherScatterMode.from_any(mode),
        "indices_are_sorted": is_sorted,
        "unique_indices": is_unique,
    }

    def reduce_one(values: Any, numbers: Any) -> Any:
        start = full((num_segments, *values.shape[1:]), neutral(dtype), dtype)
        if not num_segments:
            return start
        where = ScatterDimensionNumbers(tuple(range(1, values.ndim)), (0,), (0,))
        return scatter(start, expand_dims(numbers, (1,)), values, where, **how)

    if bucket_size is None:
        return reduce_one(values, numbers)
    if operator.index(bucket_size) < 1:
        raise located(ValueError, f"{name}: bucket_size must be positive, got {bucket_size}")
    size = values.shape[0]
    if not size:
        return reduce_one(values, numbers)
    count = -(-size // bucket_size)
    missing = [(0, count * bucket_size - size, 0)] + [(0, 0, 0)] * (values.ndim - 1)
    values = reshape(
        pad(values, full((), neutral(dtype), dtype), missing), (count, bucket_size, *values.shape[1:])
    )
    # What is added belongs to the last entry's segment, to which it changes nothing; sorted numbers stay sorted.
    numbers = reshape(pad(numbers, numbers[-1], missing[:1]), (count, bucket_size))
    how["unique_indices"] = False
    parts = vmap(reduce_one)(values, numbers)
    return reduce(parts, axis=0).astype(dtype)


def _count(name: str, segment_ids: Any) -> int:
    known = concrete_value(segment_ids)
    if known is None:
        raise located(
            errors.ConcretizationTypeError,
            f"{name} cannot tell the number of segments, which is the size of its result, from numbers that are "
            "not known while the function is traced; give it as num_segments",
        )
    if not known.size:
        raise located(
            ValueError,
            f"{name}: an empty segment_ids does not tell the number of segments; give it as num_segments",
        )
    return max(int(known.max()) + 1, 0)
