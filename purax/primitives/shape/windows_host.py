"""Windows of an array at the places that an array of indices names, in NumPy: the `host` rules of gather and scatter.

The axes of the operand that windows are placed along are merged into one axis of "rows", so that gathering is one
`take` and scattering one assignment (or one `ufunc.at`) with flat row numbers. A `Layout` holds what depends on shapes
only, and is made once per shape.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from purax.primitives.shape.windows import ScatterDimensionNumbers, window_sizes

_LARGEST = np.iinfo(np.int64).max
_PLAIN: dict[np.dtype, np.dtype] = {
    np.dtype(np.int32): np.dtype(np.uint32),
    np.dtype(np.int64): np.dtype(np.uint64),
}


class Layout:
    """How windows of `slice_sizes` lie in an operand; see `GatherDimensionNumbers` for the arguments.

    Attributes:
        batch_shape: of the windows: the shape of the indices but for their last axis.
        window_shape: of a window, without the axes that are dropped from it.
        bounds: for each component of an index the largest start of a window that lies inside.
    """

    def __init__(
        self,
        operand_shape: tuple[int, ...],
        indices_shape: tuple[int, ...],
        slice_sizes: tuple[int, ...],
        window_axes: tuple[int, ...],
        dropped: tuple[int, ...],
        index_map: tuple[int, ...],
        operand_batching: tuple[int, ...],
        indices_batching: tuple[int, ...],
    ):
        ndim = len(operand_shape)
        self.batch_shape = indices_shape[:-1]
        self.count = math.prod(self.batch_shape)
        self.slice_sizes = slice_sizes
        self.index_map = index_map
        self.bounds_list = [operand_shape[axis] - slice_sizes[axis] for axis in index_map]
        self.bounds = np.array(self.bounds_list, np.int64)
        self.whole = tuple(slice(0, n) for n in slice_sizes)
        kept = [axis for axis in range(ndim) if axis not in dropped and axis not in operand_batching]
        self.window_shape = tuple(slice_sizes[axis] for axis in kept)

        placed = [
            axis
            for axis in range(ndim)
            if axis in index_map or axis in operand_batching or slice_sizes[axis] != operand_shape[axis]
        ]
        free = [axis for axis in range(ndim) if axis not in placed]
        self.rows = math.prod(operand_shape[axis] for axis in placed)
        strides = _row_strides(operand_shape, placed)

        # The row of element w of window b is  index[b] · strides + first_rows[b] + window_rows[w].
        self.index_strides = np.array([strides[axis] for axis in index_map], np.int64)
        self.first_rows: np.ndarray | None = None
        if operand_batching:
            rows = np.zeros(self.batch_shape, np.int64)
            for axis, source in zip(operand_batching, indices_batching, strict=True):
                step = np.arange(indices_shape[source]) * strides[axis]
                rows = rows + step.reshape([-1 if i == source else 1 for i in range(len(self.batch_shape))])
            self.first_rows = rows
        offsets = np.zeros((1,), np.int64)
        for axis in placed:
            offsets = np.add.outer(offsets, np.arange(slice_sizes[axis]) * strides[axis]).reshape(-1)
        self.window_rows = offsets
        self.last_rows = self.rows - 1
        self.is_plain = (
            len(index_map) == 1
            and placed == list(index_map)
            and slice_sizes[index_map[0]] == 1
            and self.rows <= 2**31
        )

        # Gathering takes rows where they stand if the placed axes are neighbours, else from a copy with them in front.
        are_neighbours = not placed or placed == list(range(placed[0], placed[0] + len(placed)))
        self.order = None if are_neighbours else (*placed, *free)
        if not are_neighbours:
            before, after = [], free
        else:
            start = placed[0] if placed else 0
            before, after = [a for a in free if a < start], [a for a in free if a >= start]
        self.row_axis = len(before)
        self.merged_shape = (
            *(operand_shape[axis] for axis in before), self.rows, *(operand_shape[axis] for axis in after)
        )  # fmt: skip
        batch_axes = [axis for axis in range(len(self.batch_shape) + len(kept)) if axis not in window_axes]
        result_axis = dict(zip(kept, window_axes, strict=True))
        taken = [axis for axis in (*before, *placed, *after) if axis in result_axis]
        position = sum(axis in result_axis for axis in before)
        made = [result_axis[axis] for axis in taken]
        made[position:position] = batch_axes
        shape = [slice_sizes[axis] for axis in taken]
        shape[position:position] = self.batch_shape
        self.taken_shape = tuple(shape)
        self.result_order = None if made == sorted(made) else tuple(int(i) for i in np.argsort(made))

        # Scattering works on a copy with the placed axes in front.
        self.scatter_order = None if placed + free == list(range(ndim)) else (*placed, *free)
        self.scatter_inverse = tuple(int(i) for i in np.argsort(placed + free))
        self.row_size = math.prod(operand_shape[axis] for axis in free)
        updates_order = batch_axes + [result_axis[axis] for axis in placed + free if axis in result_axis]
        self.updates_order = None if updates_order == sorted(updates_order) else tuple(updates_order)
        self.batch_axes = tuple(batch_axes)

    def locate(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows of all elements of all windows, window by window, with windows that are not inside moved inside;
        and a mask of these windows, of the shape of the batch, or None if there are none.
        """
        outside = None
        if self.is_plain and indices.dtype in _PLAIN:
            starts = indices[..., 0]
            if np.count_nonzero(beyond := is_outside(starts, self.last_rows)):
                starts, outside = starts.clip(0, self.last_rows), beyond
            return starts.reshape(-1), outside
        starts = as_int64(indices)
        if np.count_nonzero(beyond := is_outside(starts, self.bounds.view(np.uint64))):
            starts = np.minimum(np.maximum(starts, 0), self.bounds)
            outside = np.asarray(beyond.any(-1))
        if len(self.index_strides) == 1:
            rows = starts[..., 0] * self.index_strides[0]
        else:
            rows = starts @ self.index_strides
        if self.first_rows is not None:
            rows = rows + self.first_rows
        rows = rows.reshape(-1)
        if len(self.window_rows) != 1:
            rows = np.add.outer(rows, self.window_rows).reshape(-1)
        return rows, outside


