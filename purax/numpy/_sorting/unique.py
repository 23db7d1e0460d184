"""The distinct elements of an array, with their places and counts.

How many there are depends on the values; while a function is being compiled or vectorized, `size` says how many to
return. NaNs are one element unless `equal_nan=False`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._indexing.nonzero import checked_size, indices_of_mask, refuse_unknown_size
from purax.numpy._programs import as_one_program, concrete_value, host_array
from purax.numpy._promotion import as_array
from purax.numpy._reductions.nan_reductions import is_nan
from purax.numpy._shape.axes import canonical_axis
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import and_, lt, ne, not_, or_, select
from purax.primitives.reductions.cumulative import cumsum
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, move_axis
from purax.primitives.shape.gather_scatter import ScatterDimensionNumbers, scatter, take
from purax.primitives.shape.reshaping import concatenate, expand_dims, iota, reshape, split
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.sorting import sort, sort_p
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


class UniqueAllResult(NamedTuple):
    """The distinct values, where each occurs first, which one each element is, and how often each occurs."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The distinct values, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The distinct values, and which one each element is."""

    values: Array
    inverse_indices: Array


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements of an array, in order.

    Args:
        ar: the array.
        return_index: whether to return where each occurs first.
        return_inverse: whether to return, for each element, which one it is.
        return_counts: whether to return how often each occurs.
        axis: None for distinct elements of the flattened array, an axis for distinct parts along it.
        equal_nan: whether NaNs count as equal.
        size: how many to return; needed under `jit`. Surplus ones are left out, missing ones filled in.
        fill_value: what is filled in, the smallest element if not given.
        sorted: not used, they are always sorted.

    Returns:
        The elements, or a tuple that begins with them.

    >>> import purax.numpy as jnp
    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x = as_array(ar, "unique")
    flags = (True, return_index, return_inverse, return_counts)
    if axis is not None:
        axis = canonical_axis("unique", axis, x.ndim)
    if size is None:
        known = concrete_value(x)
        if known is None:
            refuse_unknown_size("unique", x, "jnp.unique(x, size=n)")
        results: Any = _of_known(x, known, axis, flags, equal_nan)
    else:
        results = _of_size(x, axis, checked_size("unique", size), fill_value, equal_nan, flags)
    chosen = tuple([result for result, flag in zip(results, flags, strict=True) if flag])
    return chosen if len(chosen) > 1 else chosen[0]


def _of_known(x: Array, known: Any, axis: int | None, flags: tuple, equal_nan: bool) -> list[Any]:
    """The results for a known array, computed by NumPy."""
    table = (
        known.astype(np.float32) if dtypes.is_floating(known.dtype) and known.dtype.itemsize < 4 else known
    )
    needs_index = flags[1] or dtypes.is_inexact(known.dtype) or x.__class__ is not DeviceArray
    index = dtypes.default_int()
    values: Any
    first: Any
    inverse: Any
    counts: Any
    if axis is None and not needs_index and not flags[2] and table.size:
        (ordered,) = sort_p.host(table.reshape(-1), dimension=0, is_stable=True, num_keys=1)
        first = inverse = None
        values, counts = _of_sorted(ordered)
    elif axis is not None and 0 in table.shape:
        values, first, inverse, counts = _of_nothing(table, axis)
    else:
        found: Any = np.unique(table, needs_index, flags[2], flags[3], axis, equal_nan=equal_nan)  # type: ignore
        parts = iter(found if isinstance(found, tuple) else (found,))
        values = next(parts)
        first = next(parts) if needs_index else None
        inverse = next(parts) if flags[2] else None
        counts = next(parts) if flags[3] else None
    if inverse is not None:
        inverse = inverse.reshape(known.shape if axis is None else (known.shape[axis],))
    others = [None if one is None else host_array(one.astype(index)) for one in (first, inverse, counts)]
    if first is not None:  # the elements themselves, so that they can be differentiated
        result = take(reshape(x, (x.size,)) if axis is None else x, others[0], axis or 0)
    else:
        result = convert_element_type(host_array(values.astype(known.dtype)), known.dtype, x.weak_type)
    return [result, *others]


