"""The watcher that `purax.core.purity_hook` calls: decides what to look at when a user's function is traced.

Nothing that goes wrong here reaches the user: an internal error is logged once, at debug level, and the function is
traced without guards.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from purax import errors
from purax.config import config
from purax.core import purity_hook, source
from purax.core.array import Array
from purax.core.memo import Memo
from purax.core.phases import measured, phase
from purax.core.trace import Tracer
from purax.purity.captures import Captures, deferred
from purax.purity.guards import Guards, make_guards
from purax.purity.likeness import likeness
from purax.purity.ownership import is_own_function
from purax.purity.side_effects import Watch
from purax.purity.unknown import tell_internal_error, tell_unguarded
from purax.purity.verdicts import Verdict
from purax.xla.array import DeviceArray

R = TypeVar("R")


def attempt(function: Callable[..., R], *args: Any) -> R | None:
    """The result of a part of the analysis; None, and a line in the log, if it fails."""
    try:
        return function(*args)
    except (errors.ImpureFunctionError, errors.ImpureFunctionWarning):
        raise
    except Exception as error:
        tell_internal_error(getattr(function, "__qualname__", repr(function)), error)
        return None


class Record:
    """What is known of one trace: what the function reads, and which captured arrays were looked at."""

    __slots__ = ("arguments", "captures", "deferred", "is_settled", "observes", "origin", "read")

    def __init__(self, captures: Captures, arguments: tuple):
        self.captures = captures
        self.arguments = arguments
        self.deferred = len(deferred)
        self.read: set[int] | None = set()  # None: any may have been
        self.observes = captures.has_arrays
        self.is_settled = False  # whether the function changed nothing
        self.origin = Origin()


class Origin:
    """A trace as the rules know it that it met: its guards, once they are made and for as long as they are used."""

    __slots__ = ("guards",)

    def __init__(self) -> None:
        self.guards: Callable[[], Guards | None] = lambda: None


class _State(threading.local):
    """Of this thread: the watch that is on, how many traces are known to be clean, and the records being made."""

    watch: Watch | None = None
    clean = 0
    records: list[Record]
    origins: list[Origin]

    def __init__(self) -> None:
        self.records = []
        self.origins = []


state = _State()


class PurityWatcher(purity_hook.Watcher):
    """Guards captured values and reports side effects."""

    @measured("analysis")
    def begin(
        self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any], static: Sequence[Any]
    ) -> Any:
        try:
            captures = walk(function, args, kwargs, static)
        except Exception as error:
            tell_unguarded(function, error)
            return None
        record = Record(captures, (function, args, kwargs, static))
        state.origins.append(record.origin)
        if record.observes:
            state.records.append(record)
            _observe(1)
        return record

    def end(self, record: Any) -> None:
        if record is None:
            return
        state.origins.remove(record.origin)
        if record.observes:
            state.records.remove(record)
            _observe(-1)
        record.captures = record.arguments = None  # what holds the record must not hold these as well

    @measured("analysis")
    def guards(self, record: Any, constants: Sequence[Any]) -> Guards | None:
        if record is None or any(isinstance(x, Tracer) for x in constants):
            return None
        read = {id(x) for x in constants} if record.read is None else record.read
        if len(deferred) > record.deferred:
            narrowed = attempt(walk, *record.arguments)
            if narrowed is not None:
                record.captures.keep(narrowed)
            record.is_settled = False
        try:
            guards = make_guards(record.captures, constants, read, record.is_settled)
            if guards is not None:
                record.origin.guards = weakref.ref(guards)
        except Exception as error:
            tell_unguarded(record.arguments[0], error)
            return None
        return guards

    def call(
        self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any], record: Any = None
    ) -> Any:
        mode = config.purity
        if state.watch is not None:
            attempt(state.watch.add_arguments, function, args, kwargs)
            return function(*args, **kwargs)
        if mode == "off" or (record is None and state.clean):
            return function(*args, **kwargs)
        captures = record.captures if record is not None else attempt(examined, function, args, kwargs)
        if captures is None:
            return function(*args, **kwargs)
        if captures.suspicious:
            watch = attempt(Watch, mode, captures)
            if watch is None:
                return function(*args, **kwargs)
            return watched(watch, function, args, kwargs)
        state.clean += 1
        try:
            result = function(*args, **kwargs)
        finally:
            state.clean -= 1
        with phase("analysis"):
            is_settled = attempt(captures.is_settled) is True
            if record is not None:
                record.is_settled = is_settled
            if not is_settled:
                watch = attempt(Watch, mode, captures)
                if watch is not None:
                    attempt(watch.conclude)
        return result

    def deferred(self, function: Callable) -> None:
        attempt(_defer, function)

    def origins(self, function: Callable) -> Sequence[Any]:
        if not state.origins or (isinstance(function, types.FunctionType) and is_own_function(function)):
            return ()
        return tuple(state.origins)

    def run_rule(self, origins: Sequence[Any], run: Callable[[], Any]) -> Any:
        found = [guards for origin in origins if (guards := origin.guards()) is not None]
        return self._forgiving(found, run)

    def run_lowering(self, guards: Guards, run: Callable[[], Any]) -> Any:
        return self._forgiving([guards], run)

    def _forgiving(self, found: Sequence[Guards], run: Callable[[], Any]) -> Any:
        before = [(guards, attempt(guards.holding)) for guards in found]
        try:
            return run()
        finally:
            for guards, held in before:
                if held:
                    attempt(guards.forgive, held)

    def values_read(self) -> None:
        for record in state.records:
            record.read = None


def _defer(function: Any) -> None:
    frame = source.user_frame(sys._getframe(2))
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if frame is not None and isinstance(code, types.CodeType):
        deferred[id(frame.f_code), id(code)] = (frame.f_code, code)


def watched(watch: Watch, function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a function under a watch."""
    state.watch = watch
    error: BaseException | None = None
    try:
        attempt(watch.begin, function, args, kwargs)
        result = function(*args, **kwargs)
    except BaseException as raised:
        error = raised
        raise
    finally:
        state.watch = None
        try:
            attempt(watch.end, error)
        except BaseException:  # an interrupt
            attempt(watch.end, None)
            raise
        del error
    attempt(watch.conclude)
    return result


