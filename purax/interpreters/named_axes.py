"""Named axes in scope: those of `vmap`, and those that a function is only looked at with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

from purax.core.trace import Trace, current, using
from purax.scopes import scoped

P = ParamSpec("P")
R = TypeVar("R")


def named_axis_sizes(trace: Trace | None = None) -> dict[Any, int]:
    """The named axes that are in scope, innermost first, and their sizes."""
    trace = current.trace if trace is None else trace
    sizes: dict[Any, int] = {}
    while trace is not None:
        name = getattr(trace, "axis_name", None)
        if name is not None:
            sizes.setdefault(name, trace.size)  # type: ignore[attr-defined]
        trace = trace.parent
    return sizes


class AxisTrace(Trace):
    """Puts a named axis in scope without doing anything, for looking at functions that communicate over it.

    Types tell whether values vary along an axis that is `checked`.
    """

    __slots__ = ("axis_name", "checked", "size")
    name = "axis"

    def __init__(self, parent: Trace, size: int, axis_name: Any, checked: bool = False):
        super().__init__(parent)
        self.size = size
        self.axis_name = axis_name
        self.checked = checked

    def process(self, primitive, operands, params):
        return self.parent.process(primitive, operands, params)


@scoped
def named_axes(axes: Sequence[tuple[Any, int]], checked: bool = False) -> Iterator[None]:
    """Puts axes with given names and sizes in scope."""
    trace = current.trace
    for axis_name, size in axes:
        trace = AxisTrace(trace, size, axis_name, checked)
    with using(trace):
        yield


def checked_axes() -> set[Any]:
    """The named axes in scope along which types tell whether values vary."""
    trace: Trace | None = current.trace
    names, seen = set(), set()
    while trace is not None:
        name = getattr(trace, "axis_name", None)
        if name is not None and name not in seen:
            seen.add(name)
            if getattr(trace, "checked", False):
                names.add(name)
        trace = trace.parent
    return names