def _of_sorted(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct elements of a sorted vector that has some, and how often each occurs."""
    starts = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
    return ordered[starts], np.diff(starts, append=ordered.size)


def _of_nothing(table: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    """NumPy refuses to compare parts without elements; they are all equal."""
    count = min(table.shape[axis], 1)
    first, inverse = np.zeros(count, int), np.zeros(table.shape[axis], int)
    return table.take(first, axis), first, inverse, np.full(count, table.shape[axis])


def _of_size(x: Array, axis: int | None, size: int, fill_value: Any, equal_nan: bool, flags: tuple) -> tuple:
    rows = reshape(x, (x.size,)) if axis is None else move_axis(x, axis, 0)
    if not rows.shape[0] and size and fill_value is None:
        raise located(
            ValueError,
            "unique: for zero-sized input with nonzero size argument, fill_value must be specified",
        )
    operands = [rows]
    if fill_value is not None:
        fill = convert_element_type(
            as_array(fill_value, "unique(fill_value=...)"), rows.dtype, rows.weak_type
        )
        if fill.ndim > rows.ndim - 1:
            raise located(
                ValueError, f"unique: fill_value of shape {fill.shape} does not broadcast to {rows.shape[1:]}"
            )
        operands.append(
            broadcast_in_dim(fill, rows.shape[1:], range(rows.ndim - 1 - fill.ndim, rows.ndim - 1))
        )
    values, first, inverse, counts = _distinct(*operands, size=size, equal_nan=bool(equal_nan))
    if axis is None:
        return values, first, reshape(inverse, x.shape), counts
    return move_axis(values, 0, axis), first, inverse, counts


@as_one_program()
def _distinct(rows, *fill, size, equal_nan):
    """The first `size` distinct rows, where they are, which one each row is, and how often they occur."""
    index = dtypes.default_int()
    count = rows.shape[0]
    if not count:
        values = broadcast_in_dim(fill[0], (size, *rows.shape[1:]), range(1, rows.ndim)) if size else rows
        return values, full((size,), 0, index), full((0,), 0, index), full((size,), 0, index)
    ordered, order = sorted_rows(rows)
    is_new = starts_of_runs(ordered, equal_nan)
    runs = cumsum(convert_element_type(is_new, index), 0)
    total = take(runs, full((), count - 1, index), 0)
    (starts,) = indices_of_mask(is_new, full((), 0, index), size=size)
    is_real = lt(iota(index, (size,)), total)
    places = take(order, starts, 0)  # beyond the last one: the smallest
    values = take(rows, places, 0)
    if fill:
        shape = values.shape
        real = broadcast_in_dim(is_real, shape, (0,))
        values = select(real, values, broadcast_in_dim(fill[0], shape, range(1, rows.ndim)))
    (ends,) = indices_of_mask(is_new, full((), count, index), size=size + 1)
    counts = sub(slice_axis(ends, 1, size + 1, 0), slice_axis(ends, 0, size, 0))
    inverse = scatter(
        full((count,), 0, index),
        expand_dims(order, (1,)),
        sub(runs, np.array(1, index)),
        ScatterDimensionNumbers((), (0,), (0,)),
        unique_indices=True,
    )
    return values, places, inverse, counts


def sorted_rows(rows: Any) -> tuple[Any, Any]:
    """The rows of an array in lexical order, as a table, and that order; equal rows keep their order."""
    index = dtypes.default_int()
    count = rows.shape[0]
    if rows.ndim == 1:
        ordered, order = sort((rows, iota(index, (count,))), 0)
        return ordered, order
    table = reshape(rows, (count, rows.size // count))
    width = table.shape[1]
    if not width:
        return table, iota(index, (count,))
    columns = [reshape(part, (count,)) for part in split(table, (1,) * width, 1)]
    *_, order = sort((*columns, iota(index, (count,))), 0, num_keys=width)
    return take(table, order, 0), order


def starts_of_runs(ordered: Any, equal_nan: bool) -> Any:
    """Which rows of a sorted vector or table differ from the one before; the first one does."""
    count = ordered.shape[0]
    before, after = slice_axis(ordered, 0, count - 1, 0), slice_axis(ordered, 1, count, 0)
    differs = ne(before, after)
    if equal_nan and dtypes.is_inexact(ordered.dtype):
        differs = and_(differs, not_(and_(is_nan(before), is_nan(after))))
    if ordered.ndim == 2:
        differs = _any_of_row(differs)
    return concatenate([full((1,), True, np.bool_), differs], 0)


def _any_of_row(differs):
    width = differs.shape[1]
    result = full((differs.shape[0],), False, np.bool_)
    for i in range(width):
        result = or_(result, reshape(slice_axis(differs, i, i + 1, 1), (differs.shape[0],)))
    return result


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAllResult:
    """The distinct elements, where each occurs first, which one each element is, and how often each occurs.

    NaNs are distinct. Arguments as those of `unique`.

    >>> import purax.numpy as jnp
    >>> jnp.unique_all(jnp.array([3, 1, 3])).indices
    Array([1, 0], dtype=int32)
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """The distinct elements, and how often each occurs. NaNs are distinct. Arguments as those of `unique`.

    >>> import purax.numpy as jnp
    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    found = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCountsResult(*found)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """The distinct elements, and which one each element is. NaNs are distinct. Arguments as those of `unique`.

    >>> import purax.numpy as jnp
    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    found = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverseResult(*found)


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements. NaNs are distinct. Arguments as those of `unique`.

    >>> import purax.numpy as jnp
    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)
