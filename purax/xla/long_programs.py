"""Programs that may run for long, and waiting for them so that Ctrl-C is answered.

XLA's wait cannot be left. To let another thread wait costs some 10 µs, and the cores that it takes them from; so
that is done only while a program is under way that may run for long, by an estimate of its work. Programs that the
engine takes for cheap run in the thread that calls them; if they have loops that may not end, another thread calls
them.
"""

from __future__ import annotations

import re
import time
from typing import Any

from purax.xla import interruptible_calls, jaxlib_api

SHORT, LONG, ENDLESS = "short", "long", "endless"
_LONG_WORK = 1e8  # operations of a loop; a tenth of a second for small arrays
_LONG_PRODUCTS = 1e9  # operations in straight lines, which are fast only if they are products
_LONG_KERNELS = 1 << 22  # bytes that kernels work on, whose operations nobody counts
_CHEAP = 1000  # operations up to which XLA runs a program at once
_ENDLESS_STEPS = 1e5
_MOST_TEXT = 1 << 19
# So many calls in a row that took no time are enough to believe that a program ends.
_TRIALS, _NO_TIME = 100, 1e-3
_trip_count = re.compile(r'"known_trip_count":\{"n":"(\d+)"')


def pace_of(loaded: Any, text: str, platform: str) -> str:
    """How long a compiled program may run, as far as one can tell: SHORT, LONG, or ENDLESS in the calling thread."""
    if platform != "cpu":
        return SHORT  # waiting there is always done in the same way
    try:
        operations = float(loaded.cost_analysis().get("flops", 0.0))
        if "stablehlo.while" in text:
            steps = _steps(loaded.get_hlo_text()) if len(text) < _MOST_TEXT else float("inf")
            if operations < _CHEAP:
                return ENDLESS if steps > _ENDLESS_STEPS else SHORT
            return LONG if operations * steps > _LONG_WORK else SHORT
        if operations > _LONG_PRODUCTS:
            return LONG
        if "custom_call" in text:
            memory = loaded.get_compiled_memory_stats()
            return LONG if memory.argument_size_in_bytes > _LONG_KERNELS else SHORT
    except jaxlib_api.EngineError:  # an engine that does not know it
        return LONG
    return SHORT


def _steps(text: str) -> float:
    """At most so many steps make the loops of a program, one inside of the other."""
    counts = [int(count) for count in _trip_count.findall(text)]
    if len(counts) < text.count(" while("):
        return float("inf")
    steps = 1.0
    for count in counts:
        steps *= max(count, 1)
    return steps


# Tokens of programs that were called last, until somebody has seen that they are done.
_tokens: list[Any] = []
_MOST_TOKENS = 8
_is_clearing = False


def add(token: Any) -> None:
    """Takes note of a program that may run for long."""
    _tokens.append(token)
    if len(_tokens) > _MOST_TOKENS:
        del _tokens[0]


def wait(buffer: Any) -> None:
    """Waits for a buffer of the CPU if a program is under way that may run for long; else whoever reads it waits."""
    if _tokens and interruptible_calls.is_interruptible():
        interruptible_calls.wait(buffer, _clear)


def _clear() -> None:
    """Forgets the tokens of programs that are done; one of the threads that waited does so, and only one at a time."""
    global _is_clearing
    if _is_clearing:
        return
    _is_clearing = True
    try:
        while _tokens:
            token = _tokens[0]
            try:
                token.block_until_ready()
            except (jaxlib_api.EngineError, ValueError):
                pass  # it failed, as its results say
            try:
                _tokens.remove(token)
            except ValueError:  # it was one too many
                pass
    finally:
        _is_clearing = False


def starter(execute: Any, pace: str) -> Any:
    """The function to start a program with, made of XLA's one."""
    return _Long(execute) if pace == LONG else _Trial(execute) if pace == ENDLESS else execute


class _Long:
    """Starts a program that may run for long, and takes note of it."""

    __slots__ = ("_execute",)

    def __init__(self, execute: Any):
        self._execute = execute

    def __call__(self, buffers: Any) -> Any:
        started = self._execute(buffers, with_tokens=True)
        add(started.consume_token())
        return started


class _Trial:
    """Starts a program that may never end, and that XLA would run in the calling thread."""

    __slots__ = ("_execute", "_left")

    def __init__(self, execute: Any):
        self._execute = execute
        self._left = _TRIALS

    def __call__(self, buffers: Any) -> Any:
        if not self._left or not interruptible_calls.is_interruptible():
            return self._execute(buffers)
        start = time.perf_counter()
        started = interruptible_calls.run_apart(self._execute, buffers)
        self._left = self._left - 1 if time.perf_counter() - start < _NO_TIME else _TRIALS
        return started
