"""How results lie over a mesh with axes of type `Explicit`: what the `lay_out` rules of the families are made of.

A layout has, for each axis of an array, the axis of the mesh that it is cut along (an entry of a `PartitionSpec`). A
layout never changes a value. So a rule says what costs no communication, and raises where there is no such choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from purax import errors
from purax.core.avals import ShapedArray
from purax.core.specs import names_of

Entries = tuple[Any, ...]


def merged(name: str, avals: Sequence[ShapedArray], shape: tuple[int, ...]) -> Entries:
    """The layout of operands that meet element by element: an axis that one leaves whole, or repeats, lies as in the
    others."""
    operands = [aval for aval in avals if aval.ndim == len(shape)]
    return tuple(
        one_of(name, operands, [aval.spec[axis] for aval in operands if aval.shape[axis] == n])
        for axis, n in enumerate(shape)
    )


def one_of(name: str, avals: Sequence[ShapedArray], entries: Sequence[Any]) -> Any:
    """The entry that operands agree on, of those that they have for one axis."""
    found = {entry for entry in entries if entry is not None}
    if len(found) > 1:
        raise errors.ShardingTypeError(
            f"{name} got operands that lie differently over the mesh: {', '.join(a.str_short() for a in avals)}"
        )
    return found.pop() if found else None


def check_whole(name: str, x: ShapedArray, axes: Sequence[int], why: str) -> None:
    """Raises if `x` is cut along one of `axes`."""
    for axis in axes:
        if x.spec[axis] is not None:
            raise errors.ShardingTypeError(f"{name} {why} axis {axis} of {x.str_short()}, which is cut there")


def drop(entries: Entries, axes: Sequence[int]) -> Entries:
    """The entries of all but `axes`."""
    return tuple(entry for axis, entry in enumerate(entries) if axis not in axes)


def in_front(
    name: str, count: int, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> list[Entries]:
    """The layouts of results for each of a batch, whose `count` axes are the first ones; the others must be whole."""
    for aval in avals:
        check_whole(name, aval, range(min(count, aval.ndim), aval.ndim), "needs the whole of")
    batch = tuple(
        one_of(name, avals, [aval.spec[axis] for aval in avals if aval.ndim > axis]) for axis in range(count)
    )
    return [(*batch, *(None,) * (out.ndim - count)) for out in outs]


def reshaped(x: ShapedArray, shape: tuple[int, ...], order: Sequence[int] | None, mesh: Any) -> Entries:
    """The layout of the elements of `x`, axes in another `order`, in a frame of another shape.

    The axes of both shapes are matched in groups of equal size; axes of size 1 do not count. A group that is cut stays
    so where only its first axis is cut, or where it becomes one axis and no whole axis comes before one that is cut.
    """
    axes = [axis for axis in (range(x.ndim) if order is None else order) if x.shape[axis] != 1]
    entries: list[Any] = [None] * len(shape)
    places = [place for place, n in enumerate(shape) if n != 1]
    while axes or places:
        group, target = axes[:1], places[:1]
        size, total = (math.prod(x.shape[a] for a in group), math.prod(shape[p] for p in target))
        while size != total:
            more = axes[: len(group) + 1] if size < total else group
            if more is group:
                target = places[: len(target) + 1]
                total = math.prod(shape[p] for p in target)
            else:
                group, size = more, math.prod(x.shape[a] for a in more)
            if size != total and len(group) == len(axes) and len(target) == len(places):  # an empty array
                break
        _reshape_group(x, group, shape, target, entries, mesh)
        axes, places = axes[len(group) :], places[len(target) :]
    return tuple(entries)


def _reshape_group(
    x: ShapedArray,
    group: Sequence[int],
    shape: tuple[int, ...],
    target: Sequence[int],
    entries: list,
    mesh: Any,
) -> None:
    """Puts the entries of the axes `group` of `x` where their elements go: the axes `target` of the new shape."""
    names = [names_of(x.spec[axis]) for axis in group]
    if not any(names):
        return
    if len(group) == len(target) == 1:
        entries[target[0]] = x.spec[group[0]]
        return
    last = max(i for i, axis_names in enumerate(names) if axis_names)
    if all(names[:last]) and len(target) == 1:
        entries[target[0]] = tuple(name for axis_names in names for name in axis_names)
        return
    parts = math.prod(mesh.shape[name] for name in names[0])
    if last == 0 and target and shape[target[0]] % parts == 0:
        entries[target[0]] = x.spec[group[0]]
        return
    raise errors.ShardingTypeError(
        f"reshape of {x.str_short()} to {shape}: no axis of the result has the elements of one device in one piece"
    )
