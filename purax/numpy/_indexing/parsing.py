"""What stands between the brackets of `x[...]`, taken apart: `parse` gives the entries of an index, which are static,
and its operands, the arrays of positions. `purax.numpy._indexing.plans` makes plans of reading and writing from
entries.

Positions that are known are checked against the size of their axis here, so that an index out of bounds raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import refuse_mask
from purax.core.dimensions import DimSize, SymbolicDimension, as_size, max_dim, min_dim
from purax.core.source import located
from purax.core.trace import Trace, Tracer, current
from purax.errors import NonConcreteBooleanIndexError, shown
from purax.interpreters.staging import StagingTrace
from purax.numpy._creation.creation import asarray
from purax.numpy._indexing.names import mask_names, slice_names
from purax.numpy._indexing.slice_lengths import static_length
from purax.numpy._indexing.slices import Slice
from purax.xla.array import DeviceArray
from purax.xla.capacity import refuse_to_read


class Taken(NamedTuple):
    """A slice of known bounds: the positions start, start + step, …, `size` of them."""

    start: DimSize
    size: DimSize
    step: int


class Places(NamedTuple):
    """An array of positions along an axis, an operand of the plan; `wraps` if some may be negative."""

    shape: tuple[int, ...]
    wraps: bool


class Span(NamedTuple):
    """A slice of known length at a computed place, which is an operand of the plan: where its window begins."""

    size: int
    step: int = 1

    @property
    def extent(self) -> int:
        """The size of the window that the slice takes its elements from."""
        return (self.size - 1) * abs(self.step) + 1 if self.size else 0


class Flag(NamedTuple):
    """True or False: an axis of size 1 or 0 that stands for no axis of the array."""

    value: bool


NEW = "new axis"
GAP = "gap"  # an ellipsis that stands for no axis; it still separates the arrays on its sides

Entry = int | Taken | Span | Places | Flag | str
"""A part of an index; an int is a position that is known, 0 to size − 1."""


class Parsed(NamedTuple):
    """An index for arrays of a certain shape: its entries, and the operand of each `Places` and `Span`, in order."""

    entries: tuple[Entry, ...]
    operands: list[Any]


class Settings(NamedTuple):
    """How positions are meant.

    Attributes:
        check: whether known positions out of bounds raise, where `config.check_indices` is set; they do unless the
            user gave a mode.
        wrap: whether negative positions count from the end.
    """

    check: bool = True
    wrap: bool = True


DEFAULT = Settings()


def parse(shape: tuple[int, ...], index: Any, settings: Settings = DEFAULT) -> Parsed:
    """Takes an index apart.

    Args:
        shape: of the array that is indexed.
        index: what stands between the brackets.
        settings: how positions are meant.

    Returns:
        The entries and operands.

    Raises:
        IndexError: a position that is known is out of bounds, there are more indices than axes, a mask does not fit.
        TypeError: an entry is of a kind that is no index.

    >>> parse((3, 4), (1, slice(None, None, 2))).entries
    (1, Taken(start=0, size=2, step=2))
    """
    return resolve(shape, expand(shape, index), settings)


# --- which axis each part is for


def expand(shape: tuple[int, ...], index: Any) -> list[tuple[Any, int]]:
    """The parts of an index, each with the axis that it begins at, one or more for every axis of the array.

    Parts are None, `GAP`, slices, ints, bools and arrays of integers or booleans.
    """
    if index.__class__ is not tuple:
        if isinstance(index, tuple):
            index = tuple(index)
        else:
            if isinstance(index, list):
                refuse_list(index)
            index = (index,)
    parts = [canonical_part(part) for part in index]
    used = sum([axes_used(part) for part in parts])
    ndim = len(shape)
    if used > ndim:
        raise located(
            IndexError,
            f"too many indices: the array of shape {shape} has {ndim} axes, but {used} were indexed",
        )
    ellipses = sum([part is Ellipsis for part in parts])
    if ellipses > 1:
        raise located(IndexError, f"an index can only have a single ellipsis (`...`), got {ellipses}")
    if not ellipses and used < ndim:
        parts.append(Ellipsis)
    result: list[tuple[Any, int]] = []
    axis = 0
    for part in parts:
        if part is Ellipsis:
            if used == ndim:
                result.append((GAP, axis))
            for _ in range(ndim - used):
                result.append((_EVERYTHING, axis))
                axis += 1
            continue
        result.append((part, axis))
        axis += axes_used(part)
    return result


_EVERYTHING = slice(None)


def axes_used(part: Any) -> int:
    """How many axes of the array a part of an index is for."""
    if part is None or part is Ellipsis or part.__class__ is bool:
        return 0
    if is_mask(part):
        return part.ndim
    return 1


def is_mask(part: Any) -> bool:
    """Whether a part of an index is an array of booleans."""
    return isinstance(part, (Array, np.ndarray)) and part.dtype == np.bool_


def canonical_part(part: Any) -> Any:
    """A part of an index as None, an ellipsis, a slice, an int, a bool, or an array of integers or booleans."""
    cls = part.__class__
    if part is None or part is Ellipsis or cls is int or cls is slice or cls is bool:
        return part
    if isinstance(part, (np.bool_, np.integer)):
        return bool(part) if isinstance(part, np.bool_) else int(part)
    if isinstance(part, Tracer):
        known = part.concrete_or_none()
        if known is not None:
            part = known
    if isinstance(part, (list, tuple)):
        part = asarray(part) if len(part) else np.zeros((0,), np.int32)
    if isinstance(part, (Array, np.ndarray)):
        if cls is not np.ndarray:
            refuse_mask(part)
        dtype = part.dtype
        if dtype == np.bool_:
            return bool(part) if part.__class__ is np.ndarray and not part.ndim else part
        if not isinstance(dtype, np.dtype) or not dtypes.is_integer(dtype):
            raise located(
                TypeError,
                f"an index must be of an integer or boolean type, got an array of dtype {dtypes.dtype_name(dtype)} "
                f"and shape {part.shape}; convert it with `.astype(int)`",
            )
        if not part.ndim and (part.__class__ is np.ndarray or is_readable(part)):
            return int(part)
        return part
    if isinstance(part, slice):
        return part
    if isinstance(part, Slice):
        return part.as_slice()
    if isinstance(part, str):
        raise located(TypeError, f"arrays do not support string indexing, got {shown(part)}")
    if isinstance(part, (float, complex, np.inexact)):
        raise located(
            TypeError,
            f"an index must be of an integer or boolean type, got {shown(part)} of type {cls.__name__}",
        )
    if cls is SymbolicDimension:
        return part
    convert = getattr(part, "__jax_array__", None)
    if convert is not None:
        return canonical_part(convert())
    if hasattr(part, "__array__"):
        return canonical_part(np.asarray(part))
    try:
        return as_size(part)
    except TypeError:
        raise located(
            IndexError,
            "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are "
            f"valid indices, got {shown(part):.60} of type {cls.__name__}",
        ) from None


def refuse_list(index: list) -> NoReturn:
    what = (
        "x[jnp.array(index)]"
        if not any(isinstance(part, (list, slice)) for part in index)
        else "x[tuple(index)]"
    )
    raise located(
        TypeError,
        f"using a list as an index is not allowed, got {shown(index):.60}: it might mean an array of positions or "
        "one "
        f"index per axis. Write {what}.",
    )


# --- what is known


def is_recording() -> bool:
    """Whether operations end up in a program, so that values of arrays must not decide about it."""
    trace: Trace | None = current.trace
    while trace is not None:
        if isinstance(trace, StagingTrace):
            return True
        trace = trace.parent
    return False


def is_readable(x: Any) -> bool:
    """Whether the value of an array of positions may be looked at: it is concrete, in reach, and not recorded.

    An array that lies on an accelerator is out of reach: waiting for it would hold up the program.
    """
    if x.__class__ is np.ndarray:
        return True
    if x.__class__ is not DeviceArray or is_recording():
        return False
    return x._host is not None or all(device.platform == "cpu" for device in x.devices())


def value_of(x: Any) -> np.ndarray:
    """The value of an array that is readable."""
    return refuse_to_read(x if x.__class__ is np.ndarray else x.host_value())


def mask_value(mask: Any) -> np.ndarray | None:
    """The value of a mask; None if it is traced."""
    if isinstance(mask, Tracer):
        return None
    return value_of(mask)


# --- entries


def resolve(shape: tuple[int, ...], parts: Sequence[tuple[Any, int]], settings: Settings = DEFAULT) -> Parsed:
    """The entries and operands for expanded parts; masks are replaced by the positions where they hold."""
    entries: list[Entry] = []
    operands: list[Any] = []

    def add(places: Any, axis: int) -> None:
        entries.append(places_entry(places, axis, shape[axis], settings))
        operands.append(places)

    for part, axis in parts:
        cls = part.__class__
        if cls is slice:
            entry: Any = taken(part, shape[axis], axis)
            entries.append(entry)
            if entry.__class__ is Span:
                operands.append(window_start(part.start, entry, shape[axis]))
        elif cls is int or cls is SymbolicDimension:
            entry = position(part, axis, shape[axis], settings)
            if entry is None:  # out of bounds, and the user says what becomes of it
                add(np.asarray(part, np.int64 if abs(part) >= 2**31 else np.int32), axis)
            else:
                entries.append(entry)
        elif part is None:
            entries.append(NEW)
        elif part is GAP:
            entries.append(GAP)
        elif cls is bool:
            entries.append(Flag(part))
        elif is_mask(part):
            check_mask(shape, part, axis)
            value = mask_value(part)
            if value is None:
                refuse_traced_mask(part)
            if not part.ndim:
                entries.append(Flag(bool(value)))
            for offset, places in enumerate(np.nonzero(value) if part.ndim else ()):
                entries.append(Places(places.shape, False))
                operands.append(places.astype(np.int32) if shape[axis + offset] < 2**31 else places)
        else:
            add(part, axis)
    return Parsed(tuple(entries), operands)


def taken(part: slice, size: int, axis: int) -> Taken | Span:
    """The entry of a slice."""
    start, stop, step = part.start, part.stop, part.step
    if SymbolicDimension in (size.__class__, start.__class__, stop.__class__):
        return taken_of_symbolic(part, size, axis)
    try:
        start, stop, step = slice(slice_bound(start), slice_bound(stop), slice_bound(step)).indices(size)
    except TypeError:
        if any(isinstance(bound, Tracer) for bound in (start, stop, step)):
            length = static_length(part)
            if length is None or isinstance(start, Tracer) and start.aval.shape:
                refuse_traced_slice(part, axis)
            span = Span(length, as_size(step or 1))
            if span.extent > size:
                raise located(
                    IndexError,
                    f"a slice of length {span.extent} does not fit into axis {axis} with size {size}",
                ) from None
            return span
        raise located(
            TypeError,
            f"slices take integers or None, got {shown(start)}:{shown(stop)}:{shown(step)} for axis {axis}",
        ) from None
    except ValueError as error:  # a step of zero
        raise source.located(ValueError, *error.args) from None
    return Taken(start, len(range(start, stop, step)), step)


def taken_of_symbolic(part: slice, size: DimSize, axis: int) -> Taken | Span:
    """`taken` where the size of the axis or a bound is symbolic."""
    step = 1 if part.step is None else as_size(part.step)
    if any(isinstance(bound, Tracer) for bound in (part.start, part.stop)):
        length = static_length(part)
        if length is None or (isinstance(part.start, Tracer) and part.start.aval.shape):
            refuse_traced_slice(part, axis)
        return Span(length, step)
    if step == 0:
        raise located(ValueError, "slice step cannot be zero")
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)

    def bound(given: Any, default: DimSize) -> DimSize:
        if given is None:
            return default
        place = as_size(given)
        return min_dim(max_dim(place + size, lowest) if place < 0 else place, highest)

    try:
        start = bound(part.start, lowest if step > 0 else highest)
        stop = bound(part.stop, highest if step > 0 else lowest)
    except TypeError:
        raise located(
            TypeError,
            f"slices take integers or None, got {shown(part.start)}:{shown(part.stop)}:{shown(step)} for axis {axis}",
        ) from None
    length = (stop - start + step - 1) // step if step > 0 else (start - stop - step - 1) // -step
    return Taken(start, max_dim(length, 0), step)


def window_start(start: Any, span: Span, size: int) -> Any:
    """The first position of the window of a slice, which ends at `start` if the slice goes backward."""
    if span.step > 0 or span.size < 2:
        return start
    start = start + size * (start < 0) - (span.extent - 1)
    return start * (start > 0)


def slice_bound(bound: Any) -> Any:
    if isinstance(bound, Tracer):
        known = bound.concrete_or_none()
        if known is None:
            raise TypeError
        return as_size(known)
    return bound


def position(place: int, axis: int, size: int, settings: Settings) -> int | None:
    """A position as one from 0 to size − 1; None if it is out of bounds and the settings allow that."""
    if 0 <= place < size:
        return place
    if -size <= place < 0 and settings.wrap:
        return place + size
    if (settings.check and config.check_indices) or not size:
        refuse_position(place, axis, size)
    return None


def refuse_position(place: int, axis: int, size: int) -> NoReturn:
    raise located(
        IndexError,
        f"index {place} is out of bounds for axis {axis} with size {size}. To allow it, say what becomes of it: "
        "x.at[index].get(mode='fill') or mode='clip'; x.at[index].set(y, mode='drop')",
    )


def places_entry(places: Any, axis: int, size: int, settings: Settings) -> Places:
    """The entry of an array of positions along an axis; positions that are known are checked."""
    wraps = settings.wrap and not dtypes.is_unsigned(places.dtype)
    check = settings.check and config.check_indices
    if places.size and (wraps or check) and is_readable(places):
        value = value_of(places)
        lowest, highest = int(value.min()), int(value.max())
        if check:
            least = -size if settings.wrap else 0
            if lowest < least or highest >= size:
                outside = value[(value < least) | (value >= size)]
                refuse_position(int(outside.flat[0]), axis, size)
        wraps = wraps and lowest < 0
    return Places(places.shape, wraps)


def check_mask(shape: tuple[int, ...], mask: Any, axis: int) -> None:
    there = shape[axis : axis + mask.ndim]
    if mask.shape != there:
        raise located(
            IndexError,
            f"boolean index did not match the array: a mask of shape {mask.shape} at axis {axis} of an array of "
            f"shape {shape} needs the shape {there}",
        )


# --- what cannot be known while a program is recorded


def refuse_traced_mask(mask: Tracer) -> NoReturn:
    x, chosen = mask_names()
    mask.refuse(
        NonConcreteBooleanIndexError,
        f"{x}[{chosen}], whose shape is the number of True elements,",
        "Array boolean indices must be concrete. To choose between values of one shape: "
        f"jnp.where({chosen}, {x}, other). "
        f"To change the elements: {x}.at[{chosen}].set(y), .add(y), … with y a scalar. To get a known number of them: "
        f"{x}[jnp.nonzero({chosen}, size=n, fill_value=0)]. To sum or average them: jnp.sum({x}, where={chosen}).",
    )


def refuse_traced_slice(part: slice, axis: int) -> NoReturn:
    bounds = [bound for bound in (part.start, part.stop, part.step) if isinstance(bound, Tracer)]
    x, lower, upper = slice_names()
    place = f"jnp.arange({x}.shape[{axis}])"
    tests = [f"{place} {sign} {bound}" for sign, bound in ((">=", lower), ("<", upper)) if bound is not None]
    advice = ["Slice entries must be static integers."]
    if lower is not None:
        advice.append(
            f"A window of fixed length at a computed place: {x}[{lower}:{lower} + length], or "
            f"lax.dynamic_slice_in_dim({x}, {lower}, length, axis={axis})."
        )
    if tests:
        inside = tests[0] if len(tests) == 1 else f"({tests[0]}) & ({tests[1]})"
        advice.append(f"A part of varying length as a mask: jnp.where({inside}, {x}, 0).")
    advice.append("Or make the bounds static: jit(f, static_argnames=...).")
    what = f"a slice of axis {axis} whose length depends on its bounds"
    bounds[0].refuse(IndexError, what, " ".join(advice))
