"""How an index is carried out: a `Plan` for arrays of one shape and the entries of an index, made once.

An index of known positions is a slice. One with computed scalars is a window at a computed place. One with arrays of
positions is a gather (or a scatter, for writing): arrays of positions are broadcast against each other, and their axes
stand where NumPy puts them, in the place of the first array, or in front if a slice stands between the arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import aval_of
from purax.core.dimensions import DimSize, SymbolicDimension, exceeds
from purax.core.source import located
from purax.numpy._indexing.parsing import GAP, NEW, Entry, Flag, Places, Span, Taken
from purax.numpy._promotion import broadcast_shapes
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import clamp, lt, select
from purax.primitives.shape.broadcasting import broadcast_in_dim, broadcast_in_dim_p, full
from purax.primitives.shape.dimension_value import dimension_as_value
from purax.primitives.shape.dynamic_slicing import dynamic_slice
from purax.primitives.shape.gather_scatter import GatherDimensionNumbers, GatherScatterMode, gather
from purax.primitives.shape.reshaping import concatenate, rev, rev_p, squeeze_p
from purax.primitives.shape.slicing import slice_p
from purax.sharding.constraints import beside

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
FILL, CLIP = GatherScatterMode.FILL_OR_DROP, GatherScatterMode.CLIP
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


class Plan:
    """How to read, or to write, what an index names in an array of a shape.

    Attributes:
        result_shape: the shape of x[index].
        raw_shape: the same without new axes.
        is_static: whether all positions are known.
        is_window: whether all positions are known or scalars.
        lows, extents: for each axis the window that is read: its first position, where that is known, and its size.
        strides: for each axis the step, made positive.
        backward: the axes that are read backward.
        scalar_axes: the axes with one position, which the result does not have.
        kept_axes: the axes with slices; `kept_places` are their places in `raw_shape`.
        block_shape: the shape of the arrays of positions, broadcast; `block_place` is its place in the result.
        components: for each axis with positions that a gather needs: the axis, and where they come from: the number
            of an operand, or None for the known position in `lows`.
        wraps: for each operand whether negative positions may occur.
    """

    def __init__(self, shape: tuple[int, ...], entries: tuple[Entry, ...]):
        self.shape, self.entries = shape, entries
        ndim = len(shape)
        self.lows: list[Any] = [0] * ndim
        self.extents: list[Any] = [1] * ndim
        self.strides = [1] * ndim
        sizes: list[Any] = [1] * ndim
        self.backward: list[int] = []
        self.scalar_axes: list[int] = []
        self.kept_axes: list[int] = []
        self.wraps: list[bool] = []
        self.spans: dict[int, int] = {}  # operands that are the starts of windows, and the largest start
        sources: dict[int, int] = {}
        block_shapes: list[tuple[int, ...]] = []
        pieces: list[Any] = []  # of the result: "array" for a position or flag, an axis for a slice, NEW, GAP
        axis = 0
        entry: Any
        for entry in entries:
            if entry is NEW or entry is GAP:
                pieces.append(entry)
                continue
            if entry.__class__ is Flag:
                block_shapes.append((int(entry.value),))
                pieces.append("array")
                continue
            if entry.__class__ is Taken or entry.__class__ is Span:
                self.kept_axes.append(axis)
                pieces.append(axis)
                sizes[axis] = entry.size
                if entry.__class__ is Taken:
                    self._take(axis, entry)
                else:
                    self._take(axis, Taken(0, entry.size, entry.step))
                    self.lows[axis] = 0
                    sources[axis] = len(self.wraps)
                    self.spans[len(self.wraps)] = shape[axis] - entry.extent  # type: ignore[union-attr]  # a Span
                    self.wraps.append(True)
            else:
                pieces.append("array")
                self.scalar_axes.append(axis)
                if entry.__class__ is Places:
                    block_shapes.append(entry.shape)
                    sources[axis] = len(self.wraps)
                    self.wraps.append(entry.wraps)
                else:
                    self.lows[axis] = entry
            axis += 1
        self.sizes = tuple(sizes)
        self.is_static = not sources and not block_shapes
        self.is_window = self.is_static or not any(block_shapes)
        self.block_shape = _block_shape(block_shapes)
        self._lay_out(pieces)
        self.components = tuple(
            (a, sources.get(a)) for a in range(ndim) if a in sources or a in self.scalar_axes or self.lows[a]
        )
        self.reads_nothing = 0 in self.result_shape
        self.steps = self._steps()

    def _take(self, axis: int, entry: Taken) -> None:
        start, size, step = entry
        if not size:
            self.lows[axis], self.extents[axis] = 0, 0
            return
        extent = (size - 1) * abs(step) + 1
        self.lows[axis] = start if step > 0 else start - extent + 1
        self.extents[axis] = extent
        if size != 1:
            self.strides[axis] = abs(step)
            if step < 0:
                self.backward.append(axis)

    def _lay_out(self, pieces: list[Any]) -> None:
        """Finds the places of slices, of the block and of new axes in the result."""
        where = [i for i, piece in enumerate(pieces) if piece == "array"]
        block = ["block"] * len(self.block_shape)
        is_joined = not where or where[-1] - where[0] + 1 == len(where)
        front = where[0] if where and is_joined else 0
        order: list[Any] = []
        for i, piece in enumerate(pieces):
            if i == front:
                order += block
            if piece != "array" and piece is not GAP:
                order.append(piece)
        if not pieces:
            order += block
        self.block_place = order.index("block") if block else 0
        self.new_axes = [i for i, piece in enumerate(order) if piece is NEW]
        raw = [piece for piece in order if piece is not NEW]
        self.kept_places = [i for i, piece in enumerate(raw) if piece != "block"]
        block_sizes = iter(self.block_shape)
        self.raw_shape = tuple(
            [next(block_sizes) if piece == "block" else self.sizes[piece] for piece in raw]
        )
        raw_sizes = iter(self.raw_shape)
        self.result_shape = tuple([1 if piece is NEW else next(raw_sizes) for piece in order])

    def _steps(self) -> tuple[tuple[Any, dict[str, Any]], ...]:
        """What is left to do: all of it for a static plan, what follows the window or the gather for others."""
        steps: list[tuple[Any, dict[str, Any]]] = []
        in_place = self.is_window  # axes are still where they were
        places = dict(zip(self.kept_axes, self.kept_places, strict=True))
        place = (lambda axis: axis) if in_place else places.__getitem__
        shape = list(self.shape if self.is_static else self.extents if in_place else self.raw_shape)
        starts, strides = [0] * len(shape), [1] * len(shape)
        limits = shape.copy()
        for axis in range(len(self.shape)) if in_place else self.kept_axes:
            at = place(axis)
            if self.is_static:
                starts[at] = self.lows[axis]
            elif not in_place:
                shape[at] = self.extents[axis]
            strides[at] = self.strides[axis]
            limits[at] = starts[at] + self.extents[axis]
        if any(starts) or limits != shape or any(step != 1 for step in strides):
            steps.append(_slice_step(starts, limits, strides))
        if self.backward:
            steps.append((rev_p, {"dimensions": tuple([place(axis) for axis in self.backward])}))
        if in_place and self.scalar_axes:
            steps.append((squeeze_p, {"dimensions": tuple(self.scalar_axes)}))
        if self.new_axes:
            kept = tuple([i for i in range(len(self.result_shape)) if i not in self.new_axes])
            steps.append((broadcast_in_dim_p, {"shape": self.result_shape, "broadcast_dimensions": kept}))
        return tuple(steps)

    @functools.cached_property
    def window_sizes(self) -> tuple[int, ...]:
        """The sizes of the windows of a gather."""
        return tuple(self.extents)

    @functools.cached_property
    def dimension_numbers(self) -> GatherDimensionNumbers:
        return GatherDimensionNumbers(
            tuple(self.kept_places), tuple(self.scalar_axes), tuple([axis for axis, _ in self.components])
        )


plan_for = functools.lru_cache(4096)(Plan)


def _slice_step(
    starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> tuple[Any, dict[str, Any]]:
    steps = None if all(step == 1 for step in strides) else tuple(strides)
    return slice_p, {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": steps}


def _block_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise located(
            IndexError,
            "shape mismatch: the arrays of an index, after masks are replaced by the positions where they hold, "
            f"could not be broadcast together with shapes {', '.join(map(str, shapes))}",
        ) from None


# --- reading


def read(
    x: Any,
    operands: Sequence[Any],
    plan: Plan,
    mode: GatherScatterMode = PROMISE,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """x[index], for the plan of the index and its operands."""
    if plan.reads_nothing:
        empty = full(plan.result_shape, 0, aval_of(x).dtype)
        return beside(x, convert_element_type(empty, empty.dtype, True) if aval_of(x).weak_type else empty)
    if not plan.is_static:
        check_places(plan)
        if plan.is_window and mode is not FILL:
            x = dynamic_slice(x, window_starts(plan, operands), plan.extents)
        else:
            only_scalars = plan.is_window
            x = gather(
                x,
                index_vectors(plan, operands),
                plan.dimension_numbers,
                plan.window_sizes,
                mode=mode,
                fill_value=fill_value,
                indices_are_sorted=indices_are_sorted or only_scalars,
                unique_indices=unique_indices or only_scalars,
            )
            if plan.is_window:
                return _after_gather(x, plan)
    for primitive, params in plan.steps:
        x = primitive.bind(x, **params)
    return x


def _after_gather(x: Any, plan: Plan) -> Any:
    """The steps after a gather of one window, whose scalar axes are gone already."""
    place = dict(zip(plan.kept_axes, plan.kept_places, strict=True))
    if any(step != 1 for step in plan.strides):
        shape = aval_of(x).shape
        strides = [plan.strides[axis] for axis in plan.kept_axes]
        primitive, params = _slice_step([0] * len(shape), shape, strides)
        x = primitive.bind(x, **params)
    x = rev(x, [place[axis] for axis in plan.backward])
    if plan.new_axes:
        kept = [i for i in range(len(plan.result_shape)) if i not in plan.new_axes]
        x = broadcast_in_dim(x, plan.result_shape, kept)
    return x


def check_places(plan: Plan) -> None:
    """Raises if a position is asked for on an axis of size 0."""
    for axis in plan.scalar_axes:
        if not plan.shape[axis]:
            raise located(
                IndexError,
                f"index is out of bounds for axis {axis} with size 0 of an array of shape {plan.shape}",
            )


# --- positions


def index_dtype(shape: tuple[int, ...], operands: Sequence[Any]) -> np.dtype:
    """The dtype in which all positions can be told apart."""
    if any([exceeds(n, 2**31 - 1) for n in shape]):
        return INT64
    for x in operands:
        dtype = aval_of(x).dtype
        if dtypes.itemsize_bits(dtype) > (31 if dtypes.is_unsigned(dtype) else 32):
            return INT64
    return INT32


def position_operand(x: Any, plan: Plan, number: int, axis: int, dtype: np.dtype) -> Any:
    """Positions along an axis as `dtype`, negative ones counted from the end."""
    x = as_dtype(x, dtype)
    return select(lt(x, 0), add(x, plan.shape[axis]), x) if plan.wraps[number] else x


def as_dtype(x: Any, dtype: Any) -> Any:
    """`x` with its elements as `dtype`, weak or not."""
    return x if aval_of(x).dtype == dtype else convert_element_type(x, dtype)


def place_at(position: DimSize, dtype: np.dtype) -> Any:
    """A known position as a scalar."""
    if isinstance(position, SymbolicDimension):
        return convert_element_type(dimension_as_value(position), dtype)
    return np.asarray(position, dtype)


def window_starts(plan: Plan, operands: Sequence[Any]) -> list[Any]:
    """For each axis the first position of the window, a scalar."""
    dtype = index_dtype(plan.shape, operands)
    starts = [place_at(low, dtype) for low in plan.lows]
    for axis, number in plan.components:
        if number is not None:
            starts[axis] = position_operand(operands[number], plan, number, axis, dtype)
    return starts


def index_vectors(plan: Plan, operands: Sequence[Any]) -> Any:
    """The positions as gather and scatter want them: along the last axis one for each of the components."""
    dtype = index_dtype(plan.shape, operands)
    shape = (*plan.block_shape, 1)
    parts = []
    for axis, number in plan.components:
        if number is None:
            parts.append(broadcast_in_dim(place_at(plan.lows[axis], dtype), shape, ()))
            continue
        x = operands[number]
        if plan.wraps[number] or len(plan.components) > 1:
            x = position_operand(x, plan, number, axis, dtype)
        if number in plan.spans:
            x = clamp(0, x, plan.spans[number])
        first = len(plan.block_shape) - aval_of(x).ndim
        parts.append(broadcast_in_dim(x, shape, range(first, len(plan.block_shape))))
    if not parts:
        return full((*plan.block_shape, 0), 0, dtype)
    return parts[0] if len(parts) == 1 else concatenate(parts, len(plan.block_shape))
