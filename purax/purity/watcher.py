"""The watcher that `purax.transforms` calls: decides what to look at when a user's function is traced."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from purax.config import config
from purax.core.array import Array
from purax.core.trace import Tracer
from purax.purity.captures import Captures
from purax.purity.effects import Watch
from purax.purity.given import Given
from purax.purity.guards import Guards, before_tracing, has_changed, make_guards
from purax.purity.likeness import likeness
from purax.purity.outside import may_hold
from purax.purity.paths import is_written
from purax.transforms import watching
from purax.xla.array import DeviceArray


class Record:
    """What is known of one trace: what the function reads, and which captured arrays were looked at."""

    __slots__ = ("before", "captures", "observes", "places", "read")

    def __init__(self, captures: Captures):
        self.captures = captures
        self.places: set[tuple[str, int]] = set()  # of side effects that were told
        self.read: set[int] | None = set()  # None: any may have been
        self.observes = False
        # Where no side effects are told, the values that the function may assign, as they were.
        self.before = before_tracing(captures) if config.purity == "off" else {}


class _State(threading.local):
    """Of this thread: the watch that is on, how many traces are known to be clean, and the records being made."""

    watch: Watch | None = None
    clean = 0
    records: list[Record]

    def __init__(self) -> None:
        self.records = []


state = _State()


class PurityWatcher(watching.Watcher):
    """Guards captured values and reports side effects."""

    def begin(
        self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any], static: Sequence[Any]
    ) -> Any:
        record = Record(examined(function, args, kwargs, static, True))
        if record.captures.leaves:
            state.records.append(record)
            values = [value for value, _ in record.captures.values.values()]
            record.observes = may_hold(values, DeviceArray)
            if record.observes:
                _observe(1)
        return record

    def end(self, record: Any) -> None:
        if record is None:
            return
        if record in state.records:
            state.records.remove(record)
        if record.observes:
            _observe(-1)

    def guards(self, record: Any, constants: Sequence[Any]) -> Guards | None:
        captures = record.captures
        if not captures.leaves or any(isinstance(x, Tracer) for x in constants):
            return None
        read = {id(x) for x in constants} if record.read is None else record.read
        # What the function itself assigns is told to the user; a guard on it would trace it again and again.
        leaves = [
            leaf
            for key, leaf in captures.leaves.items()
            if not is_written(leaf.path, record.places, captures.written)
            and not has_changed(leaf, record.before.get(key))
        ]
        return make_guards(leaves, constants, read)

    def call(
        self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any], record: Any = None
    ) -> Any:
        mode = config.purity
        if state.watch is not None:
            state.watch.add_arguments(function, args, kwargs)
            return function(*args, **kwargs)
        if mode == "off" or (record is None and state.clean):
            return function(*args, **kwargs)
        captures = record.captures if record is not None else examined(function, args, kwargs, (), False)
        if not captures.suspicious:
            given = Given(captures.shared) if captures.shared else None
            state.clean += 1
            try:
                result = function(*args, **kwargs)
            finally:
                state.clean -= 1
            if given is not None:
                given.compare(mode)
            return result
        watch = Watch(mode, captures)
        result = watched(watch, function, args, kwargs)
        if record is not None:
            record.places = {(found.file, found.line) for found in watch.findings}
        return result

    def values_read(self) -> None:
        for record in state.records:
            record.read = None


def watched(watch: Watch, function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a function under a watch."""
    state.watch = watch
    try:
        return watch.run(function, args, kwargs)
    finally:
        state.watch = None


_PLAIN_ARGUMENTS = (Array, int, float, complex, list, tuple, dict, type(None))
# By the id of a code, or what functions that are alike have in common: what must be kept for it, and what they read.
_known: dict[Any, tuple[Any, Captures]] = {}


def examined(
    function: Any, args: Sequence[Any], kwargs: dict[str, Any], static: Sequence[Any], guards: bool
) -> Captures:
    """What a function reads. What is known of its code is used if it read nothing but globals, which are the same; and
    where no guards are asked for, what is known of functions that are alike."""
    if kwargs or static or not all([isinstance(x, _PLAIN_ARGUMENTS) for x in args]):
        return Captures(guards).examine(function, args, kwargs, [id(x) for x in static])
    key: Any = (id(getattr(function, "__code__", None)), guards)
    known = _known.get(key)
    alike = None
    if known is None and not guards and (alike := likeness(function)) is not None:
        known = _known.get(alike[0])
    if known is not None and known[1].hold():
        return known[1]
    captures = Captures(guards).examine(function, args, kwargs, ())
    if len(_known) > 1000:
        _known.clear()
    if captures.fixed and captures.closed:
        _known[key] = (function.__code__, captures)
    elif captures.fixed and alike is not None and not (captures.suspicious or captures.shared):
        _known[alike[0]] = (alike[1], captures.without_closures())
    return captures


# -- which arrays are looked at

_plain = {"host_value": DeviceArray.host_value, "peek": DeviceArray.peek}
_observers = 0
_lock = threading.Lock()


def _noted(name: str) -> Callable:
    plain = _plain[name]

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
    watching.set_watcher(PurityWatcher())
