"""Reading and writing windows of an array at computed places: `gather` and the `scatter` family.

An array of indices names the places, its last axis holds the components of an index. `gather` collects the windows
there; `scatter` replaces them by updates, `scatter_add`, … combine them with updates. The transpose of `gather` is
`scatter_add`. Updates are applied in order on the CPU; a repeated index keeps the last one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import exceeds, is_symbolic_shape, min_dim
from purax.core.primitive import Primitive, is_linear
from purax.core.source import located
from purax.primitives import layouts
from purax.primitives.elementwise import extrema_on_host
from purax.primitives.elementwise.arithmetic import div, max_p, min_p
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul, neg
from purax.primitives.elementwise.logic import and_, eq, select
from purax.primitives.shape import table_rows, windows_host
from purax.primitives.shape.broadcasting import (
    batch_size,
    batch_to_front,
    broadcast_in_dim,
    full,
    materialize,
    move_axis,
    zeros,
)
from purax.primitives.shape.reshaping import expand_dims, iota, reshape
from purax.primitives.shape.slicing import pad
from purax.primitives.shape.windows import (
    CLIP,
    FILL_OR_DROP,
    ONE_HOT,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_dimension_numbers,
    check_sorted,
    is_increasing,
    shifted,
    window_sizes,
)
from purax.xla.stablehlo import Builder, Value

_INT32 = np.dtype(np.int32)


class Gather(Primitive):
    """The windows of `slice_sizes` of the operand that start at the indices."""

    name = "gather"
    moves_elements = True

    def infer(self, operand, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **flags):
        check_dimension_numbers(self.name, operand, indices, dimension_numbers, slice_sizes)
        batch = list(indices.shape[:-1])
        offset_dims, collapsed, _, batching, _ = dimension_numbers
        window = [n for axis, n in enumerate(slice_sizes) if axis not in collapsed and axis not in batching]
        ndim = len(batch) + len(window)
        if len(offset_dims) != len(window):
            raise TypeError(
                "All components of the offset index in a gather op must either be a offset dimension or explicitly "
                f"collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, output_slice_sizes={offset_dims}, "
                f"collapsed_slice_dims={collapsed}, operand_batching_dims={batching}: offset_dims {offset_dims} "
                f"name {len(offset_dims)} axes of the result for {len(window)} of the window"
            )
        if not is_increasing(offset_dims, ndim):
            for i, axis in enumerate(offset_dims):
                if not 0 <= axis < ndim and list(offset_dims) == sorted(set(offset_dims)):
                    raise TypeError(
                        f"Offset dimension {i} in gather op is out of bounds; got {axis}, but should have been in "
                        f"[0, {ndim}): it is an axis of the result"
                    )
            check_sorted("gather", "offset_dims", offset_dims, ndim, f"result with {ndim} axes")
        sizes = {True: iter(window), False: iter(batch)}
        return operand.with_shape(tuple(next(sizes[axis in offset_dims]) for axis in range(ndim)))

    def lay_out(self, out, operand, indices, *, dimension_numbers, slice_sizes, **flags):
        offset_dims, collapsed, _, batching, indices_batching = dimension_numbers
        window = [axis for axis in range(operand.ndim) if axis not in collapsed and axis not in batching]
        cut = [axis for axis in window if slice_sizes[axis] != operand.shape[axis]]
        layouts.check_whole(self.name, operand, (*collapsed, *cut), "looks for indices along")
        layouts.check_whole(self.name, indices, (indices.ndim - 1,), "takes as one index")
        batch = list(indices.spec[:-1])
        for axis, place in zip(batching, indices_batching, strict=True):
            both = (operand.spec[axis], batch[place])
            batch[place] = layouts.one_of(self.name, (operand, indices), both)
        entries = {True: iter([operand.spec[axis] for axis in window]), False: iter(batch)}
        return [next(entries[axis in offset_dims]) for axis in range(out.ndim)]

    def host(self, operand, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **flags):
        where = windows_host.layout(operand.shape, indices.shape, slice_sizes, *dimension_numbers)
        fill = fill_for(operand.dtype, fill_value) if mode is FILL_OR_DROP else None
        return windows_host.gather(operand, indices, where, fill)

    def host_function(self, avals, params):
        operand, indices = avals
        where = windows_host.layout(
            operand.shape, indices.shape, params["slice_sizes"], *params["dimension_numbers"]
        )
        fill = fill_for(operand.dtype, params["fill_value"]) if params["mode"] is FILL_OR_DROP else None
        return lambda operand, indices: windows_host.gather(operand, indices, where, fill)

    def padded(self, at, avals, operands, *, dimension_numbers, slice_sizes, mode, fill_value, **flags):
        (x, indices), (aval, _) = operands, avals
        _, collapsed, index_map, batching, _ = dimension_numbers
        whole = [n == size for n, size in zip(aval.shape, slice_sizes, strict=True)]
        spans = [at.difference(aval.shape[axis], slice_sizes[axis]) for axis in index_map]
        inside = None
        if index_map:
            indices = int32_places(indices)
            moved = at.clamped(indices, 0, spans)
            if mode is FILL_OR_DROP:
                inside = at.every(eq(indices, moved))
            indices = moved
        # A window may reach behind the room, since that of its own size is larger than the window.
        more = [
            0 if is_whole or not at.is_padded(size) else at.room(size)
            for is_whole, size in zip(whole, slice_sizes, strict=True)
        ]
        x = pad(x, np.zeros((), aval_of(x).dtype), [(0, n, 0) for n in more])
        params = {"dimension_numbers": dimension_numbers, "slice_sizes": at.rooms(tuple(slice_sizes)), **flags}
        out = self.bind(x, indices, mode=CLIP, fill_value=None, **params)
        if inside is None:
            return out
        fill = fill_for(aval.dtype, fill_value)
        shape = aval_of(out).shape
        batch_axes = [axis for axis in range(len(shape)) if axis not in dimension_numbers.offset_dims]
        mask = broadcast_in_dim(inside, shape, batch_axes)
        return select(mask, out, full(shape, fill, aval.dtype))

    def lower(
        self,
        builder,
        operand,
        indices,
        *,
        dimension_numbers,
        slice_sizes,
        mode,
        fill_value,
        indices_are_sorted,
        unique_indices,
    ):
        aval = self.infer(
            operand.aval, indices.aval, dimension_numbers=dimension_numbers, slice_sizes=slice_sizes, mode=mode,
            fill_value=fill_value,
        )  # fmt: skip
        indices = signed_indices(builder, indices, operand.shape)
        fill = fill_for(operand.dtype, fill_value) if mode is FILL_OR_DROP else None
        table = table_rows.rows_of(operand.aval, indices.aval, slice_sizes, dimension_numbers)
        rows = table_rows.gather_rows(builder, operand, indices, aval, table, fill)
        if rows is not None:
            return rows
        offset_dims, collapsed, index_map, batching, indices_batching = dimension_numbers
        attributes = (
            f"dimension_numbers = #stablehlo.gather<offset_dims = {list(offset_dims)}, "
            f"collapsed_slice_dims = {list(collapsed)}, operand_batching_dims = {list(batching)}, "
            f"start_indices_batching_dims = {list(indices_batching)}, start_index_map = {list(index_map)}, "
            f"index_vector_dim = {indices.ndim - 1}>, indices_are_sorted = {truth(indices_are_sorted)}"
        )
        out = builder.gather(operand, indices, slice_sizes, aval, attributes)
        if fill is None:
            return out
        low, high = index_bounds(builder, indices, operand.shape, slice_sizes, index_map)
        inside = builder.op(
            "and",
            (builder.compare("GE", indices, low), builder.compare("LE", indices, high)),
            indices.aval.with_dtype(np.dtype(np.bool_)),
        )
        inside = builder.reduce(inside, True, "and", (indices.ndim - 1,))
        batch_axes = [axis for axis in range(aval.ndim) if axis not in offset_dims]
        inside = builder.broadcast(inside, aval.shape, batch_axes)
        return builder.select(inside, out, builder.constant(fill, aval))

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, self.bind(tangents[0], primals[1], **params | {"fill_value": 0})

    def transpose(self, cotangent, operand, indices, *, dimension_numbers, slice_sizes, fill_value, **flags):
        numbers = ScatterDimensionNumbers(*dimension_numbers)
        return scatter_add(zeros(operand.aval), indices, cotangent, numbers, **flags), None

    def batch(self, operands, batch_axes, *, dimension_numbers, slice_sizes, **params):
        operand, indices = operands
        axis, indices_axis = batch_axes
        if axis is not None:
            operand = move_axis(operand, axis, 0)
            size = aval_of(operand).shape[0]
        if indices_axis is not None:
            indices = move_axis(indices, indices_axis, 0)
        offset, collapsed, index_map, batching, indices_batching = dimension_numbers
        if indices_axis is None:
            numbers = GatherDimensionNumbers(
                (0, *shifted(offset)),
                shifted(collapsed),
                shifted(index_map),
                shifted(batching),
                indices_batching,
            )
            slice_sizes = (size, *slice_sizes)
        elif axis is None:
            numbers = GatherDimensionNumbers(
                shifted(offset), collapsed, index_map, batching, shifted(indices_batching)
            )
        else:
            numbers = GatherDimensionNumbers(
                shifted(offset), shifted(collapsed), shifted(index_map),
                (0, *shifted(batching)), (0, *shifted(indices_batching)),
            )  # fmt: skip
            slice_sizes = (min(size, 1), *slice_sizes)
        return self.bind(operand, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params), 0

    def host_work(self, operand, indices, **params):
        return indices.size  # and the size of the result, but not that of the operand


class ScatterFamily(Primitive):
    """Windows of the operand replaced by, or combined with, updates.

    Attributes:
        combine: the NumPy ufunc (or function) that combines an element with its update; None replaces it.
        accepts: kinds of dtypes.
    """

    combine: Callable | None = None
    accepts: tuple[str, ...] = ("integer", "float", "complex")
    gain_of_effort = 1.0

    def emit(self, builder: Builder, element: Value, update: Value) -> Value:
        """The combination of two scalars in StableHLO."""
        raise NotImplementedError

    def infer(self, operand, indices, updates, *, dimension_numbers, **flags):
        if operand.dtype != updates.dtype:
            raise TypeError(
                f"{self.name} needs updates of the operand's dtype, got {operand.str_short()} and "
                f"{updates.str_short()}; convert them with `.astype`"
            )
        if dtypes.kind(operand.dtype) not in self.accepts:
            raise TypeError(
                f"{self.name} takes {' or '.join(self.accepts)} arrays, got {operand.str_short()}; convert it first"
            )
        window_dims, inserted, _, batching, _ = dimension_numbers
        wanted = indices.ndim - 1 + len(window_dims)
        if not indices.ndim or updates.ndim != wanted:
            raise TypeError(
                f"{self.name}: Updates tensor must be of rank {wanted}; got {updates.ndim}. It needs the axes of the "
                f"indices of shape {indices.shape}, but for the last, and one for each of update_window_dims "
                f"{window_dims}"
            )
        sizes = window_sizes(operand.shape, updates.shape, dimension_numbers)
        bounds = [n for axis, n in enumerate(operand.shape) if axis not in inserted and axis not in batching]
        for i, (axis, n) in enumerate(zip(window_dims, bounds, strict=True)):
            if updates.shape[axis] > n:
                raise TypeError(
                    "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding "
                    f"dimensions of operand. For dimension {i}, updates bound is {updates.shape[axis]}, operand bound "
                    f"is {n}: windows of sizes {sizes} do not fit into the operand of shape {operand.shape}"
                )
        batch = tuple(n for axis, n in enumerate(updates.shape) if axis not in window_dims)
        for i, (n, m) in enumerate(zip(batch, indices.shape[:-1], strict=True)):
            if n != m:
                raise TypeError(
                    "Bounds of the scatter dimensions of updates must be the same as the bounds of the corresponding "
                    f"dimensions of scatter indices. For scatter dimension {i}, updates bound is {n}, indices bound is "
                    f"{m}: the indices of shape {indices.shape} name {indices.shape[:-1]} windows, the updates of "
                    f"shape {updates.shape} are for {batch}"
                )
        check_dimension_numbers(self.name, operand, indices, dimension_numbers, sizes)
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type and updates.weak_type)

    def lay_out(self, out, operand, indices, updates, **params):
        return operand.spec

    def host(self, operand, indices, updates, *, dimension_numbers, mode, unique_indices, indices_are_sorted):
        where = windows_host.scatter_layout(operand.shape, indices.shape, updates.shape, dimension_numbers)
        combine = type(self).combine
        return windows_host.scatter(
            operand, indices, updates, where, combine, clip=mode is CLIP, unique=unique_indices
        )

    def host_function(self, avals, params):
        if type(self).host is not ScatterFamily.host:
            return super().host_function(avals, params)
        where = windows_host.scatter_layout(*[aval.shape for aval in avals], params["dimension_numbers"])
        return functools.partial(
            windows_host.scatter,
            where=where,
            combine=type(self).combine,
            clip=params["mode"] is CLIP,
            unique=params["unique_indices"],
        )

    def padded(self, at, avals, operands, *, dimension_numbers, mode, indices_are_sorted, **flags):
        (x, indices, updates), (aval, indices_aval, updates_aval) = operands, avals
        window_dims, _, index_map, _, _ = dimension_numbers
        sizes = window_sizes(aval.shape, updates_aval.shape, dimension_numbers)
        for n, size in zip(aval.shape, sizes, strict=True):
            if at.is_padded(size) and n != size:
                at.refuse(self.name, avals, "the padding of a window would lie on other elements")
        batch_axes = range(indices_aval.ndim - 1)
        inside = at.inside(indices_aval, batch_axes)
        if not index_map:
            if inside is not None:
                at.refuse(self.name, avals, "its windows have no indices")
            return self.bind(
                x, indices, updates, dimension_numbers=dimension_numbers, mode=mode,
                indices_are_sorted=indices_are_sorted, **flags,
            )  # fmt: skip
        indices = int32_places(indices)
        moved = at.clamped(indices, 0, [at.difference(aval.shape[axis], sizes[axis]) for axis in index_map])
        if mode is not CLIP:
            taken = at.every(eq(indices, moved))
            taken = broadcast_in_dim(taken, aval_of(indices).shape, batch_axes)
            inside = taken if inside is None else and_(inside, taken)
        if inside is not None:  # updates that are padding, or not for an element, are dropped
            outside = full(aval_of(indices).shape, np.iinfo(np.int32).max, _INT32)
            moved = select(inside, moved, outside)
        return self.bind(
            x, moved, updates, dimension_numbers=dimension_numbers, mode=FILL_OR_DROP, indices_are_sorted=False,
            **flags,
        )  # fmt: skip

    def lower(
        self,
        builder,
        operand,
        indices,
        updates,
        *,
        dimension_numbers,
        mode,
        unique_indices,
        indices_are_sorted,
    ):
        if not dimension_numbers.scatter_dims_to_operand_dims:
            # XLA takes indices without components for no indices at all: give them one, on a new axis of size 1.
            window_dims, inserted, _, batching, indices_batching = dimension_numbers
            out = self.lower(
                builder,
                builder.reshape(operand, (1, *operand.shape)),
                builder.constant(0, ShapedArray((*indices.shape[:-1], 1), np.dtype(np.int32))),
                updates,
                dimension_numbers=ScatterDimensionNumbers(
                    window_dims, (0, *shifted(inserted)), (0,), shifted(batching), indices_batching
                ),
                mode=PROMISE_IN_BOUNDS,
                unique_indices=unique_indices,
                indices_are_sorted=indices_are_sorted,
            )
            return builder.reshape(out, operand.shape)
        window_dims, inserted, index_map, batching, indices_batching = dimension_numbers
        indices = signed_indices(builder, indices, operand.shape)
        sizes = window_sizes(operand.shape, updates.shape, dimension_numbers)
        table = table_rows.rows_of(operand.aval, indices.aval, sizes, dimension_numbers)
        sums = table_rows.sum_segments(builder, self.name, operand, indices, updates, table, mode is CLIP)
        if sums is not None:
            return sums
        if mode is CLIP:
            low, high = index_bounds(builder, indices, operand.shape, sizes, index_map)
            indices = builder.op("clamp", (low, indices, high), indices.aval)
        attributes = (
            f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {list(window_dims)}, "
            f"inserted_window_dims = {list(inserted)}, input_batching_dims = {list(batching)}, "
            f"scatter_indices_batching_dims = {list(indices_batching)}, "
            f"scatter_dims_to_operand_dims = {list(index_map)}, index_vector_dim = {indices.ndim - 1}>, "
            f"indices_are_sorted = {truth(indices_are_sorted)}, unique_indices = {truth(unique_indices)}"
        )
        scalar = ShapedArray((), operand.dtype)
        body = builder.region((scalar, scalar), lambda inner, old, new: [self.emit(inner, old, new)])
        return builder.op("scatter", (operand, indices, updates), operand.aval, attributes, (body,))

    def batch(self, operands, batch_axes, *, dimension_numbers, **flags):
        size = batch_size(operands, batch_axes)
        operand = batch_to_front(operands[0], batch_axes[0], size)
        updates = batch_to_front(operands[2], batch_axes[2], size)
        window_dims, inserted, index_map, batching, indices_batching = dimension_numbers
        if batch_axes[1] is None:
            indices = operands[1]
            numbers = ScatterDimensionNumbers(
                (0, *shifted(window_dims)),
                shifted(inserted),
                shifted(index_map),
                shifted(batching),
                indices_batching,
            )
        else:
            indices = move_axis(operands[1], batch_axes[1], 0)
            numbers = ScatterDimensionNumbers(
                shifted(window_dims), shifted(inserted), shifted(index_map),
                (0, *shifted(batching)), (0, *shifted(indices_batching)),
            )  # fmt: skip
        return self.bind(operand, indices, updates, dimension_numbers=numbers, **flags), 0


class Scatter(ScatterFamily):
    """The operand with the windows at the indices replaced by the updates."""

    name = "scatter"
    moves_elements = True
    accepts = ("bool", "integer", "float", "complex", "extended")

    def emit(self, builder, element, update):
        return update

    def jvp(self, primals, tangents, *, dimension_numbers, **flags):
        operand, indices, updates = primals
        dx, _, dupdates = tangents
        if type(dupdates) is Zero or flags["unique_indices"]:
            out = scatter(operand, indices, updates, dimension_numbers, **flags)
            if type(dx) is Zero and type(dupdates) is Zero:
                return out, Zero.like(out)
            return out, scatter(materialize(dx), indices, materialize(dupdates), dimension_numbers, **flags)
        # Which of several updates of one element wins is up to the device. So the number of each update is scattered
        # first; those that stay win, all others and the elements they replace count as zero in a sum.
        size, window = aval_of(operand), aval_of(updates)
        batch_axes = [axis for axis in range(window.ndim) if axis not in dimension_numbers.update_window_dims]
        batch_shape = tuple(window.shape[axis] for axis in batch_axes)
        count = reshape(iota(np.uint32, (math.prod(batch_shape),)), batch_shape)
        numbers = add(broadcast_in_dim(count, window.shape, batch_axes), 1)
        winner = scatter(full(size.shape, 0, np.uint32), indices, numbers, dimension_numbers, **flags)
        is_kept = eq(winner, full(size.shape, 0, np.uint32))
        wins = eq(numbers, gather_like(winner, indices, window, dimension_numbers, **flags | {"mode": CLIP}))

        def combine(x, y):
            return scatter_add(select(is_kept, x, 0), indices, select(wins, y, 0), dimension_numbers, **flags)

        return combine(operand, updates), combine(materialize(dx), dupdates)

    def transpose(self, cotangent, operand, indices, updates, *, dimension_numbers, **flags):
        dx = dupdates = None
        if is_linear(operand):
            erased = full(updates.shape, 0, updates.dtype)
            dx = scatter(cotangent, indices, erased, dimension_numbers, **flags)
        if is_linear(updates):
            if not flags["unique_indices"] and is_linear(operand):
                raise NotImplementedError("scatter is linear in its updates only if unique_indices is True")
            dupdates = gather_like(cotangent, indices, updates.aval, dimension_numbers, fill_value=0, **flags)
        return dx, None, dupdates


class ScatterSum(ScatterFamily):
    """Common to `scatter_add` and `scatter_sub`, which are linear in the operand and the updates together."""

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        dx, _, dupdates = tangents
        if type(dupdates) is Zero:
            return out, dx
        return out, self.bind(materialize(dx), primals[1], dupdates, **params)

    def transpose(self, cotangent, operand, indices, updates, *, dimension_numbers, **flags):
        dupdates = None
        if is_linear(updates):
            dupdates = gather_like(cotangent, indices, updates.aval, dimension_numbers, fill_value=0, **flags)
            dupdates = self.updates_cotangent(dupdates)
        return cotangent if is_linear(operand) else None, None, dupdates

    def updates_cotangent(self, cotangent):
        return cotangent


class ScatterAdd(ScatterSum):
    """The operand with the updates added to the windows at the indices."""

    name = "scatter-add"
    combine = np.add

    def emit(self, builder, element, update):
        return builder.op("add", (element, update), element.aval)


class ScatterSub(ScatterSum):
    """The operand with the updates subtracted from the windows at the indices."""

    name = "scatter-sub"
    combine = np.subtract

    def emit(self, builder, element, update):
        return builder.op("subtract", (element, update), element.aval)

    def updates_cotangent(self, cotangent):
        return neg(cotangent)


class ScatterMul(ScatterFamily):
    """The operand with the windows at the indices multiplied by the updates."""

    name = "scatter-mul"
    combine = np.multiply

    def emit(self, builder, element, update):
        return builder.op("multiply", (element, update), element.aval)

    def jvp(self, primals, tangents, *, dimension_numbers, **flags):
        operand, indices, updates = primals
        dx, _, dupdates = tangents
        out = scatter_mul(operand, indices, updates, dimension_numbers, **flags)
        tangent = None
        if type(dx) is not Zero:
            tangent = scatter_mul(dx, indices, updates, dimension_numbers, **flags)
        if type(dupdates) is not Zero:
            if flags["unique_indices"]:
                spread = scatter_add(zeros(aval_of(operand)), indices, dupdates, dimension_numbers, **flags)
                part = mul(operand, spread)
            else:
                others = product_of_others(operand, indices, updates, out, dimension_numbers, flags)
                blank = zeros(aval_of(operand))
                part = scatter_add(blank, indices, mul(dupdates, others), dimension_numbers, **flags)
            tangent = part if tangent is None else add(tangent, part)
        return out, Zero.like(out) if tangent is None else tangent

    def transpose(self, cotangent, operand, indices, updates, *, dimension_numbers, **flags):
        if is_linear(operand):
            return scatter_mul(cotangent, indices, updates, dimension_numbers, **flags), None, None
        scaled = mul(cotangent, operand)
        return (
            None,
            None,
            gather_like(scaled, indices, updates.aval, dimension_numbers, fill_value=0, **flags),
        )


def product_of_others(operand, indices, updates, out, dimension_numbers, flags):
    """For each update the product of the element it meets and all other updates of that element: out / update. Where
    the update is the only zero, that is the product of the others itself; where there are more zeros, it is zero.
    """

    def look_up(values, fill_value):
        return gather_like(
            values, indices, aval_of(updates), dimension_numbers, fill_value=fill_value, **flags
        )

    is_zero = eq(updates, 0)
    without_zeros = select(is_zero, 1, updates)
    product = look_up(scatter_mul(operand, indices, without_zeros, dimension_numbers, **flags), 0)
    ones = full(aval_of(updates).shape, 1, np.int32)
    blank = full(aval_of(operand).shape, 0, np.int32)
    zero_count = look_up(scatter_add(blank, indices, select(is_zero, ones, 0), dimension_numbers, **flags), 0)
    alone = select(eq(zero_count, 1), product, 0)
    return select(is_zero, alone, div(look_up(out, 0), without_zeros))


class ScatterExtremum(ScatterFamily):
    """Common to `scatter_min` and `scatter_max`: the tangent of an element is the mean of the tangents of all that
    equal the result: the updates, and the element itself.
    """

    accepts = ("bool", "integer", "float", "complex")

    def host(self, operand, *others, **params):
        if dtypes.is_complex(operand.dtype):
            return self.host_complex(operand, *others, **params)
        return super().host(operand, *others, **params)

    def host_complex(self, operand, indices, updates, *, dimension_numbers, mode, **flags):
        where = windows_host.scatter_layout(operand.shape, indices.shape, updates.shape, dimension_numbers)
        combine = self.pair.host
        return windows_host.scatter(
            operand, indices, updates, where, combine, clip=mode is CLIP, unique=False
        )

    def emit(self, builder, element, update):
        return self.pair.emit(builder, element, update)

    def jvp(self, primals, tangents, *, dimension_numbers, **flags):
        operand, indices, updates = primals
        out = self.bind(*primals, dimension_numbers=dimension_numbers, **flags)
        if type(tangents[0]) is Zero and type(tangents[2]) is Zero:
            return out, Zero.like(out)
        dx, dupdates = materialize(tangents[0]), materialize(tangents[2])
        window = aval_of(updates)
        blank, ones = zeros(aval_of(operand)), full(window.shape, 1, window.dtype)

        def look_up(values, fill_value=None):
            return gather_like(values, indices, window, dimension_numbers, fill_value=fill_value, **flags)

        def spread(values, onto):
            return scatter_add(onto, indices, values, dimension_numbers, **flags)

        result = look_up(out)
        is_winner = eq(updates, result)
        is_retained = eq(look_up(operand), result)
        winners = look_up(spread(select(is_winner, ones, 0), blank), 1)
        targets = look_up(spread(ones, blank), 1)
        share = div(1, add(winners, select(is_retained, ones, 0)))
        update_part = mul(dupdates, select(is_winner, share, 0))
        # Each of the `targets` updates of an element takes away its part of what the element's own tangent loses.
        operand_part = mul(look_up(dx, 0), div(add(select(is_retained, share, 0), -1), targets))
        return out, spread(add(operand_part, update_part), dx)


class ScatterMin(ScatterExtremum):
    """The operand with the windows at the indices reduced to the updates where these are smaller."""

    name = "scatter-min"
    combine = extrema_on_host.minimum
    pair = min_p


class ScatterMax(ScatterExtremum):
    """The operand with the windows at the indices raised to the updates where these are larger."""

    name = "scatter-max"
    combine = extrema_on_host.maximum
    pair = max_p


gather_p = Gather()
scatter_p = Scatter()
scatter_add_p = ScatterAdd()
scatter_sub_p = ScatterSub()
scatter_mul_p = ScatterMul()
scatter_min_p = ScatterMin()
scatter_max_p = ScatterMax()


def gather(
    operand,
    indices,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    mode: GatherScatterMode = FILL_OR_DROP,
    fill_value: Any = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
):
    """The windows of `operand` that start at `indices`; see `Gather`."""
    if mode is ONE_HOT:
        mode, fill_value = FILL_OR_DROP, 0
    return gather_p.bind(
        operand,
        indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=tuple(slice_sizes),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
        fill_value=fill_value,
    )


def _scatter_function(primitive: ScatterFamily, summary: str):
    def function(
        operand,
        indices,
        updates,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        mode: GatherScatterMode = FILL_OR_DROP,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
    ):
        return primitive.bind(
            operand,
            indices,
            updates,
            dimension_numbers=dimension_numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )

    function.__name__ = function.__qualname__ = primitive.name.replace("-", "_")
    function.__doc__ = summary
    return function


scatter = _scatter_function(scatter_p, "`operand` with the windows at `indices` replaced by `updates`.")
scatter_add = _scatter_function(scatter_add_p, "`operand` with `updates` added to the windows at `indices`.")
scatter_sub = _scatter_function(
    scatter_sub_p, "`operand` with `updates` subtracted from the windows at `indices`."
)
scatter_mul = _scatter_function(
    scatter_mul_p, "`operand` with the windows at `indices` multiplied by `updates`."
)
scatter_min = _scatter_function(
    scatter_min_p, "The smaller of the windows at `indices` and `updates`, in `operand`."
)
scatter_max = _scatter_function(
    scatter_max_p, "The larger of the windows at `indices` and `updates`, in `operand`."
)


def take(operand, indices, axis: int, *, mode: GatherScatterMode = CLIP, fill_value: Any = None):
    """The entries of `operand` along `axis` at `indices`, whose axes stand in the place of `axis`."""
    shape, ndim = aval_of(operand).shape, aval_of(indices).ndim
    if not shape[axis]:
        return _of_nothing(
            operand, (*shape[:axis], *aval_of(indices).shape, *shape[axis + 1 :]), mode, fill_value
        )
    offsets = (*range(axis), *range(axis + ndim, len(shape) - 1 + ndim))
    numbers = GatherDimensionNumbers(offsets, (axis,), (axis,))
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    return gather(operand, expand_dims(indices, (ndim,)), numbers, sizes, mode=mode, fill_value=fill_value)


def take_along_axis(operand, indices, axis: int, *, mode: GatherScatterMode = CLIP, fill_value: Any = None):
    """The entries of `operand` along `axis` at `indices`, which have the operand's shape but along `axis`."""
    ndim = aval_of(operand).ndim
    if not aval_of(operand).shape[axis]:
        return _of_nothing(operand, aval_of(indices).shape, mode, fill_value)
    others = tuple(a for a in range(ndim) if a != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    sizes: list[Any] = [1 if a == axis else min_dim(n, 1) for a, n in enumerate(aval_of(operand).shape)]
    return gather(operand, expand_dims(indices, (ndim,)), numbers, sizes, mode=mode, fill_value=fill_value)


def _of_nothing(operand, shape: tuple[int, ...], mode: GatherScatterMode, fill_value: Any):
    """What is taken from an axis of size 0, in which no window of size 1 fits: all indices are out of bounds."""
    dtype = aval_of(operand).dtype
    return full(shape, fill_for(dtype, fill_value if mode is FILL_OR_DROP else 0), dtype)


def gather_like(operand, indices, window: ShapedArray, dimension_numbers: ScatterDimensionNumbers, **flags):
    """What a scatter with updates of type `window` would write to."""
    sizes = window_sizes(aval_of(operand).shape, window.shape, dimension_numbers)
    return gather(operand, indices, GatherDimensionNumbers(*dimension_numbers), sizes, **flags)


def fill_for(dtype: np.dtype, fill_value: Any) -> np.ndarray:
    """The value that stands for what is out of bounds: NaN, the least signed, the largest unsigned integer, or True."""
    if fill_value is None:
        if dtypes.is_inexact(dtype):
            fill_value = np.nan
        elif dtype == np.bool_:
            fill_value = True
        else:
            limits = dtypes.iinfo(dtype)
            fill_value = limits.max if dtypes.is_unsigned(dtype) else limits.min
    try:
        return np.array(fill_value, dtype)
    except (OverflowError, TypeError, ValueError):
        name = dtypes.dtype_name(dtype)
        raise located(
            ValueError, f"fill_value={fill_value} is not a number of dtype {name}; convert the array first"
        ) from None


def int32_places(indices: Any) -> Any:
    """Indices as int32; what int32 cannot hold stays as far outside of every array."""
    aval = aval_of(indices)
    if dtypes.itemsize_bits(aval.dtype) > (31 if dtypes.is_unsigned(aval.dtype) else 32):
        indices = min_p.bind(indices, full(aval.shape, np.iinfo(np.int32).max, aval.dtype))
        if not dtypes.is_unsigned(aval.dtype):
            indices = max_p.bind(indices, full(aval.shape, -1, aval.dtype))
    return convert_element_type(indices, _INT32)


def signed_indices(builder: Builder, indices: Value, operand_shape: tuple[int, ...]) -> Value:
    """Indices as int32, or int64 where that is not enough, so that bounds and negative indices can be told apart."""
    dtype = indices.dtype
    if dtype == np.uint64:
        largest = builder.constant(np.iinfo(np.int64).max, indices.aval)
        indices = builder.op("minimum", (indices, largest), indices.aval)
    is_wide = dtypes.itemsize_bits(dtype) > (31 if dtypes.is_unsigned(dtype) else 32)
    is_large = any(exceeds(n, np.iinfo(np.int32).max) for n in operand_shape)
    return builder.convert(indices, np.dtype(np.int64 if is_wide or is_large else np.int32))


def index_bounds(
    builder: Builder,
    indices: Value,
    operand_shape: tuple[int, ...],
    slice_sizes: Sequence[int],
    index_map: Sequence[int],
) -> tuple[Value, Value]:
    """The least and the largest index of windows inside of the operand, repeated over the shape of the indices."""
    last = [operand_shape[axis] - slice_sizes[axis] for axis in index_map]
    if is_symbolic_shape(last):
        high = builder.convert(builder.shape_value(last), indices.dtype)
    else:
        high = builder.constant(np.array(last, indices.dtype), indices.aval.with_shape((len(last),)))
    return builder.constant(0, indices.aval), builder.broadcast(high, indices.shape, (indices.ndim - 1,))


def truth(value: bool) -> str:
    return "true" if value else "false"


__all__ = [
    "CLIP", "FILL_OR_DROP", "ONE_HOT", "PROMISE_IN_BOUNDS", "GatherDimensionNumbers", "GatherScatterMode",
    "ScatterDimensionNumbers", "gather", "gather_p", "scatter", "scatter_add", "scatter_add_p", "scatter_max",
    "scatter_max_p", "scatter_min", "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub",
    "scatter_sub_p", "take", "take_along_axis",
]  # fmt: skip
