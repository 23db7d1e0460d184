"""Loops and branches whose functions use cells from outside (`purax.references.cells`): the contents of the cells are
threaded through the function as one more argument and one more result.

Recording a function that reaches for cells raises `CapturedCells`; the loop is then written with the cells in its
carry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax.interpreters.arguments import wraps
from purax.references import cells
from purax.tree.registry import tree_flatten, tree_unflatten


def contents_of(captured: Sequence[Any]) -> list[list[Any]]:
    """What cells hold now, a tree of arrays."""
    return [cells.read(cell) for cell in captured]


def put_contents(captured: Sequence[Any], contents: Sequence[Sequence[Any]]) -> None:
    """Puts what a loop left in its cells back into them."""
    for cell, arrays in zip(captured, contents, strict=True):
        cells.put(cell, cells.the_kind_of(cell).structure(cell), arrays)


def threaded(function: Callable, captured: Sequence[Any]) -> Callable:
    """(contents, *args) -> (new contents, function(*args))"""

    @wraps(function)
    def run(contents, *args):
        with cells.lending(captured, contents) as loan:
            result = function(*args)
            return loan.contents(), result

    return run


def call_threaded(call: Callable[..., Any], captured: Sequence[Any]) -> Any:
    """`call(contents)`, which returns new contents and a result; puts the former back and returns the latter."""
    contents, result = call(contents_of(captured))
    put_contents(captured, contents)
    return result


def without_cells(function: Callable, arguments: Any) -> tuple[Callable, Any]:
    """A function of a tuple of arguments, and these, with cells among their leaves captured instead of passed."""
    leaves, tree = tree_flatten(arguments)
    kept = [cells.kind_of(x) is None for x in leaves]

    @wraps(function)
    def rest(*arrays):
        given = iter(arrays)
        return function(
            *tree_unflatten(tree, [next(given) if k else x for k, x in zip(kept, leaves, strict=True)])
        )

    return rest, tuple(x for k, x in zip(kept, leaves, strict=True) if k)