def is_outside(starts: np.ndarray, bounds) -> np.ndarray:
    """starts < 0 or starts > bounds, in one comparison: negative numbers are large ones as unsigned numbers."""
    return starts.view(_PLAIN[starts.dtype]) > bounds


def _row_strides(shape: tuple[int, ...], placed: list[int]) -> dict[int, int]:
    strides, step = {}, 1
    for axis in reversed(placed):
        strides[axis] = step
        step *= shape[axis]
    return strides


layout = functools.lru_cache(4096)(Layout)


@functools.lru_cache(4096)
def scatter_layout(
    operand_shape: tuple[int, ...],
    indices_shape: tuple[int, ...],
    updates_shape: tuple[int, ...],
    numbers: ScatterDimensionNumbers,
) -> Layout:
    """The layout of the windows that updates of a shape are for."""
    return Layout(operand_shape, indices_shape, window_sizes(operand_shape, updates_shape, numbers), *numbers)


def as_int64(indices: np.ndarray) -> np.ndarray:
    """Indices of any integer dtype as int64; those that are larger than that become its largest value."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, _LARGEST)
    return indices.astype(np.int64, copy=False)


def gather(operand: np.ndarray, indices: np.ndarray, where: Layout, fill) -> np.ndarray:
    """The windows of `operand` at `indices`. Those that are not inside it are moved inside, or, if `fill` is not None,
    replaced by it.
    """
    if where.is_plain and indices.dtype in _PLAIN:
        starts = indices[..., 0]
        taken = operand.take(starts, where.index_map[0], mode="clip")
        outside = None if fill is None else is_outside(starts, where.last_rows)
    else:
        rows, outside = where.locate(indices)
        if where.order is not None:
            operand = operand.transpose(where.order)
        taken = operand.reshape(where.merged_shape).take(rows, where.row_axis)
    taken = taken.reshape(where.taken_shape)
    if where.result_order is not None:
        taken = taken.transpose(where.result_order)
    if fill is not None and outside is not None and np.count_nonzero(outside):
        shape = list(taken.shape)
        for axis in range(len(shape)):
            if axis not in where.batch_axes:
                shape[axis] = 1
        taken = np.where(outside.reshape(shape), fill, taken)
    return taken


def scatter(
    operand: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    where: Layout,
    combine: Callable | None,
    *,
    clip: bool,
    unique: bool,
) -> np.ndarray:
    """A copy of `operand` with the windows at `indices` replaced by, or combined with, `updates`, in order.

    Windows that are not inside the operand are moved inside if `clip` holds, else left out. `unique` promises that no
    two windows overlap.
    """
    if where.count == 1:
        return _scatter_one(operand, indices, updates, where, combine, clip)
    out = (operand if where.scatter_order is None else operand.transpose(where.scatter_order)).copy()
    if where.updates_order is not None:
        updates = updates.transpose(where.updates_order)
    rows, outside = where.locate(indices)
    if outside is not None and not clip:
        inside = ~outside.reshape(-1)
        rows = rows.reshape(where.count, len(where.window_rows))[inside].reshape(-1)
        updates = updates.reshape(where.count, len(where.window_rows), where.row_size)[inside]
    updates = updates.reshape(len(rows), where.row_size)
    table = out.reshape(where.rows, where.row_size)
    if combine is None:
        table[rows] = updates
    elif unique and (outside is None or not clip):  # windows that were moved may overlap others
        table[rows] = combine(table[rows], updates)
    elif hasattr(combine, "at"):
        if where.row_size != 1:
            first = np.multiply(rows, where.row_size, dtype=np.int64)
            rows = np.add.outer(first, np.arange(where.row_size)).reshape(-1)
        combine.at(out.reshape(-1), rows, updates.reshape(-1))
    else:
        for row, update in zip(rows.tolist(), updates, strict=True):
            table[row] = combine(table[row], update)
    return out if where.scatter_order is None else out.transpose(where.scatter_inverse)


def _scatter_one(operand, indices, updates, where, combine, clip) -> np.ndarray:
    """`scatter` of a single window."""
    out = operand.copy()
    window = list(where.whole)
    for axis, start, bound in zip(
        where.index_map, indices.reshape(-1).tolist(), where.bounds_list, strict=True
    ):
        if not 0 <= start <= bound:
            if not clip:
                return out
            start = min(max(start, 0), bound)
        window[axis] = slice(start, start + where.slice_sizes[axis])
    place = tuple(window)
    updates = updates.reshape(where.slice_sizes)
    out[place] = updates if combine is None else combine(out[place], updates)
    return out
