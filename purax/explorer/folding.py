"""How a program is folded, so that one screen shows it: by pass, layer, function, turn of an unrolled loop, and place.

Groups are stretches of equations that follow each other. A stretch of an order in which equations can run depends only
on what stands before it, so that the picture of the groups has no cycles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

FEW = 24  # operations that need no folding
MOST = 40  # children of a group


class Item(NamedTuple):
    """What folding asks of an equation.

    Attributes:
        scope: the names of the scopes around it, outermost first.
        file: of the user's line, or None.
        line: its number.
        function: the user's function.
        backward: whether it belongs to a derivative of that line.
        key: equal for equations that do the same on the same types.
    """

    scope: tuple[str, ...] = ()
    file: str | None = None
    line: int = 0
    function: str = ""
    backward: bool = False
    key: Any = None


class Group(NamedTuple):
    """A stretch of a program.

    Attributes:
        kind: "pass", "layer", "function", "turn" or "part".
        label: its name.
        children: the numbers of equations, and groups.
    """

    kind: str
    label: str
    children: list[int | Group]


def fold(items: Sequence[Item]) -> list[int | Group]:
    """The groups of a program, outermost first.

    Args:
        items: of each equation, where it comes from.

    >>> fold([Item(("dense",)), Item(("dense",)), Item()])
    [Group(kind='layer', label='dense', children=[0, 1]), 2]
    """
    return _by_pass(items, list(range(len(items))))


def _runs(numbers: Sequence[int], key: Callable[[int], Any]) -> Iterator[tuple[Any, list[int]]]:
    """Stretches of equal keys."""
    run: list[int] = []
    last: Any = None
    for number in numbers:
        found = key(number)
        if run and found != last:
            yield last, run
            run = []
        run.append(number)
        last = found
    if run:
        yield last, run


def _by_pass(items: Sequence[Item], numbers: list[int]) -> list[int | Group]:
    runs = list(_runs(numbers, lambda n: items[n].backward))
    if len(numbers) <= FEW or not 2 <= len(runs) <= 6:
        return _by_scope(items, numbers, 0)
    return [
        Group("pass", "backward pass" if backward else "forward pass", _by_scope(items, run, 0))
        for backward, run in runs
    ]


def _by_scope(items: Sequence[Item], numbers: list[int], depth: int) -> list[int | Group]:
    """Layers: what stands in a `named_scope`. What stands in none is folded by other marks, if it is much."""
    children: list[int | Group] = []
    for name, run in _runs(numbers, lambda n: items[n].scope[depth : depth + 1]):
        if name:
            turns = _repetitions(items, run)
            for count, turn in enumerate(turns, 1):
                label = name[0] if len(turns) == 1 else f"{name[0]} ({count} of {len(turns)})"
                children.append(Group("layer", label, _by_scope(items, turn, depth + 1)))
        else:
            children += _by_function(items, run)
    return _limited(items, children)


def _by_function(items: Sequence[Item], numbers: list[int]) -> list[int | Group]:
    if len(numbers) <= FEW:
        return list(numbers)
    runs = list(_runs(numbers, lambda n: (items[n].file, items[n].function)))
    if len(runs) == 1 or len(runs) > 0.7 * len(numbers):
        return _limited(items, _by_turn(items, numbers))
    children: list[int | Group] = []
    for (_, function), run in runs:
        if len(run) == 1:
            children += run
        else:
            children.append(Group("function", function or "purax", _by_turn(items, run)))
    return _limited(items, children)


def _by_turn(items: Sequence[Item], numbers: list[int]) -> list[int | Group]:
    """A new turn of an unrolled loop, or a new call of a function, begins where the lines go back."""
    if len(numbers) <= FEW:
        return list(numbers)
    turns = _repetitions(items, numbers)
    if len(turns) == 1:
        turns = _until_lines_go_back(items, numbers)
    if len(turns) == 1 or len(turns) > 0.5 * len(numbers):
        return _limited(items, list(numbers))
    children: list[int | Group] = []
    for count, turn in enumerate(turns, 1):
        label = f"{_lines(items, turn)}, turn {count} of {len(turns)}"
        children.append(Group("turn", label, _limited(items, list(turn))))
    return _limited(items, children)


def _repetitions(items: Sequence[Item], numbers: list[int]) -> list[list[int]]:
    """A stretch that does the same several times, cut into its repetitions; else the whole. The last may differ."""
    keys = [items[n].key for n in numbers]
    for period in range(2, len(keys) // 2 + 1):
        if keys[period] != keys[0]:
            continue
        same = next((i for i in range(period, len(keys)) if keys[i] != keys[i - period]), len(keys))
        if same >= 2 * period and same > len(keys) - period:
            return [numbers[start : start + period] for start in range(0, len(numbers), period)]
    return [numbers]


def _until_lines_go_back(items: Sequence[Item], numbers: list[int]) -> list[list[int]]:
    turns: list[list[int]] = []
    before: Item | None = None
    for number in numbers:
        item = items[number]
        back = before is not None and (item.line > before.line if item.backward else item.line < before.line)
        if not turns or back:
            turns.append([])
        turns[-1].append(number)
        before = item
    return turns


def _limited(items: Sequence[Item], children: list[int | Group]) -> list[int | Group]:
    """At most `MOST` children: more are put into parts."""
    while len(children) > MOST:
        size = min(math.ceil(math.sqrt(len(children))), MOST)
        parts: list[int | Group] = []
        for start in range(0, len(children), size):
            part = children[start : start + size]
            numbers = [number for child in part for number in numbers_in(child)]
            count = f"{numbers[0] + 1}–{numbers[-1] + 1}"
            parts.append(Group("part", f"{_lines(items, numbers)}, operations {count}", part))
        children = parts
    return children


def numbers_in(child: int | Group) -> Iterator[int]:
    """The equations of a group."""
    if isinstance(child, Group):
        for inner in child.children:
            yield from numbers_in(inner)
    else:
        yield child


def _lines(items: Sequence[Item], numbers: Sequence[int]) -> str:
    lines = [items[n].line for n in numbers if items[n].file is not None]
    if not lines:
        return "no line"
    first, last = min(lines), max(lines)
    return f"line {first}" if first == last else f"lines {first}–{last}"
