"""Guards: what a traced function read from outside, compared on every cached call.

The paths to the values and their snapshots are turned into one small Python function, which reads the namespaces,
cells and attributes directly, once the guards have held a few times; until then they are compared one by one.
"""

from __future__ import annotations

import contextlib
import keyword
import types
from collections.abc import Iterable, Sequence
from typing import Any

from purax.core.array import Array
from purax.purity.captures import Captures, Leaf
from purax.purity.paths import Path, follow, is_written, path_text
from purax.purity.snapshots import Snapshot, describe, short, take

_COMPILE_AFTER = 2
_MISSING = (KeyError, AttributeError, IndexError, TypeError, ValueError)
_NUMBERS = (int, float, complex, str, type(None))
_compiled: dict[str, types.CodeType] = {}


class Guard:
    """One value: the path to it, what it was, and where it is read."""

    __slots__ = ("file", "line", "path", "snapshot")

    def __init__(self, path: Path, snapshot: Snapshot, file: str, line: int):
        self.path = path
        self.snapshot = snapshot
        self.file = file
        self.line = line


class Guards:
    """The guards of one traced program; calling it gives the program's captured arrays as they are now, or None.

    None means that something changed, so that the program must not be used.
    """

    __slots__ = ("check", "constants", "guards", "held")

    def __init__(self, guards: Sequence[Guard], constants: Sequence[Any]):
        self.guards = guards
        self.constants = list(constants)
        self.held = 0
        self.check: Any = self._compare

    def _compare(self) -> list[Any] | None:
        operands = self.constants.copy()
        try:
            for guard in self.guards:
                if not guard.snapshot.same(follow(guard.path), operands):
                    return None
        except _MISSING:
            return None
        self.held += 1
        if self.held >= _COMPILE_AFTER:
            self.check = _generate(self.guards, self.constants)
        return operands

    def changes(self) -> list[str]:
        """What changed, for `explain_cache_misses`: "`lr` in train.py:12 changed from 0.1 to 0.01"."""
        lines = []
        for guard in self.guards:
            try:
                now = follow(guard.path)
                if guard.snapshot.same(now, self.constants.copy()):
                    continue
                text = describe(take(now, {}, set())) if not isinstance(now, Array) else short(now)
            except _MISSING:
                text = "nothing: it is gone"
            before = describe(guard.snapshot)
            change = f"changed from {before} to {text}" if before != text else f"changed: {text}"
            lines.append(f"`{path_text(guard.path)}` in {guard.file}:{guard.line} {change}")
        return lines


def make_guards(leaves: Iterable[Leaf], constants: Sequence[Any], read: set[int]) -> Guards | None:
    """The guards for the values that `leaves` lead to now; None if there is nothing to compare.

    Args:
        leaves: what the function reads.
        constants: the arrays that the program captured.
        read: ids of arrays whose values were looked at while tracing.
    """
    slots: dict[int, list[int]] = {}
    for i, x in enumerate(constants):
        slots.setdefault(id(x), []).append(i)
    guards = []
    for leaf in leaves:
        try:
            value = follow(leaf.path)
        except _MISSING:
            continue
        if leaf.how == "type":
            snapshot = Snapshot("type", None, type(value))
        elif leaf.how == "identity":
            snapshot = Snapshot("identity", value, type(value))
        else:
            snapshot = take(value, slots, read)
        file = leaf.code.co_filename if leaf.code is not None else "a function object"
        guards.append(Guard(leaf.path, snapshot, file, leaf.line))
    return Guards(guards, constants) if guards else None


def before_tracing(captures: Captures) -> dict[Any, Snapshot]:
    """The values that a function about to be traced may assign, as they are: numbers, and what its code writes to."""
    places = set(captures.written.values())
    found = {}
    for key, leaf in captures.leaves.items():
        if leaf.how == "value":
            with contextlib.suppress(*_MISSING):
                value = follow(leaf.path)
                if isinstance(value, _NUMBERS) or is_written(leaf.path, places, captures.written):
                    found[key] = take(value, {}, set())
    return found


def has_changed(leaf: Leaf, before: Snapshot | None) -> bool:
    """Whether a value is another now than `before` a function was traced: the function itself assigned it."""
    if before is None:
        return False
    try:
        return not before.same(follow(leaf.path), [])
    except _MISSING:
        return True


class _Writer:
    """Writes the source of a comparing function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.paths: dict[Any, str] = {}

    def name(self, value: Any) -> str:
        name = self.names.get(id(value))
        if name is None:
            name = self.names[id(value)] = f"v{len(self.values)}"
            self.values[name] = value
        return name

    def read(self, path: Path) -> str:
        """An expression for what stands at a path; shared beginnings are read once."""
        kind = path[0]
        if kind == "object":
            return self.name(path[1])
        if kind == "global":
            text = f"{self.name(path[1])}[{path[2]!r}]"
        elif kind == "cell":
            text = f"{self.name(path[1])}.cell_contents"
        else:
            base = self.read(path[1])
            if kind == "attr" and path[2].isidentifier() and not keyword.iskeyword(path[2]):
                text = f"{base}.{path[2]}"
            elif kind == "attr":
                text = f"getattr({base}, {path[2]!r})"
            elif kind == "method":
                text = f"{base}.{path[2]}.__func__"
            elif kind == "call":
                text = f"{base}()"
            else:
                key = repr(path[2]) if type(path[2]) in (int, str, bool) else self.name(path[2])
                text = f"{base}[{key}]"
        variable = self.paths.get(text)
        if variable is None:
            variable = self.paths[text] = f"t{len(self.paths)}"
            self.lines.append(f"        {variable} = {text}")
        return variable


def _generate(guards: Sequence[Guard], constants: list[Any]) -> Any:
    """A function without arguments that does what `Guards._compare` does."""
    writer = _Writer()
    replaces = any(_has_operands(guard.snapshot) for guard in guards)
    for guard in guards:
        value = writer.read(guard.path)
        snapshot = guard.snapshot
        if snapshot.kind == "type":
            test = f"type({value}) is not {writer.name(snapshot.type)}"
        elif snapshot.kind == "identity":
            test = f"{value} is not {writer.name(snapshot.value)}"
        elif snapshot.kind in ("scalar", "operand"):
            old, same = writer.name(snapshot.value), writer.name(snapshot)
            test = f"{value} is not {old} and not {same}.same({value}, operands)"
        else:
            test = f"not {writer.name(snapshot)}.same({value}, operands)"
        writer.lines.append(f"        if {test}: return None")
    writer.values |= {"constants": constants, "missing": _MISSING}
    made = "constants.copy()" if replaces else "constants"
    text = "\n".join(
        [
            "def check():",
            f"    operands = {made}",
            "    try:",
            *writer.lines,
            "    except missing: return None",
            "    return operands",
        ]  # fmt: skip
    )
    code = _compiled.get(text)
    if code is None:
        if len(_compiled) > 1000:
            _compiled.clear()
        code = _compiled[text] = compile(text, "<purax guards>", "exec")
    exec(code, writer.values)
    return writer.values["check"]


def _has_operands(snapshot: Snapshot) -> bool:
    if snapshot.kind == "operand":
        return True
    if isinstance(snapshot.parts, dict):
        return any(map(_has_operands, snapshot.parts.values()))
    return snapshot.kind == "sequence" and any(map(_has_operands, snapshot.parts))
