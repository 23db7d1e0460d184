"""The lines of the user's code as they run, announced by `sys.monitoring`, or by a trace function before 3.12."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from purax import errors
from purax.purity.ownership import is_user_code
from purax.scopes import Scope

Listener = Callable[[types.FrameType, int, bool], None]  # the frame, the line, whether it is about to return


def _safe(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A callback of the interpreter's of which only findings reach the user."""
    finding = (
        errors.ImpureFunctionError
    )  # held here, since the interpreter may call when the modules are gone

    def call(*args: Any) -> Any:
        try:
            return callback(*args)
        except finding:
            raise
        except Exception:
            return None

    return call


def _frame_of(code: types.CodeType) -> types.FrameType:
    """The innermost frame that runs a function, however many callbacks stand between it and here."""
    frame = sys._getframe(1)
    while frame.f_code is not code:
        assert frame.f_back is not None
        frame = frame.f_back
    return frame


def _nobody(frame: types.FrameType, line: int, returns: bool) -> None:
    """Listens to nothing."""


class TracedLines(Scope):
    """Lines announced by a trace function (`sys.settrace`); another one that is set goes on."""

    def __init__(self, listener: Listener):
        self._listener = listener
        self._previous: Any = sys.gettrace()

    def enter(self, entered: list[Any]) -> None:
        entered.append(self)
        sys.settrace(_safe(self._enter))

    def leave(self, _: list[Any]) -> None:
        sys.settrace(self._previous)
        self._listener = _nobody  # frames that go on keep their trace function, and it the listener

    def _enter(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        other = self._previous(frame, event, argument) if self._previous is not None else None
        if not is_user_code(frame.f_code):
            return other

        def step(frame: types.FrameType, event: str, argument: Any) -> Any:
            nonlocal other
            if event == "line":
                self._listener(frame, frame.f_lineno, False)
            elif event == "return":
                self._listener(frame, frame.f_lineno, True)
            if other is not None:
                other = other(frame, event, argument)
            return step

        return _safe(step)


class MonitoredLines(Scope):
    """Lines announced by `sys.monitoring`: each function announces itself when it first runs."""

    def __init__(self, listener: Listener):
        self._listener = listener
        self._codes: list[types.CodeType] = []
        self._tool: int | None = None
        self._thread = threading.get_ident()

    def enter(self, entered: list[Any]) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        entered.append(self)
        self._tool = next((tool for tool in (4, 3, 1, 0) if monitoring.get_tool(tool) is None), None)
        if self._tool is None:
            return
        monitoring.use_tool_id(self._tool, "purax")
        events = monitoring.events
        callbacks = {events.PY_START: self._start, events.PY_RESUME: self._start, events.LINE: self._line}
        callbacks |= {events.PY_RETURN: self._return, events.PY_YIELD: self._return}
        for event, callback in callbacks.items():
            monitoring.register_callback(self._tool, event, _safe(callback))
        monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME)
        monitoring.restart_events()

    def leave(self, _: list[Any]) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        if self._tool is None or monitoring.get_tool(self._tool) != "purax":
            return
        events = monitoring.events
        monitoring.set_events(self._tool, 0)
        for code in self._codes:
            monitoring.set_local_events(self._tool, code, 0)
        for event in (events.PY_START, events.PY_RESUME, events.LINE, events.PY_RETURN, events.PY_YIELD):
            monitoring.register_callback(self._tool, event, None)
        monitoring.free_tool_id(self._tool)
        self._tool = None

    def _start(self, code: types.CodeType, offset: int) -> Any:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
        if is_user_code(code):
            self._codes.append(code)
            events = monitoring.events
            monitoring.set_local_events(self._tool, code, events.LINE | events.PY_RETURN | events.PY_YIELD)
        return monitoring.DISABLE

    def _line(self, code: types.CodeType, line: int) -> None:
        if threading.get_ident() == self._thread:
            self._listener(_frame_of(code), line, False)

    def _return(self, code: types.CodeType, offset: int, value: Any) -> None:
        if threading.get_ident() == self._thread:
            frame = _frame_of(code)
            self._listener(frame, frame.f_lineno, True)


Lines: Any = MonitoredLines if hasattr(sys, "monitoring") else TracedLines
