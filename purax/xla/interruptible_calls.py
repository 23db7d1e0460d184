"""Long calls of XLA: they can be left by an interrupt, and outlive the interpreter, without harm.

XLA compiles on threads of its own, and its wait answers signals: an interrupt leaves it while the compiler still
reads what the call has taken with it, the program that was parsed from its text. So the main thread, the only one
that Python hands signals to, never makes such a call itself. It lets another thread do it, and waits for that; what was
interrupted is finished there, and dropped. So it is with waiting for results, and with programs that may run forever
in the thread that calls them.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from purax.xla import jaxlib_api

try:
    from purax.xla import _parking as parking  # type: ignore[attr-defined]
except ImportError:  # not compiled
    parking = None

if parking is not None:
    is_pending: Callable[[Any], bool] = parking.is_pending
else:

    def is_pending(buffer: Any) -> bool:
        """Whether a buffer is there, or will be, and is not ready; XLA dies if asked of a deleted one."""
        return not buffer.is_deleted() and not buffer.is_ready()


_POLL_SECONDS = 0.5  # of systems on which a signal does not end a wait
_running: set[object] = set()


class _Call:
    """A call that another thread makes, and what comes of it."""

    __slots__ = ("arguments", "done", "error", "function", "result", "then")

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], then: Callable[[], None] | None
    ):
        self.then = then
        self.function: Any = function
        self.arguments: Any = arguments
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = _thread.allocate_lock()
        self.done.acquire()

    def make(self) -> None:
        try:
            self.result = _run(self.function, self.arguments)
        except BaseException as error:
            self.error = error
        # Whoever waits may ask whether somebody else holds what it gave.
        self.function = self.arguments = None


class _Worker:
    """A thread that makes calls, one after the other, and goes back to those that are free after each."""

    __slots__ = ("call", "wake")

    def __init__(self) -> None:
        self.call: _Call | None = None
        self.wake = _thread.allocate_lock()
        self.wake.acquire()
        _thread.start_new_thread(self.work, ())

    def work(self) -> None:
        while True:
            self.wake.acquire()
            call, self.call = self.call, None
            if call is None:
                continue
            call.make()
            then = call.then
            if then is None:
                _free.append(self)
            call.done.release()
            del call
            if then is not None:
                then()
                _free.append(self)


_free: list[_Worker] = []
_main = threading.main_thread().ident
_has_ended = False


def is_interruptible() -> bool:
    """Whether this is the thread that signals are handled in, while others can still work for it."""
    return _thread.get_ident() == _main and not _has_ended


def run_apart(function: Callable[..., Any], *arguments: Any, then: Callable[[], None] | None = None) -> Any:
    """Calls `function`, which calls XLA, so that an interrupt of the main thread is answered at once.

    Whatever the call uses must be among the arguments, which are kept until it is done. The other thread calls `then`
    afterwards, which nobody waits for.
    """
    if not is_interruptible():
        return _run(function, arguments)
    call = _Call(function, arguments, then)
    try:
        worker = _free.pop() if _free else _Worker()
    except RuntimeError:  # the interpreter ends, and starts no thread any more
        return _run(function, arguments)
    worker.call = call
    worker.wake.release()
    while not call.done.acquire(timeout=_POLL_SECONDS):
        pass
    if call.error is None:
        return call.result
    try:
        raise call.error
    finally:
        call.error = None  # its traceback holds this frame


def wait(buffer: Any, then: Callable[[], None] | None = None) -> None:
    """Waits for a buffer, or the token of a program; in the main thread so that an interrupt is answered at once."""
    try:
        run_apart(_wait, buffer, then=then)
    except (jaxlib_api.EngineError, ValueError):
        raise
    except BaseException:
        # On the CPU a program begins after the one that its thread called before, unless its stream is another.
        jaxlib_api.set_stream(jaxlib_api.get_stream() + 1)
        raise


def _wait(buffer: Any) -> None:
    buffer.block_until_ready()


def _run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    call = object()
    _running.add(call)
    if parking is not None:
        parking.count_call(1)
    try:
        return function(*arguments)
    finally:
        if parking is not None:
            parking.count_call(-1)
        _running.discard(call)


def park_aborts() -> None:
    """Lets threads that XLA aborts in wait for news of a loss, which this process then ends with."""
    if parking is not None:
        parking.park_aborts()


def note_loss() -> None:
    """There is such news."""
    if parking is not None:
        parking.note_loss()


def survive_loss() -> None:
    """This process goes on without the member that is lost; threads that XLA aborted in stay where they are."""
    if parking is not None:
        parking.survive_loss()


def _at_exit() -> None:
    """Threads may be inside XLA, and stay there: they must not come back to an interpreter that is gone."""
    global _has_ended
    _has_ended = True
    if parking is None or not parking.park_threads():
        while _running:
            time.sleep(0.01)


atexit.register(_at_exit)


def _after_fork() -> None:
    """A copy of a process has one thread, which is its main one; what others were calling is not under way in it."""
    global _main
    _main = _thread.get_ident()
    _free.clear()
    if parking is not None:
        parking.count_call(-len(_running))
    _running.clear()


os.register_at_fork(after_in_child=_after_fork)
