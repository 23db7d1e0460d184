"""Cells: objects that hold arrays and can be given others, such as references (`purax.ref`).

Programs are pure, so a cell is never part of one. A transformation takes the contents of the cells that a function
is given, or reaches for, as arguments, lets the function work on cells of its own, and puts what they hold in the end
back. A cell is at home in one trace. Invariant: what it holds belongs to that trace, or to one outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from purax import errors
from purax.core.array import Array
from purax.core.avals import Zero
from purax.core.source import located
from purax.core.trace import Trace, Tracer, current
from purax.errors import shown
from purax.scopes import Scope


class Kind:
    """What a class of cells can do; an instance serves all cells of the class.

    Attributes:
        is_differentiated: whether one can be an argument to differentiate with respect to; its gradient is another.
    """

    is_differentiated = False

    def structure(self, cell: Any) -> Any:
        """What `make` and `update` need besides arrays; hashable."""
        raise NotImplementedError

    def contents(self, cell: Any) -> list[Any]:
        """The arrays that a cell holds."""
        raise NotImplementedError

    def make(self, structure: Any, arrays: Sequence[Any]) -> Any:
        """A new cell, at home in the current trace."""
        raise NotImplementedError

    def update(self, cell: Any, structure: Any, arrays: Sequence[Any]) -> None:
        """Makes a cell hold other arrays, whoever they belong to."""
        raise NotImplementedError

    def type_of(self, cell: Any) -> Any:
        """The type of a cell."""
        raise NotImplementedError

    def abstract(self, structure: Any, shapes: Sequence[Any]) -> Any:
        """What stands for a cell where only types matter; `shapes` stand for its arrays."""
        raise NotImplementedError

    def home(self, cell: Any) -> Trace:
        """The trace that a cell was made in, or is lent to."""
        raise NotImplementedError

    def settle(self, cell: Any, home: Trace) -> None:
        """Sets the home of a cell."""
        raise NotImplementedError

    def refusal(self, cell: Any, why: str) -> BaseException:
        """The error for writing a value that is vectorized or differentiated further inside than the cell."""
        return located(
            ValueError,
            f"a {why} value is written to a {type(cell).__name__} that was made outside of that transformation "
            "and is not one of its arguments. Pass it to the transformed function as an argument"
            + (", or write `lax.stop_gradient(value)`." if why == "differentiated" else "."),
        )


_kinds: dict[type, Kind] = {}


def register(python_type: type, kind: Kind) -> None:
    """Makes objects of a class, and of its subclasses, cells."""
    _kinds[python_type] = kind


def kind_of(x: Any) -> Kind | None:
    """The kind of a cell; None for everything else."""
    for python_type in type(x).__mro__:
        if python_type in _kinds:
            return _kinds[python_type]
    return None


def the_kind_of(cell: Any) -> Kind:
    """The kind of something that is a cell."""
    kind = kind_of(cell)
    assert kind is not None, cell
    return kind


class CapturedCells(NotImplementedError):
    """Raised when a function that is recorded reached for cells outside of it, and its caller has to pass them."""

    def __init__(self, cells: Sequence[Any], function: str):
        self.cells = list(cells)
        super().__init__(
            f"`{function}` reads or writes references that were made outside of it ({', '.join(map(repr, cells))}), "
            "which is not supported for functions with custom rules and those that run on many devices. Pass the "
            "value as an argument and return the new one."
        )


def reach(cell: Any, kind: Kind) -> None:
    """Makes a cell usable in the current trace: programs that are recorded between its home and here take it over."""
    home = kind.home(cell)
    trace: Trace | None = current.trace
    if trace is home:
        return
    recording: list[Any] = []
    while trace is not None and trace is not home:
        if hasattr(trace, "captured"):
            recording.append(trace)
        trace = trace.parent
    if trace is None:
        raise located(
            errors.UnexpectedTracerError,
            f"a cell of type {type(cell).__name__} was used outside of the transformed function that made it. "
            "Return its value instead.",
        )
    for program in reversed(recording):
        program.capture(cell, kind)


def for_home(cell: Any, kind: Kind, values: Iterable[Any]) -> list[Any]:
    """Values that a cell shall hold, as its home knows them; an error if they belong to a trace further inside."""
    return [_for_home(cell, kind, x) for x in values]


def _for_home(cell: Any, kind: Kind, x: Any) -> Any:
    trace: Trace | None = kind.home(cell)
    if not isinstance(x, Tracer):
        return x
    while trace is not None and trace is not x.owner:
        trace = trace.parent
    if trace is not None:
        return x
    if type(getattr(x, "tangent", None)) is Zero:
        return _for_home(cell, kind, x.primal)  # type: ignore[attr-defined]
    raise kind.refusal(cell, "vmapped" if x.owner.name == "vmap" else "differentiated")


def put(cell: Any, structure: Any, arrays: Sequence[Any]) -> None:
    """What a transformation does with a cell's contents when it has ended."""
    kind = the_kind_of(cell)
    reach(cell, kind)
    kind.update(cell, structure, for_home(cell, kind, arrays))


