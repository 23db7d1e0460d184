"""What stands between the brackets of `ref[...]`: integers, slices (also `ds`), and arrays of positions.

Reads give the elements; writes give the array with others in their place. Positions that are known are checked;
others are clamped into the array, as XLA does, and writes outside of it are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import lax
from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.pallas.slices import Slice


class Index:
    """An index of an array of a known shape.

    Attributes:
        entries: for each dimension an integer, a `Slice`, or an array of integers.
        shape: of what is read.
    """

    def __init__(self, index: Any, shape: Sequence[int], name: str):
        self.of = tuple(shape)
        self.beyond: BaseException | None = None  # the error where a known slice reaches beyond the array
        given = list(index) if isinstance(index, tuple) else [index]
        ellipses = [i for i, each in enumerate(given) if each is Ellipsis]
        if len(ellipses) > 1:
            raise located(IndexError, f"{name}: an index has one `...` at most, got {shown(index)}")
        if not ellipses:
            given.append(Ellipsis)
            ellipses = [len(given) - 1]
        missing = len(shape) - (len(given) - 1)
        if missing < 0:
            raise located(
                IndexError,
                f"{name} of shape {tuple(shape)} takes {len(shape)} indices at most, got {len(given) - 1}",
            )
        given[ellipses[0] : ellipses[0] + 1] = [slice(None)] * missing
        self.entries = [
            self._entry(each, size, name, axis)
            for axis, (each, size) in enumerate(zip(given, shape, strict=True))
        ]
        self.arrays = [np.shape(e) for e in self.entries if not isinstance(e, Slice) and np.ndim(e) > 0]
        slices = [e.size for e in self.entries if isinstance(e, Slice)]
        if self.arrays:
            front = np.broadcast_shapes(*self.arrays)
            first = next(i for i, e in enumerate(self.entries) if not isinstance(e, Slice) and np.ndim(e) > 0)
            indexed = [i for i, e in enumerate(self.entries) if not isinstance(e, Slice)]
            if indexed == list(range(indexed[0], indexed[-1] + 1)) and first is not None:
                before = sum(isinstance(e, Slice) for e in self.entries[: indexed[0]])
            else:
                before = 0
            self.shape = (*slices[:before], *front, *slices[before:])
            self.front, self.before = front, before
        else:
            self.shape = tuple(slices)

    @property
    def is_whole(self) -> bool:
        return all(
            isinstance(e, Slice) and _is_known(e.start) and (e.start, e.size, e.stride) == (0, n, 1)
            for e, n in zip(self.entries, self.of, strict=True)
        )

    @property
    def is_window(self) -> bool:
        """Whether the elements are a box, without gaps."""
        return not self.arrays and all(e.stride == 1 for e in self.entries if isinstance(e, Slice))

    @property
    def is_inside(self) -> bool:
        """Whether it is known that all elements are in the array."""
        return (
            not self.arrays
            and self.beyond is None
            and all(_is_known(e.start) if isinstance(e, Slice) else _is_known(e) for e in self.entries)
        )

    def window(self) -> tuple[list[Any], list[int]]:
        starts = [e.start if isinstance(e, Slice) else e for e in self.entries]
        return starts, [e.size if isinstance(e, Slice) else 1 for e in self.entries]

    def positions(self) -> tuple[Any, ...]:
        """For each dimension the positions, arrays that broadcast to the shape of what is read."""
        rank = len(self.shape)
        if self.arrays:
            slice_axes = [*range(self.before), *range(self.before + len(self.front), rank)]
        else:
            slice_axes = list(range(rank))
        axes = iter(slice_axes)
        found = []
        for e in self.entries:
            if isinstance(e, Slice):
                values = _sequence(e)
                axis = next(axes)
                found.append(jnp.reshape(values, [e.size if i == axis else 1 for i in range(rank)]))
            elif np.ndim(e) > 0:
                behind = rank - self.before - len(self.front)
                found.append(jnp.reshape(jnp.asarray(e), (*np.shape(e), *[1] * behind)))
            else:
                found.append(jnp.asarray(e))
        return tuple(found)

    def _entry(self, given: Any, size: int, name: str, axis: int) -> Any:
        entry = _entry(given, size, name, axis)
        if isinstance(entry, Slice) and _is_known(entry.start):
            last = entry.start + (entry.size - 1) * entry.stride
            if entry.start < 0 or (entry.size and last >= size):
                stride = "" if entry.stride == 1 else f", {entry.stride}"
                self.beyond = located(
                    IndexError,
                    f"{name}: the slice ds({entry.start}, {entry.size}{stride}) is out of bounds for dimension "
                    f"{axis} of size {size}",
                )
        return entry

    def require_inside(self) -> None:
        """Raises if a known slice reaches beyond the array, which only masked reads and writes may."""
        if self.beyond is not None:
            raise self.beyond


def _sequence(e: Slice) -> Any:
    """The positions of a slice."""
    steps = lax.iota(np.dtype(np.int32), e.size)
    if e.stride != 1:
        steps = steps * np.int32(e.stride)
    start = e.start
    return steps + (np.int32(start) if _is_known(start) else lax.convert_element_type(start, np.int32))


def _is_known(x: Any) -> bool:
    return isinstance(x, (int, np.integer))


def _entry(given: Any, size: int, name: str, axis: int) -> Any:
    """An index of one dimension; integers that are known lie inside of it."""
    if isinstance(given, (bool, np.bool_)):
        raise located(IndexError, f"{name}: index {axis} is a bool; use an integer")
    if isinstance(given, (int, np.integer)):
        if not -size <= given < size:
            raise located(
                IndexError, f"{name}: index {int(given)} is out of bounds for dimension {axis} of size {size}"
            )
        return int(given) % size
    if isinstance(given, slice):
        if any(isinstance(x, Array) for x in (given.start, given.stop, given.step)):
            raise located(
                IndexError,
                f"{name}: the slice at dimension {axis} has bounds that are traced; write `pl.ds(start, size)`",
            )
        start, stop, step = given.indices(size)
        if step < 0:
            raise located(
                IndexError, f"{name}: the slice at dimension {axis} goes backwards; reverse what was read"
            )
        return Slice(start, max(0, -(-(stop - start) // step)), step)
    if isinstance(given, Slice):
        if _is_known(given.start):
            return Slice(int(given.start), int(given.size), int(given.stride))
        return Slice(_integer(given.start, name, axis), int(given.size), int(given.stride))
    if given is None:
        raise located(
            IndexError, f"{name}: None is not an index of a reference; read first: `ref[...][:, None]`"
        )
    return _integer(given, name, axis)


def _integer(given: Any, name: str, axis: int) -> Any:
    if type(getattr(given, "aval", None)).__name__ == "AbstractRef":
        raise located(IndexError, f"{name}: index {axis} is a reference; read it first, `index_ref[...]`")
    array = given if isinstance(given, Array) else jnp.asarray(given)
    if not dtypes.issubdtype(array.dtype, np.integer):
        what = (
            "a boolean mask; use `mask=` of load and store, or `jnp.where`"
            if array.dtype == bool
            else array.dtype
        )
        raise located(IndexError, f"{name}: the index of dimension {axis} must be integers, got {what}")
    return array


def read(array: Any, index: Index) -> Any:
    """The elements at an index."""
    index.require_inside()
    if index.is_whole:
        return array
    if index.is_window:
        starts, sizes = index.window()
        if index.is_inside:
            window = lax.slice(array, starts, [a + n for a, n in zip(starts, sizes, strict=True)])
        else:
            window = lax.dynamic_slice(array, _scalars(starts), sizes)
        return window if window.shape == index.shape else lax.reshape(window, index.shape)
    if index.is_inside:
        return array[
            tuple(
                slice(e.start, e.start + (e.size - 1) * e.stride + 1 if e.size else e.start, e.stride)
                if isinstance(e, Slice)
                else e
                for e in index.entries
            )
        ]
    return gather(array, index)


def gather(array: Any, index: Index) -> Any:
    """The elements at an index, one by one."""
    if not index.of:
        return array
    return jnp.broadcast_to(array.at[index.positions()].get(mode="clip"), index.shape)


def write(array: Any, index: Index, value: Any) -> Any:
    """An array with other elements at an index."""
    index.require_inside()
    if index.is_whole:
        return value
    if index.is_window:
        starts, sizes = index.window()
        value = value if value.shape == tuple(sizes) else lax.reshape(value, sizes)
        return lax.dynamic_update_slice(array, value, _scalars(starts))
    return array.at[index.positions()].set(value, mode="drop")


def write_where(array: Any, index: Index, value: Any, mask: Any) -> Any:
    """An array with other elements where a mask, of the shape of the index, is true."""
    mask = jnp.broadcast_to(mask, index.shape)
    if index.is_whole:
        return jnp.where(mask, value, array)
    if index.is_inside:
        return write(array, index, jnp.where(mask, value, read(array, index)))
    positions = list(index.positions())
    positions[0] = jnp.where(mask, positions[0], np.int32(index.of[0]))
    positions[0] = jnp.where(positions[0] < 0, np.int32(index.of[0]), positions[0])
    return array.at[tuple(positions)].set(value, mode="drop")


def add(array: Any, index: Index, value: Any) -> Any:
    """An array with a value added at an index, also where it names an element several times."""
    if index.arrays:
        return array.at[index.positions()].add(value, mode="drop")
    return write(array, index, read(array, index) + value)


def _scalars(starts: Sequence[Any]) -> list[Any]:
    return [np.int32(x) if _is_known(x) else lax.convert_element_type(x, np.int32) for x in starts]
