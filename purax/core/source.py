"""Where in the user's code things happen: source locations for equations and errors.

A frame belongs to the user when its file is not part of purax. Which files are, is remembered per code object, so
that a location costs a short walk over the stack.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from purax.errors import more_about, shown
from purax.scopes import scoped

E = TypeVar("E", bound=BaseException)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# By the id of code objects, which are kept: their own hash goes through all instructions.
_is_internal: dict[int, tuple[CodeType, bool]] = {}
_LIBRARIES = frozenset(("numpy", "scipy", "ml_dtypes", "opt_einsum"))
_excluded: set[str] = {contextlib.__file__}
on_exclude: list[Callable[[], Any]] = []  # called when a file changes sides


class Location(NamedTuple):
    """A line of the user's code; `backward` says that the derivative of what stands there is meant."""

    file: str
    line: int
    function: str
    backward: bool = False

    @property
    def text(self) -> str:
        """The source of the line, or an empty string where no source is at hand."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        where = f"{shown_file(self.file)}:{self.line}"
        return (
            where if self.function == "<module>" and where.startswith("In[") else f"{where} ({self.function})"
        )


def shown_file(file: str) -> str:
    """A file as messages name it: `In[3]` for the third cell of a notebook."""
    interactive = sys.modules.get("IPython")
    shell = None if interactive is None else interactive.get_ipython()
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return f"In[{cells[file]}]" if file in cells else file


def is_library(frame: FrameType) -> bool:
    """Whether a frame belongs to NumPy, SciPy or the standard library: a user is who called it."""
    root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return root in _LIBRARIES or root in sys.stdlib_module_names or code_is_internal(frame.f_code)


def is_installed(code: CodeType) -> bool:
    """Whether code is that of an installed package."""
    return "site-packages" in code.co_filename or "dist-packages" in code.co_filename


def code_is_internal(code: CodeType) -> bool:
    """Whether `code` belongs to purax (or to the machinery that imports and decorates) rather than to the user."""
    try:
        return _is_internal[id(code)][1]
    except KeyError:
        file = code.co_filename
        internal = file.startswith((_PACKAGE, "<frozen")) or file in _excluded
        _is_internal[id(code)] = (code, internal)
        return internal


def is_own(code: CodeType) -> bool:
    """Whether code is that of a file of purax."""
    return code.co_filename.startswith(_PACKAGE)


def exclude(file: str) -> None:
    """Counts a file of a library among those that are not the user's."""
    _excluded.add(file)
    _is_internal.clear()
    for forget in on_exclude:
        forget()


class _Names(threading.local):
    """What recorded equations are attributed to in this thread.

    Attributes:
        scope: the `named_scope`s that are open, as one string.
        location: the line of the equation that is being interpreted; None while the user's own code runs.
        marks_backward: whether the lines of derivatives are to be told from those of what they derive.
    """

    scope = ""
    location: Location | None = None
    marks_backward = False


names = _Names()


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """The innermost frame of the user's code at or above `frame` (default: the caller)."""
    if frame is None:
        frame = sys._getframe(1)
    while frame is not None:
        if not code_is_internal(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def user_location() -> Location | None:
    """The line of the user's code that is running now, or None if all frames are purax's."""
    if names.location is not None:
        return names.location
    frame = user_frame(sys._getframe(1))
    return None if frame is None else location_of(frame)


def location_of(frame: FrameType) -> Location:
    """The line that a frame is at."""
    return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def lines_of_caller() -> tuple[Location | None, Location | None]:
    """The user's line that is running now, and the line of a library that it has called, if one is between."""
    if names.location is not None:
        return names.location, None
    inner = frame = user_frame(sys._getframe(1))
    while frame is not None and (is_library(frame) or is_installed(frame.f_code)):
        frame = frame.f_back
    if inner is None or frame is inner or frame is None:
        return None if inner is None else location_of(inner), None
    return location_of(frame), location_of(inner)


_LINE = re.compile(r"\n  at (\S[^\n]*:\d+ \(|In\[\d+\]:\d)")


def with_location(error: E, location: Location | None = None) -> E:
    """Adds the user's line to the message of `error`, once; returns `error`."""
    if getattr(error, "_located", False) or not error.args or not isinstance(error.args[0], str):
        return error
    if _LINE.search(error.args[0]):  # it tells of another error, which has the line
        return error
    inner = None
    if location is None:
        location, inner = lines_of_caller()
    if location is not None:
        source = f": {location.text}" if location.text else ""
        within = f"\n  in {inner}" if inner is not None else ""
        error.args = (f"{error.args[0]}\n  at {location}{source}{within}{more_about(error)}", *error.args[1:])
        with contextlib.suppress(AttributeError):
            error._located = True  # type: ignore[attr-defined]
    return error


def located(kind: Callable[..., E], *args: Any, at: Location | None = None) -> E:
    """The error `kind(*args)` with a line in its message, the user's by default: `raise located(TypeError, "…")`."""
    return with_location(kind(*args), at)


@scoped
def named_scope(name: str) -> Iterator[None]:
    """Names the operations recorded in the `with` block, for profiles and printed programs.

    >>> import purax as px
    >>> with px.named_scope("attention"):
    ...     y = px.numpy.ones(3) + 1
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope needs a string, got {shown(name)}")
    previous = names.scope
    names.scope = f"{previous}/{name}" if previous else name
    try:
        yield
    finally:
        names.scope = previous
