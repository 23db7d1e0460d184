"""A window of fixed size at a computed place: `dynamic_slice` reads it, `dynamic_update_slice` writes it.

The place is one integer scalar per axis, and is moved so that the window lies inside of the array. Batches of places
become `gather` and `scatter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.primitive import Primitive, is_linear
from purax.primitives.elementwise.arithmetic import max_, min_
from purax.primitives.elementwise.logic import select
from purax.primitives.shape.broadcasting import (
    batch_size,
    batch_to_front,
    full,
    materialize,
    move_axis,
    zeros,
)
from purax.primitives.shape.gather_scatter import (
    CLIP,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    int32_places,
    scatter,
    signed_indices,
)
from purax.primitives.shape.reshaping import stack
from purax.primitives.shape.slicing import insert, pad


class DynamicSlice(Primitive):
    """The window of `slice_sizes` of `x` that starts at the given place."""

    name = "dynamic_slice"
    moves_elements = True
    is_cheap_to_repeat = True
    is_fused = False
    host_is_cheap = True

    def infer(self, x, *starts, slice_sizes):
        check_window(self.name, x, starts, slice_sizes)
        return x.with_shape(slice_sizes)

    def lay_out(self, out, x, *starts, slice_sizes):
        return x.spec

    def host(self, x, *starts, slice_sizes):
        return x[window(x.shape, starts, slice_sizes)]

    def padded(self, at, avals, operands, *, slice_sizes):
        x, *starts = operands
        return at.window(x, places_inside(at, avals[0].shape, starts, slice_sizes), slice_sizes)

    def lower(self, builder, x, *starts, slice_sizes):
        starts = [signed_indices(builder, start, x.shape) for start in starts]
        return builder.window(x, starts, slice_sizes)

    def jvp(self, primals, tangents, *, slice_sizes):
        out = self.bind(*primals, slice_sizes=slice_sizes)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, self.bind(tangents[0], *primals[1:], slice_sizes=slice_sizes)

    def transpose(self, cotangent, x, *starts, slice_sizes):
        return dynamic_update_slice(zeros(x.aval), cotangent, starts), *[None] * len(starts)

    def batch(self, operands, batch_axes, *, slice_sizes):
        x, *starts = operands
        axis, *start_axes = batch_axes
        if all(start_axis is None for start_axis in start_axes):
            sizes = insert(slice_sizes, axis, aval_of(x).shape[axis])
            return dynamic_slice(x, insert(starts, axis, _zero_like(starts)), sizes), axis
        indices = stack_starts(starts, start_axes)
        ndim = len(slice_sizes)
        inside = tuple(range(1, ndim + 1))
        if axis is None:
            numbers = GatherDimensionNumbers(inside, (), tuple(range(ndim)))
        else:
            x = move_axis(x, axis, 0)
            numbers = GatherDimensionNumbers(inside, (), inside, (0,), (0,))
            slice_sizes = (min(aval_of(x).shape[0], 1), *slice_sizes)
        is_paired = axis is not None
        return gather(
            x, indices, numbers, slice_sizes, mode=CLIP, unique_indices=is_paired, indices_are_sorted=is_paired
        ), 0  # fmt: skip


class DynamicUpdateSlice(Primitive):
    """`x` with the window that starts at the given place replaced by `update`."""

    name = "dynamic_update_slice"
    moves_elements = True

    def infer(self, x, update, *starts):
        if x.dtype != update.dtype:
            raise TypeError(
                f"dynamic_update_slice needs an update of the operand's dtype, got {x.str_short()} and "
                f"{update.str_short()}; convert it with `.astype`"
            )
        check_window(self.name, x, starts, update.shape)
        return ShapedArray(x.shape, x.dtype, x.weak_type and update.weak_type)

    def lay_out(self, out, x, update, *starts):
        return x.spec

    def host(self, x, update, *starts):
        out = np.array(x, order="C")
        out[window(x.shape, starts, update.shape)] = update
        return out

    def padded(self, at, avals, operands):
        (x, update, *starts), (aval, update_aval, *_) = operands, avals
        starts = places_inside(at, aval.shape, starts, update_aval.shape)
        inside = at.inside(update_aval, range(update_aval.ndim))
        if inside is None:
            return dynamic_update_slice(x, update, starts)
        sizes = zip(aval_of(update).shape, update_aval.shape, strict=True)
        more = [(0, n if at.is_padded(m) else 0, 0) for n, m in sizes]
        wide = pad(x, np.zeros((), aval.dtype), more)
        old = dynamic_slice(wide, starts, aval_of(update).shape)
        wide = dynamic_update_slice(wide, select(inside, update, old), starts)
        return at.fit(wide, aval.shape)

    def lower(self, builder, x, update, *starts):
        starts = [signed_indices(builder, start, x.shape) for start in starts]
        return builder.op("dynamic_update_slice", (x, update, *starts), x.aval)

    def jvp(self, primals, tangents):
        out = self.bind(*primals)
        if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
            return out, Zero.like(out)
        return out, self.bind(materialize(tangents[0]), materialize(tangents[1]), *primals[2:])

    def transpose(self, cotangent, x, update, *starts):
        dx = dupdate = None
        if is_linear(x):
            dx = dynamic_update_slice(cotangent, full(update.shape, 0, aval_of(cotangent).dtype), starts)
        if is_linear(update):
            dupdate = dynamic_slice(cotangent, starts, update.shape)
        return dx, dupdate, *[None] * len(starts)

    def batch(self, operands, batch_axes):
        x, update, *starts = operands
        start_axes = batch_axes[2:]
        size = batch_size(operands, batch_axes)
        x = batch_to_front(x, batch_axes[0], size)
        update = batch_to_front(update, batch_axes[1], size)
        if all(axis is None for axis in start_axes):
            return dynamic_update_slice(x, update, (_zero_like(starts), *starts)), 0
        inside = tuple(range(1, aval_of(x).ndim))
        numbers = ScatterDimensionNumbers(inside, (), inside, (0,), (0,))
        indices = stack_starts(starts, start_axes)
        return scatter(
            x, indices, update, numbers, mode=CLIP, unique_indices=True, indices_are_sorted=True
        ), 0


dynamic_slice_p = DynamicSlice()
dynamic_update_slice_p = DynamicUpdateSlice()


def dynamic_slice(x, starts: Sequence, slice_sizes: Sequence[int]):
    """The window of `slice_sizes` of `x` that starts at `starts`, integer scalars of one dtype."""
    return dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(slice_sizes))


def dynamic_update_slice(x, update, starts: Sequence):
    """`x` with the window that starts at `starts` replaced by `update`."""
    return dynamic_update_slice_p.bind(x, update, *starts)


def window(shape: tuple[int, ...], starts: Sequence[np.ndarray], sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """The NumPy index of a window, moved inside of the shape."""
    places = []
    for n, start, size in zip(shape, starts, sizes, strict=True):
        first = min(max(int(start), 0), n - size)
        places.append(slice(first, first + size))
    return tuple(places)


def stack_starts(starts: Sequence, batch_axes: Sequence[int | None]):
    """A batch of places as an array of indices."""
    size = batch_size(starts, batch_axes)
    return stack(
        [batch_to_front(start, axis, size) for start, axis in zip(starts, batch_axes, strict=True)], 1
    )


def check_window(name: str, x: ShapedArray, starts: Sequence[ShapedArray], sizes: tuple[int, ...]) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise TypeError(
            f"{name} needs a start and a window size for each axis of an array of shape {x.shape}, got {len(starts)} "
            f"starts and window sizes {sizes}"
        )
    if any(
        start.shape or not dtypes.is_integer(start.dtype) or start.dtype != starts[0].dtype
        for start in starts
    ):
        raise TypeError(
            f"{name}: starts must be integer scalars of one dtype, got {', '.join(s.str_short() for s in starts)}"
        )
    if any(not 0 <= size <= n for size, n in zip(sizes, x.shape, strict=True)):
        if name != "dynamic_slice":
            fault = f"update shape must be smaller than operand shape, got update shape {sizes}"
        elif any(size < 0 for size in sizes):
            fault = f"slice slice_sizes must be greater than or equal to zero, got slice_sizes of {sizes}"
        else:
            fault = f"slice slice_sizes must be less than or equal to operand shape, got slice_sizes {sizes}"
        raise TypeError(
            f"{name} {fault} for operand shape {x.shape}: a window of shape {sizes} does not fit into an array of "
            f"shape {x.shape}"
        )


def places_inside(at: Any, shape: Sequence[int], starts: Sequence, sizes: Sequence[int]) -> list:
    """Where windows of `sizes` begin, moved inside of the true shape of an array with padding."""
    places = []
    for n, start, size in zip(shape, starts, sizes, strict=True):
        start = int32_places(start)
        last = at.scalar(at.difference(n, size))
        places.append(max_(min_(start, last), np.int32(0)))
    return places


def _zero_like(starts: Sequence) -> np.ndarray:
    return np.zeros((), aval_of(starts[0]).dtype if starts else np.int32)