def read(cell: Any) -> list[Any]:
    """The contents of a cell, for the current trace."""
    kind = the_kind_of(cell)
    reach(cell, kind)
    return kind.contents(cell)


class lending(Scope):
    """`with lending(cells, contents) as loan:` lets cells hold arrays of the current trace for a while.

    `loan.contents()` is what they hold in the end; after the block they are as before.
    """

    def __init__(self, cells: Sequence[Any], contents: Sequence[Sequence[Any]]):
        self._cells = [(cell, the_kind_of(cell)) for cell in cells]
        self._contents = contents

    def enter(self, entered: list[Any]) -> lending:
        self._before: list[Any] = []
        entered.append(self)
        for (cell, kind), arrays in zip(self._cells, self._contents, strict=True):
            before = (kind.home(cell), kind.structure(cell), kind.contents(cell))
            self._before.append(before)
            kind.update(cell, before[1], arrays)
            kind.settle(cell, current.trace)
        return self

    def contents(self) -> list[list[Any]]:
        return [kind.contents(cell) for cell, kind in self._cells]

    def leave(self, entered: list[Any]) -> None:
        for (cell, kind), (home, structure, arrays) in zip(self._cells, self._before, strict=False):
            kind.update(cell, structure, arrays)
            kind.settle(cell, home)


class Opened:
    """Leaves of arguments or results, with the contents of cells in their place.

    Attributes:
        arrays: all leaves; those that are cells replaced by what they hold.
        cells: the cells among the leaves.
        layout: for each leaf, None or (kind, structure, number of arrays); hashable.
    """

    def __init__(self, leaves: Sequence[Any], function: str):
        self.arrays: list[Any] = []
        self.cells: list[Any] = []
        layout: list[Any] = []
        for leaf in leaves:
            kind = kind_of(leaf)
            if kind is None:
                self.arrays.append(leaf)
                layout.append(None)
                continue
            if any(leaf is cell for cell in self.cells):
                raise located(
                    ValueError,
                    f"only one reference to a mutable array may be passed as an argument to a function, but "
                    f"{shown(leaf)} appears twice among the arguments of `{function}`",
                )
            reach(leaf, kind)
            held = kind.contents(leaf)
            self.cells.append(leaf)
            self.arrays.extend(held)
            layout.append((kind, kind.structure(leaf), len(held)))
        self.layout = tuple(layout)

    def spread(self, per_leaf: Sequence[Any]) -> list[Any]:
        """What is said of each leaf, said of each array."""
        counts = [1 if entry is None else entry[2] for entry in self.layout]
        return [x for x, count in zip(per_leaf, counts, strict=True) for _ in range(count)]


def close(layout: Sequence[Any], arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The leaves that an `Opened` was made of, with other arrays and new cells; and the new cells."""
    rest = iter(arrays)
    leaves, made = [], []
    for entry in layout:
        if entry is None:
            leaves.append(next(rest))
        else:
            kind, structure, count = entry
            made.append(kind.make(structure, [next(rest) for _ in range(count)]))
            leaves.append(made[-1])
    return leaves, made


def close_abstract(layout: Sequence[Any], shapes: Sequence[Any]) -> list[Any]:
    """`close` where only types matter: the leaves that stand for arrays and cells."""
    rest = iter(shapes)
    return [
        next(rest) if entry is None else entry[0].abstract(entry[1], [next(rest) for _ in range(entry[2])])
        for entry in layout
    ]


def has_cells(leaves: Iterable[Any]) -> bool:
    """Whether there is a cell among the leaves."""
    return bool(_kinds) and any(not isinstance(x, _NO_CELLS) and kind_of(x) is not None for x in leaves)


_NO_CELLS = (Array, bool, int, float, complex)
