"""What a compiled function does with cells (`purax.references.cells`): those among its arguments, those that it
reaches for outside of itself, and those that it makes and returns.

The last arguments of its program are the contents of the cells that it reached for. After its own results the program
returns the new contents of its arguments' cells, and then of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.core.avals import aval_of
from purax.core.jaxpr import ClosedJaxpr
from purax.core.source import located
from purax.core.trace import current, eager_trace
from purax.errors import shown
from purax.interpreters.staging import CapturedCell
from purax.references import cells


class CellUse:
    """The cells that a program reads and writes.

    Attributes:
        captured: the cells from outside.
        structures: for each cell among the arguments, its structure in the end and how many arrays it held.
        layout: which of the function's own results are cells that it made.
        count: how many arrays these results are.
    """

    def __init__(self, captured: list[CapturedCell], own: Sequence[Any], layout: Any, count: int):
        self.captured, self.layout, self.count = captured, layout, count
        new = [cells.read(cell) for cell in own]
        self.structures = [
            (cells.the_kind_of(cell).structure(cell), len(arrays))
            for cell, arrays in zip(own, new, strict=True)
        ]
        self.new = [x for arrays in new for x in arrays]

    def is_needed(self) -> bool:
        """Whether there is a cell at all."""
        return bool(self.captured or self.structures or any(self.layout))

    def operands(self, arguments: Sequence[Any] = (), name: str = "") -> list[Any]:
        """What the captured cells hold now; an error if one of them is an argument, too."""
        for each in self.captured:
            if any(each.cell is cell for cell in arguments):
                raise located(
                    ValueError,
                    f"{shown(each.cell)} was both closed over by `{name}` and passed as an argument to it; the "
                    "function "
                    "would have two copies of it. Use it in one of these ways.",
                )
        return [x for each in self.captured for x in cells.read(each.cell)]

    def fits(self) -> bool:
        """Whether the captured cells hold what they held when the function was traced."""
        for each in self.captured:
            arrays = cells.read(each.cell)
            if each.kind.structure(each.cell) != each.before[1] or len(arrays) != len(each.arguments):
                return False
            if any(aval_of(x) is not a.aval for x, a in zip(arrays, each.arguments, strict=True)):
                return False
        return True

    def is_at_home(self) -> bool:
        """Whether all captured cells were made outside of any transformation."""
        return all(each.kind.home(each.cell) is eager_trace() for each in self.captured)

    def put(self, results: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """Puts new contents into cells; returns the leaves of the function's own results."""
        rest = iter(results[self.count :])
        for cell, (structure, count) in zip(arguments, self.structures, strict=True):
            cells.put(cell, structure, [next(rest) for _ in range(count)])
        for each in self.captured:
            cells.put(each.cell, each.structure, [next(rest) for _ in range(each.count)])
        return cells.close(self.layout, results[: self.count])[0]

    def own_results(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The program without the results that are new contents of cells."""
        return ClosedJaxpr(closed.jaxpr.replace(outvars=closed.jaxpr.outvars[: self.count]), closed.consts)


def open_results(leaves: Sequence[Any], own: Sequence[Any], name: str) -> cells.Opened | None:
    """The leaves of a function's results with the cells that it made opened; None if there are no cells."""
    if not cells.has_cells(leaves):
        return None
    for x in leaves:
        kind = cells.kind_of(x)
        if kind is not None and (kind.home(x) is not current.trace or any(x is cell for cell in own)):
            raise located(
                ValueError,
                f"`{name}` returns {shown(x)}, a mutable array reference that it was given, or that was made "
                "outside "
                "of it; whoever calls it has that already. Return its value, `ref[...]`, or nothing.",
            )
    return cells.Opened(leaves, name)
