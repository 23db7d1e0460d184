"""Tables that a model of a program shares: texts, types and places are written once and then named by their numbers."""

from __future__ import annotations

import linecache
import os
from typing import Any

from purax.core.source import Location, shown_file
from purax.explorer.costs import bytes_of


class Table:
    """Values in the order in which they first came.

    >>> table = Table()
    >>> table.number("a"), table.number("b"), table.number("a"), table.values
    (0, 1, 0, ['a', 'b'])
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value, which is added if it is new."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self.values)
            self.values.append(value)
        return known


class Tables:
    """What all programs of a model share."""

    def __init__(self) -> None:
        self.operations, self.scopes, self.texts = Table(), Table(), Table()
        self.types, self.places, self.files = Table(), Table(), Table()
        self.sizes: list[int] = []  # of the types, in bytes
        self.kinds: dict[int, str] = {}  # of the operations

    def type(self, aval: Any) -> int:
        """The number of a type."""
        return self.type_of(aval.str_short() if hasattr(aval, "str_short") else str(aval), bytes_of(aval))

    def type_of(self, text: str, size: int) -> int:
        """The number of a type that is written as `text`, and takes `size` bytes."""
        number = self.types.number(text)
        if number == len(self.sizes):
            self.sizes.append(size)
        return number

    def place(self, location: Location | None) -> int:
        """The number of a line of the user's; −1 for none."""
        if location is None:
            return -1
        return self.place_at(location.file, location.line)

    def place_at(self, file: str, line: int) -> int:
        """The number of a line of a file."""
        return self.places.number((self.files.number(file), line))

    def _lines_of(self, file: int) -> list[int]:
        return [line for at, line in self.places.values if at == file]

    def as_data(self) -> dict[str, Any]:
        """The tables as lists."""
        return {
            "operations": self.operations.values,
            "kinds": [self.kinds.get(n, "other") for n in range(len(self.operations.values))],
            "scopes": self.scopes.values,
            "texts": self.texts.values,
            "types": [[text, size] for text, size in zip(self.types.values, self.sizes, strict=True)],
            "places": [list(place) for place in self.places.values],
            "files": [source_of(file, self._lines_of(n)) for n, file in enumerate(self.files.values)],
        }


def source_of(file: str, used: list[int]) -> dict[str, Any]:
    """A file of the user's: how it is called, and its text around the lines that matter, as far as that can be had.

    Args:
        file: the file, as code objects name it.
        used: the numbers of the lines that matter.
    """
    shown = shown_file(file)
    if os.path.isabs(shown):
        relative = os.path.relpath(shown)
        shown = shown if relative.startswith("..") else relative
    lines = [line.rstrip("\n") for line in linecache.getlines(file)]
    stretches = _stretches(used, len(lines)) if len(lines) > _WHOLE else [(1, len(lines))]
    return {"name": shown, "parts": [[first, lines[first - 1 : last]] for first, last in stretches if last]}


_WHOLE = 600  # lines of a file that is shown as a whole
_AROUND = 40  # lines that are shown before and after one that matters


def _stretches(used: list[int], length: int) -> list[tuple[int, int]]:
    """First and last lines of what is shown of a long file."""
    found: list[tuple[int, int]] = []
    for line in sorted(used):
        first, last = max(line - _AROUND, 1), min(line + _AROUND, length)
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], last)
        elif first <= last:
            found.append((first, last))
    return found
