"""Where the time of first calls goes: what tracing, analysis, hashing, passes, lowering, XLA and the disk take.

Whoever does such work says so with `phase`; a phase inside of another one is not counted in that. Nothing is measured
until somebody listens. The seconds of a program are those of this thread since the program before it was finished.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

PHASES = ("tracing", "analysis", "hashing", "passes", "lowering", "XLA", "loading", "storing")
_NOTHING = contextlib.nullcontext()


class _State(threading.local):
    """Of this thread: the phases that are open, innermost last, and the seconds of the program being made."""

    def __init__(self) -> None:
        self.inner: list[float] = []  # of each open phase, the seconds spent in phases inside of it
        self.seconds: defaultdict[str, float] = defaultdict(float)


_state = _State()
_listeners: list[Callable[[str, dict[str, float]], Any]] = []


class _Phase:
    """Measures a block of code."""

    __slots__ = ("_name", "_start")

    def __init__(self, name: str):
        self._name = name

    def __enter__(self) -> None:
        _state.inner.append(0.0)
        self._start = time.perf_counter()

    def __exit__(self, *_: Any) -> None:
        taken = time.perf_counter() - self._start
        inner = _state.inner.pop() if _state.inner else 0.0
        _state.seconds[self._name] += taken - inner
        if _state.inner:
            _state.inner[-1] += taken


def phase(name: str) -> Any:
    """A context manager whose block belongs to a phase."""
    return _Phase(name) if _listeners else _NOTHING


def measured(name: str) -> Callable[[Callable], Callable]:
    """A decorator for functions that belong to a phase."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not _listeners:
                return function(*args, **kwargs)
            with _Phase(name):
                return function(*args, **kwargs)

        return call

    return decorate


def finish(program: str) -> None:
    """A program is ready to run: those who listen are told its name and the seconds of each phase."""
    if _listeners and not _state.inner:
        seconds = {name: _state.seconds[name] for name in PHASES if _state.seconds[name]}
        _state.seconds.clear()
        for listener in dict.fromkeys(_listeners):  # several threads may listen in the same way
            listener(program, seconds)


@contextlib.contextmanager
def listening(listener: Callable[[str, dict[str, float]], Any]) -> Any:
    """Calls `listener` with each program that is made, and the seconds of its phases.

    >>> made = []
    >>> with listening(lambda program, seconds: made.append((program, list(seconds)))):
    ...     with phase("tracing"):
    ...         pass
    ...     finish("a program")
    >>> made
    [('a program', ['tracing'])]
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def described(seconds: dict[str, float]) -> str:
    """Phases in a line of text.

    >>> described({"tracing": 0.0012, "XLA": 0.25})
    'tracing 1.2 ms, XLA 250.0 ms'
    """
    return ", ".join([f"{name} {1e3 * taken:.1f} ms" for name, taken in seconds.items()])


class Totals:
    """Adds up the phases of all programs, for a report."""

    def __init__(self) -> None:
        self.programs: list[tuple[str, dict[str, float]]] = []

    def __call__(self, program: str, seconds: dict[str, float]) -> None:
        self.programs.append((program, seconds))

    def report(self, most: int = 10) -> str:
        """A table of the phases, and of the programs that took longest."""
        sums: Counter[str] = Counter()
        for _, seconds in self.programs:
            sums.update(seconds)
        total = sum(sums.values())
        count = len(self.programs)
        lines = [f"{count} program{'s' * (count != 1)} made in {total:.3f} s"]
        lines += [f"  {name:9}{sums[name]:9.3f} s {sums[name] / total:6.1%}" for name in PHASES if sums[name]]
        dearest = sorted(self.programs, key=lambda each: -sum(each[1].values()))[:most]
        if dearest:
            lines.append("longest:" if len(self.programs) > most else "each:")
        lines += [
            f"  {sum(seconds.values()):9.3f} s  {program}: {described(seconds)}"
            for program, seconds in dearest
        ]
        return "\n".join(lines)
