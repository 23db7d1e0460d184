"""Tracebacks without purax's frames: an exception loses them where it leaves purax for the user's code.

`guard` gives functions one more row in the table of their exception handlers, which costs nothing unless something is
raised. The handler is taken from a function that the running Python compiled, so that its instructions are right. All
that prints a traceback (notebooks, pytest, threads, logging) therefore shows the user's frames only; the flag
`traceback_filtering` has other ways.
"""

from __future__ import annotations

import inspect
import sys
import traceback
import warnings
from collections.abc import Iterator
from opcode import opmap
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

from purax.config import config
from purax.core import source

_HIDDEN = (
    "purax's own frames are left out of this traceback; they are shown if the environment has "
    "PURAX_TRACEBACK_FILTERING=off."
)
_KNOWN_PYTHONS = (
    (3, 11),
    (3, 15),
)  # from, up to: whose tables of handlers are of the form that is written here
_UNGUARDED = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_guarded_modules: set[str] = set()
_NOT_A_CONSTANT = "what stands for the function that a handler calls"


class UnfilteredStackTrace(Exception):
    """The cause of an exception whose traceback was filtered; its own traceback is complete."""


# -- what is left out


def visible(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of purax, and of the libraries that it called; None if no other is there."""
    kept = []
    inside = False
    while traceback is not None:
        frame = traceback.tb_frame
        if source.code_is_internal(frame.f_code):
            inside = True
        elif not inside or not source.is_library(frame):
            inside = False
            kept.append(traceback)
        traceback = traceback.tb_next
    result = None
    for step in reversed(kept):
        same = step.tb_next is result
        result = step if same else TracebackType(result, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return result


def _linked(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it is printed with."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [link.__cause__, link.__context__]
            if isinstance(link, BaseExceptionGroup):
                waiting += link.exceptions


def _was_inside(error: BaseException | None) -> bool:
    """Whether an exception was raised and caught by purax, so that nobody else knows of it."""
    if error is None or error.__traceback__ is None or isinstance(error, UnfilteredStackTrace):
        return False
    return visible(error.__traceback__) is None


def remove_frames(error: BaseException) -> None:
    """Takes purax's frames out of the traceback of an exception and of those that it is printed with."""
    links = list(_linked(error))
    for link in links:
        while _was_inside(link.__context__) and link.__context__ is not link.__cause__:
            suppressed = link.__suppress_context__
            link.__context__ = link.__context__.__context__  # type: ignore[union-attr]
            link.__suppress_context__ = suppressed
    for link in links:
        if not isinstance(link, UnfilteredStackTrace):
            link.__traceback__ = visible(link.__traceback__)


def mark_frames(error: BaseException) -> None:
    """Marks purax's frames for pytest and IPython, which leave out those that have `__tracebackhide__`."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if source.code_is_internal(frame.f_code):
            frame.f_locals["__tracebackhide__"] = True


def leave() -> None:
    """Filters the exception that is being handled, if its caller's frame is left for one of the user's code."""
    try:
        frame = sys._getframe(1)
        caller = frame.f_back
        if caller is not None and source.is_own(caller.f_code):
            return
        error = sys.exc_info()[1]
        if isinstance(error, (Exception, KeyboardInterrupt)):
            _filter(error, caller)
    except Exception:  # the user's exception matters more than how it looks
        return


def _filter(error: BaseException, caller: FrameType | None) -> None:
    mode = config.traceback_filtering
    if _is_accidental(error) and caller is not None:
        source.with_location(error, source.names.location or source.location_of(caller))
        if mode not in ("off", "quiet_remove_frames") and not hasattr(error, "__notes__"):
            error.add_note(_HIDDEN)
    if mode == "off" or (mode != "auto" and _is_inside(caller)):
        return
    if mode == "tracebackhide":
        mark_frames(error)
        return
    whole = error.__traceback__
    remove_frames(error)
    if mode == "quiet_remove_frames":
        error.add_note(_HIDDEN)
    elif mode == "remove_frames" and not isinstance(error.__cause__, UnfilteredStackTrace):
        cause = UnfilteredStackTrace(_HIDDEN).with_traceback(whole)
        cause.__cause__, cause.__context__ = error.__cause__, error.__context__
        cause.__suppress_context__ = error.__suppress_context__
        error.__cause__ = cause


def _is_inside(frame: FrameType | None) -> bool:
    """Whether purax runs the function of a frame."""
    while frame is not None:
        if source.is_own(frame.f_code):
            return True
        frame = frame.f_back
    return False


def _is_accidental(error: BaseException) -> bool:
    """Whether NumPy or another library raised an exception while purax called it, which therefore names no line."""
    step = error.__traceback__
    inside = False
    while step is not None:
        frame = step.tb_frame
        if source.code_is_internal(frame.f_code):
            inside = True
        elif not source.is_library(frame):
            inside = False
        if step.tb_next is None:
            break
        step = step.tb_next
    if step is None or not inside:
        return False
    frame = step.tb_frame
    instruction = frame.f_code.co_code[step.tb_lasti] if step.tb_lasti >= 0 else None
    return not source.code_is_internal(frame.f_code) or instruction not in _RAISES


# -- functions whose exceptions are filtered

# A row of the table of handlers is four numbers: from where, for how long, where to go, and how deep the stack is; the
# first three in instructions of two bytes.


def _rows(table: bytes) -> list[tuple[int, int, int, int]]:
    """The table of the handlers of a function."""
    numbers: list[int] = []
    number = 0
    for byte in table:
        number = number << 6 | byte & 63
        if not byte & 64:
            numbers.append(number)
            number = 0
    return list(zip(*[iter(numbers)] * 4, strict=True))  # type: ignore[arg-type]


def _row(start: int, length: int, target: int, depth: int) -> bytes:
    """The bytes of a row: digits in base 64, of which 64 marks all but the last of a number, and 128 the first."""
    if start < 64 and length < 64 and target < 64:
        return bytes((start | 128, length, target, depth))
    table = bytearray()
    for number in (start, length, target, depth):
        for shift in (18, 12, 6):
            if number >> shift:
                table.append(number >> shift & 63 | 64)
        table.append(number & 63)
    table[0] |= 128
    return bytes(table)


def _handler() -> tuple[bytes, int, list[tuple[int, int, int, int]], int, bytes]:
    """Instructions that call a constant and raise again; see below for the rest of it."""
    names: dict[str, Any] = {}
    program = f"def f():\n try:\n  f()\n except:\n  {_NOT_A_CONSTANT!r}()\n  raise\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a text cannot be called
        exec(program, names)
    code: CodeType = names["f"].__code__
    rows = _rows(code.co_exceptiontable)
    start = rows[0][2]
    body = code.co_code[2 * start :]
    load = bytes((opmap["LOAD_CONST"], code.co_consts.index(_NOT_A_CONSTANT)))
    at = next(i for i in range(0, len(body), 2) if body[i : i + 2] == load)

    def moved(instruction: int) -> int:  # by the one with the upper digits of the constant's number
        return instruction - start + (2 * (instruction - start) > at)

    wide = bytes((opmap["EXTENDED_ARG"], 0))
    own = [(moved(a), moved(a + n) - moved(a), moved(to), depth) for a, n, to, depth in rows if a >= start]
    units = len(body) // 2 + 1
    lines = bytes(0x80 | 15 << 3 | min(units - i, 8) - 1 for i in range(0, units, 8))
    return body[:at] + wide + body[at:], at, own, code.co_stacksize, lines


def _guarded(code: CodeType, done: dict[int, tuple[CodeType, CodeType]]) -> CodeType:
    """A function's code with `leave` as the handler of whatever it and the functions in it do not handle.

    `done` has codes that were met, each with what was made of it, and keeps them, so that their ids stay theirs.
    """
    known = done.get(id(code))
    if known is not None:
        return known[1]
    constants = [_guarded(x, done) if type(x) is CodeType else x for x in code.co_consts]
    flags = code.co_flags
    if flags & _UNGUARDED or not flags & inspect.CO_OPTIMIZED or constants[-1:] == [leave]:
        result = code.replace(co_consts=tuple(constants))
    else:
        number = len(constants)
        constants.append(leave)
        body = code.co_code
        start = len(body) >> 1
        added = bytearray(_instructions)
        added[_load + 1], added[_load + 3] = number >> 8, number & 255
        table, end = b"", 0
        if code.co_exceptiontable:
            for row in _rows(code.co_exceptiontable):
                if row[0] > end:
                    table += _row(end, row[0] - end, start, 0)
                table += _row(*row)
                end = row[0] + row[1]
        if end < start:
            table += _row(end, start - end, start, 0)
        for first, length, target, depth in _own_rows:
            table += _row(start + first, length, start + target, depth)
        result = code.replace(
            co_code=body + added,
            co_consts=tuple(constants),
            co_exceptiontable=table,
            co_linetable=code.co_linetable + _no_lines,
            co_stacksize=max(code.co_stacksize, _stack),
        )
    done[id(code)] = code, result
    return result


_RAISES = frozenset((opmap["RAISE_VARARGS"], opmap["RERAISE"]))
_LAST = (leave,)
_is_known_python = _KNOWN_PYTHONS[0] <= sys.version_info[:2] < _KNOWN_PYTHONS[1]
if _is_known_python:
    # The instructions, where among them the number of the constant is (in two instructions), the handlers of what they
    # raise themselves, how deep a stack they need, and the bytes that say that they stand on no line.
    _instructions, _load, _own_rows, _stack, _no_lines = _handler()


def guard(*functions: Any) -> None:
    """Lets exceptions that leave functions of purax for the user's code lose purax's frames.

    Args:
        *functions: functions and classes (all of their methods); others are skipped.
    """
    if not _is_known_python:
        return
    done: dict[int, tuple[CodeType, CodeType]] = {}
    waiting, classes = list(functions), set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, FunctionType):
            code = found.__code__
            waiting.append(found.__dict__.get("__wrapped__"))  # a generator that became a context manager
            if code.co_consts[-1:] != _LAST and source.code_is_internal(code):
                found.__code__ = _guarded(code, done)
        elif isinstance(found, type):
            if found.__module__.startswith("purax.") and found not in classes:
                classes.add(found)
                waiting += vars(found).values()
        elif isinstance(found, (staticmethod, classmethod)):
            waiting.append(found.__func__)
        elif isinstance(found, property):
            waiting += [found.fget, found.fset]


def guard_module(module: ModuleType) -> None:
    """Guards what a module offers (defines, or hands on as a package or by `__all__`), and the classes beside that."""
    names = vars(module)
    offered = {*(names.get("__all__") or [name for name in names if name[0] != "_"]), "__getattr__"}
    hands_on = "__all__" in names or "__path__" in names
    public = [
        x
        for x in (names.get(name) for name in offered)
        if isinstance(x, (FunctionType, type))
        and (x.__module__.startswith("purax") if hands_on else x.__module__ == module.__name__)
    ]
    homes = {x.__module__ for x in public} - _guarded_modules
    _guarded_modules.update(homes)
    beside = [
        x for home in homes for x in vars(sys.modules.get(home, module)).values() if isinstance(x, type)
    ]
    guard(*public, *[x for x in beside if x.__module__ in homes])


def install_excepthook() -> None:
    """Lets uncaught exceptions print without purax's frames, also those that another library raised through them."""
    previous = sys.excepthook

    def excepthook(kind, error, traceback):
        if config.traceback_filtering != "off":
            remove_frames(error)
            traceback = error.__traceback__
        previous(kind, error, traceback)

    sys.excepthook = excepthook