def walk(function: Any, args: Sequence[Any], kwargs: dict[str, Any], static: Sequence[Any]) -> Captures:
    """What a function can reach."""
    return Captures().examine(function, args, kwargs, static)


_PLAIN_ARGUMENTS = (Array, int, float, complex, list, tuple, dict, type(None))
_known: Memo[Any, Verdict] = Memo(1000)  # by what functions that are alike have in common


@measured("analysis")
def examined(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Captures | None:
    """What a function reads; None if functions that are alike are known to have no side effects."""
    if kwargs or not all([isinstance(x, _PLAIN_ARGUMENTS) for x in args]):
        return walk(function, args, kwargs, ())
    alike = likeness(function)
    if alike is not None:
        known = _known.get(alike[0])
        if known is not None and known.holds():
            return None
    captures = walk(function, args, kwargs, ())
    if alike is not None:
        verdict = Verdict.of(captures, alike[1])
        if verdict is not None:
            _known[alike[0]] = verdict
    return captures


# -- which arrays are looked at

_plain = {"host_value": DeviceArray.host_value, "peek": DeviceArray.peek}
_observers = 0
_lock = threading.Lock()


def _noted(name: str) -> Callable:
    plain = _plain[name]

    @functools.wraps(plain)
    def read(self):
        for record in state.records:
            if record.read is not None:
                record.read.add(id(self))
        return plain(self)

    return read


_noting = {name: _noted(name) for name in _plain}


def _observe(change: int) -> None:
    """Notes, while any record asks for it, which arrays have their values read."""
    global _observers
    with _lock:
        _observers += change
        if (_observers == 1 and change == 1) or _observers == 0:
            for name, function in (_noting if _observers else _plain).items():
                setattr(DeviceArray, name, function)


def install() -> None:
    """Lets traces be watched."""
    purity_hook.set_watcher(PurityWatcher())
