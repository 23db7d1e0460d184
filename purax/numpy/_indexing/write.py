"""Writing what an index names: `write` for the plan of an index, `masked_update` for a mask.

Known positions are written as one window, masks by selecting, arrays of positions by scattering. Positions that
repeat are updated one after the other. The parameters are static, so that an update can be one compiled program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.dimensions import exceeds
from purax.core.source import located
from purax.core.trace import Tracer
from purax.numpy._elementwise import arithmetic
from purax.numpy._indexing.names import mask_names
from purax.numpy._indexing.parsing import Flag, Places, Settings, Span, Taken, is_mask, resolve
from purax.numpy._indexing.plans import CLIP, Plan, as_dtype, index_vectors, place_at, plan_for, read
from purax.numpy._promotion import shape_of
from purax.primitives.elementwise import extrema_on_host
from purax.primitives.elementwise.arithmetic import max_, min_, rem, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, eq, select
from purax.primitives.shape.broadcasting import broadcast_in_dim, full
from purax.primitives.shape.dynamic_slicing import dynamic_update_slice
from purax.primitives.shape.gather_scatter import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from purax.primitives.shape.reshaping import iota, reshape, rev
from purax.primitives.shape.slicing import pad
from purax.primitives.shape.slicing import slice as cut


class Operation(NamedTuple):
    """A way to combine an element with its update.

    Attributes:
        combine: both as arrays of one shape, or one of them as a scalar, to the new elements.
        scatter: the operation of the scatter family; None where repeated updates are first multiplied.
        ufunc: NumPy's, for small arrays; None if there is none.
    """

    combine: Callable
    scatter: Callable | None
    ufunc: Callable | None


OPERATIONS = {
    "set": Operation(lambda old, new: new, scatter, None),
    "add": Operation(add, scatter_add, np.add),
    "subtract": Operation(sub, scatter_sub, np.subtract),
    "multiply": Operation(mul, scatter_mul, np.multiply),
    "divide": Operation(arithmetic.divide, None, np.divide),
    "power": Operation(arithmetic.power, None, None),
    "min": Operation(min_, scatter_min, extrema_on_host.minimum),
    "max": Operation(max_, scatter_max, extrema_on_host.maximum),
}


class How(NamedTuple):
    """The parameters of an update: all static.

    Attributes:
        name: of the operation.
        dtype: in which it is computed.
        mode: what becomes of updates out of bounds.
    """

    name: str
    dtype: Any
    mode: GatherScatterMode
    indices_are_sorted: bool
    unique_indices: bool


def stretched(values: Any, shape: tuple[int, ...], aval: Any) -> Any:
    """Values with the shape of the elements they are for, or as a scalar."""
    own = shape_of(values)
    if own == shape or not own:
        return values
    if len(own) > len(shape) or any(
        n not in (1, m) for n, m in zip(own, shape[len(shape) - len(own) :], strict=True)
    ):
        refuse_values(own, shape, aval)
    return broadcast_in_dim(values, shape, range(len(shape) - len(own), len(shape)))


def refuse_values(own: tuple[int, ...], shape: tuple[int, ...], aval: Any) -> NoReturn:
    raise located(
        ValueError,
        f"values of shape {own} cannot be broadcast to the shape {shape} of the elements that the index names in "
        f"an array of shape {aval.shape}",
    )


def like(out: Any, x: Any) -> Any:
    """`out` with the type of `x`."""
    return convert_element_type(out, aval_of(x).dtype, aval_of(x).weak_type)


def write_entries(x: Any, values: Any, *operands: Any, how: How, key: tuple) -> Any:
    return like(write(x, values, operands, plan_for(aval_of(x).shape, key), how), x)


def write(x: Any, values: Any, operands: Sequence[Any], plan: Plan, how: How) -> Any:
    """`x` with the elements that a plan names combined with values, which have their shape or are a scalar."""
    if plan.reads_nothing or 0 in plan.shape:
        return x
    own = aval_of(x).dtype
    operation = OPERATIONS[how.name]
    if plan.is_static:
        if how.name != "set":
            values = operation.combine(as_dtype(read(x, (), plan), how.dtype), values)
        return put(x, broadcast_in_dim(as_dtype(values, own), plan.result_shape, ()), plan)
    if any(entry.__class__ is Span and entry.extent != entry.size for entry in plan.entries):
        window, inner, starts, others = within_windows(plan, operands)
        part = write(read(x, starts, window), values, others, inner, how)
        return write(x, part, starts, window, how._replace(name="set", dtype=own))
    if any(step != 1 for step in plan.strides):
        outer, inner = without_strides(plan)
        part = write(read(x, (), outer), values, operands, inner, how)
        return put(x, part, outer)
    x = as_dtype(x, how.dtype)
    is_unique = how.unique_indices or plan.is_window
    if operation.scatter is None and is_unique:
        values = operation.combine(read(x, operands, plan, CLIP), values)
        how = how._replace(name="set")
    values = reshape(broadcast_in_dim(values, plan.result_shape, ()), plan.raw_shape)
    if plan.backward:
        place = dict(zip(plan.kept_axes, plan.kept_places, strict=True))
        values = rev(values, [place[axis] for axis in plan.backward])

    def spread(function: Callable, onto: Any) -> Any:
        return function(
            onto,
            index_vectors(plan, operands),
            values,
            ScatterDimensionNumbers(*plan.dimension_numbers),
            mode=how.mode,
            indices_are_sorted=how.indices_are_sorted or plan.is_window,
            unique_indices=is_unique,
        )

    function = OPERATIONS[how.name].scatter
    if function is not None:
        out = spread(function, x)
    else:  # x / a / b = x / (a · b) and (xᵃ)ᵇ = x^(a · b)
        out = operation.combine(x, spread(scatter_mul, full(plan.shape, 1, how.dtype)))
    return as_dtype(out, own)


def put(x: Any, values: Any, plan: Plan) -> Any:
    """`x` with the elements that a static plan names replaced by values of their shape."""
    values = rev(reshape(values, plan.sizes), plan.backward)
    extents = tuple(plan.extents)
    if plan.sizes != extents:
        limits = [low + extent for low, extent in zip(plan.lows, extents, strict=True)]
        zero = np.zeros((), aval_of(values).dtype)
        values = pad(values, zero, [(0, 0, step - 1) for step in plan.strides])
        values = select(is_taken(plan), values, cut(x, plan.lows, limits))
    if extents == plan.shape:
        return values
    dtype = np.dtype(np.int64 if any(exceeds(n, 2**31 - 1) for n in plan.shape) else np.int32)
    return dynamic_update_slice(x, values, [place_at(low, dtype) for low in plan.lows])


def is_taken(plan: Plan) -> Any:
    """A mask, over the window of a static plan, of the elements that its strides take."""
    result = None
    for axis, step in enumerate(plan.strides):
        if step != 1:
            count = iota(np.int32, (plan.extents[axis],))
            multiples = eq(rem(count, np.array(step, np.int32)), 0)
            along = broadcast_in_dim(multiples, plan.extents, (axis,))
            result = along if result is None else and_(result, along)
    return result


def without_strides(plan: Plan) -> tuple[Plan, Plan]:
    """A static plan that takes the slices with strides, and what remains of the plan on its result."""
    outer = [Taken(0, n, 1) for n in plan.shape]
    inner = []
    axis = 0
    for entry in plan.entries:
        if entry.__class__ is Taken:
            if entry.size > 1 and abs(entry.step) > 1:
                outer[axis], entry = entry, Taken(0, entry.size, 1)
        inner.append(entry)
        axis += not (entry.__class__ is Flag or entry.__class__ is str)
    whole = plan_for(plan.shape, tuple(outer))
    return whole, plan_for(whole.result_shape, tuple(inner))


def within_windows(plan: Plan, operands: Sequence[Any]) -> tuple[Plan, Plan, list[Any], list[Any]]:
    """A plan for the windows of slices with steps at computed places, and what remains of the plan inside of them.

    With each of them come its operands.
    """
    outer: list[Any] = [Taken(0, n, 1) for n in plan.shape]
    inner: list[Any] = []
    starts: list[Any] = []
    others: list[Any] = []
    remaining = iter(operands)
    axis = 0
    for entry in plan.entries:
        has_operand = entry.__class__ is Span or entry.__class__ is Places
        operand = next(remaining) if has_operand else None
        if entry.__class__ is Span and entry.extent != entry.size:
            outer[axis] = Span(entry.extent)
            starts.append(operand)
            entry = Taken(0 if entry.step > 0 else entry.extent - 1, entry.size, entry.step)
        elif has_operand:
            others.append(operand)
        inner.append(entry)
        axis += not (entry.__class__ is Flag or entry.__class__ is str)
    window = plan_for(plan.shape, tuple(outer))
    return window, plan_for(window.result_shape, tuple(inner)), starts, others


# --- masks


class MaskedUpdate(NamedTuple):
    """An update by a mask and values that do not depend on how many elements it names.

    Attributes:
        mask: its axes are the axes `first_axis`, … of what the rest of the index selects.
        operands: of the rest of the index.
        key: the entries of the rest of the index; `first_axis`; the place of the axis, of size 1, that stands for the
            elements of the mask in the shape that the values are for; that shape.
    """

    mask: Any
    operands: list[Any]
    key: tuple[tuple, int, int, tuple[int, ...]]

    @staticmethod
    def find(
        shape: tuple[int, ...],
        parts: list[tuple[Any, int]],
        settings: Settings,
        values_shape: tuple[int, ...],
    ) -> MaskedUpdate | None:
        """The masked update that an index with one mask is, if it is one."""
        masks = [i for i, (part, _) in enumerate(parts) if is_mask(part)]
        if not masks:
            return None
        traced = next((parts[i][0] for i in masks if isinstance(parts[i][0], Tracer)), None)
        if len(masks) > 1 or any([counts_positions(part) for part, _ in parts]):
            if traced is None:
                return None
            raise located(
                NotImplementedError,
                "x.at[...] with a traced mask takes no other masks, arrays of positions or truth values beside it, "
                "since the number of positions is not known. Combine the masks to one of the array's shape.",
            )
        (at,) = masks
        mask, axis = parts[at]
        if mask.shape != shape[axis : axis + mask.ndim]:
            return None  # `resolve` reports it
        entries, operands = resolve(
            shape, [*parts[:at], *whole_axes(mask.ndim, axis), *parts[at + 1 :]], settings
        )
        one = [Flag(True)] if not mask.ndim else [Places((1,), False)] * mask.ndim
        first = sum([part is None or part.__class__ is slice for part, _ in parts[:at]])
        as_array = plan_for(shape, (*entries[:at], *one, *entries[at + mask.ndim :]))
        place = as_array.block_place
        target = as_array.result_shape
        behind = (
            len(target) - place
        )  # the axis of the mask in the values is the one before so many from their end
        if len(values_shape) >= behind and values_shape[-behind] != 1:
            if traced is None:
                return None
            refuse_masked_values(traced, values_shape, target, place)
        return MaskedUpdate(mask, operands, (entries, first, place, target))


def counts_positions(part: Any) -> bool:
    """Whether a part of an index that is no mask has an axis of positions."""
    if part.__class__ is bool:
        return True
    return isinstance(part, (Array, np.ndarray)) and part.ndim > 0 and not is_mask(part)


def whole_axes(count: int, axis: int) -> list[tuple[Any, int]]:
    return [(slice(None), axis + i) for i in range(count)]


def refuse_masked_values(mask: Any, own: tuple[int, ...], target: tuple[int, ...], place: int) -> NoReturn:
    sizes = ", ".join("n" if i == place else str(m) for i, m in enumerate(target))
    x, chosen = mask_names()
    raise located(
        ValueError,
        f"{x}.at[{chosen}] with a traced mask needs values that fit whatever the number n of True elements is: "
        f"values of shape {own} cannot be broadcast to ({sizes}). For values of the shape of {x}, write "
        f"jnp.where({chosen}, values, {x}).",
    )


def masked_update(x: Any, values: Any, mask: Any, *operands: Any, how: How, key: tuple) -> Any:
    """`x` updated where a mask holds; see `MaskedUpdate` for the key. Without a place in it, the values are for all
    elements that the rest of the index names.
    """
    entries, first, place, target = key
    plan = plan_for(aval_of(x).shape, entries)
    old = read(x, operands, plan, CLIP)
    own = aval_of(x).dtype
    shape = aval_of(old).shape
    count = aval_of(mask).ndim
    if shape_of(values) and place is not None:
        values = stretched(values, target, aval_of(x))
        rest = [n for i, n in enumerate(target) if i != place]
        values = reshape(values, (*rest[:first], *[1] * count, *rest[first:]))
        values = broadcast_in_dim(values, shape, range(len(shape)))
    new = OPERATIONS[how.name].combine(as_dtype(old, how.dtype), values)
    holds = broadcast_in_dim(mask, shape, range(first, first + count))
    new = broadcast_in_dim(as_dtype(new, own), shape, ())
    chosen = select(holds, new, old)
    return like(write(x, chosen, operands, plan, how._replace(name="set", dtype=own)), x)
