"""Who asks for the value of a traced array, and what to write instead: the words of the errors that refuse it.

A value that leaves a transformed function through Python or NumPy takes no derivative and no batch axis along, so
tracers refuse (`purax.core.trace`). `asker` finds the user's line and the function that was called there: a function of
NumPy, SciPy or the standard library by its frame, one written in C by the source of the call. All of this runs only
when an error is about to be raised.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from purax.core import source

_counterparts: list[Callable[[str, str], str | None]] = []


class Asker(NamedTuple):
    """Where the value of a traced array was asked for.

    Attributes:
        location: the user's line.
        function: the name of the function that was called there, such as `math.sin`, if it is known.
        counterpart: the name of the function of purax that does the same, if there is one.
    """

    location: source.Location | None
    function: str | None
    counterpart: str | None


def install_counterparts(find: Callable[[str, str], str | None]) -> None:
    """Sets who knows the function of purax for one of a module, `find(module, name)`: its name, or None."""
    _counterparts[:] = [find]


def asker() -> Asker:
    """Who asks for the value of a traced array now."""
    frame = source.user_frame(sys._getframe(1))
    inner: list[FrameType] = []
    while frame is not None and source.is_library(frame):
        inner.append(frame)
        frame = frame.f_back
    if frame is None:
        return Asker(source.user_location(), None, None)
    location = source.names.location or source.location_of(frame)
    # The outermost frames first: SciPy's `solve` may call other functions before one of them asks.
    for library in reversed(inner):
        module, name = library.f_globals.get("__name__", ""), library.f_code.co_name
        found = _public_name(module, name)
        if found is not None and (
            found[0] != module or not module.startswith("purax.")
        ):  # a package has it for users
            return Asker(location, ".".join(found), _counterpart(*found))
    function = _called(frame)
    home, own_name = getattr(function, "__module__", None), getattr(function, "__name__", None)
    if not isinstance(home, str) or not isinstance(own_name, str):
        return Asker(location, None, None)
    home, own_name = _public_name(home, own_name) or (home, own_name)
    is_plain = home == "builtins" or home.startswith("purax.")
    return Asker(location, own_name if is_plain else f"{home}.{own_name}", _counterpart(home, own_name))


def _public_name(module: str, name: str) -> tuple[str, str] | None:
    """The module where users find a function that is defined in `module`: `scipy.linalg` of `scipy.linalg._basic`."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        if parts[count - 1].startswith("_"):
            break
        package = ".".join(parts[:count])
        if callable(getattr(sys.modules.get(package), name, None)):
            return package, name
    return None


def _counterpart(module: str, name: str) -> str | None:
    return next((found for find in _counterparts if (found := find(module, name)) is not None), None)


def _called(frame: FrameType) -> Any:
    """The function that is being called by a frame, found by the source of the call; None where that is not clear."""
    positions = list(frame.f_code.co_positions())
    first, last, begin, end = positions[frame.f_lasti // 2] if frame.f_lasti >= 0 else (None,) * 4
    if first is None or last is None or begin is None or end is None:
        return None
    lines = [
        linecache.getline(frame.f_code.co_filename, number).encode() for number in range(first, last + 1)
    ]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    try:
        call = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return _looked_up(call.func, frame) if isinstance(call, ast.Call) else None


def _looked_up(expression: ast.expr, frame: FrameType) -> Any:
    """The value of a name, or of an attribute of a module, in a frame; None for other expressions."""
    if isinstance(expression, ast.Name):
        for names in (frame.f_locals, frame.f_globals, frame.f_builtins):
            if expression.id in names:
                return names[expression.id]
    if isinstance(expression, ast.Attribute):
        owner = _looked_up(expression.value, frame)
        return getattr(owner, expression.attr, None) if isinstance(owner, ModuleType) else None
    return None
