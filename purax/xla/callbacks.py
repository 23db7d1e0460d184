"""XLA's side of calling Python from a compiled program.

An `EngineCallback` is what XLA calls: it sees to it that a callback computes on the host (XLA's
threads may all be waiting for it), checks what it returns, since XLA copies it as it is, and keeps the
exception that it raised, which XLA knows only as text. Programs with effects leave a token here that
`effects_barrier` waits for.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import re
import threading
import time
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.errors import JaxRuntimeError
from purax.xla import interruptible_calls, jaxlib_api

# How long code in a callback may wait for an array that is still being computed, perhaps by the program that waits for
# the callback.
WAIT_SECONDS = 10.0
_MAX_PENDING = 256
_MAX_FAILURES = 256


class Inside(threading.local):
    """How many callbacks of compiled programs this thread is in."""

    depth = 0


inside = Inside()
_failures: OrderedDict[int, BaseException] = OrderedDict()
_numbers = itertools.count()
_mark = re.compile(r"purax callback failure (\d+)")
_pending: deque[Any] = deque()
_ordered: deque[Any] = deque()
# Exceptions of callbacks of programs on several devices, which the other devices must not wait for without end; they
# are raised where somebody next waits for a result.
late: list[tuple[Any, BaseException]] = []
# Whether the text of a callback's exception says its kind, which libraries written for JAX tell their own by.
names_kinds = False


class CallbackFailure(Exception):
    """What XLA is told of an exception in a callback: a number that the exception is found by."""

    def __init__(self, error: BaseException):
        number = next(_numbers)
        _failures[number] = as_runtime_error(error)
        while len(_failures) > _MAX_FAILURES:
            _failures.popitem(last=False)
        super().__init__(f"purax callback failure {number}")


class EngineCallback:
    """A Python function as XLA calls it, with NumPy arrays, from one of its threads.

    Arguments:
        function: takes NumPy arrays and returns a sequence of arrays.
        avals: the types of its results.
        around: a context manager factory; callbacks run inside of it.
        goes_on: whether the program must go on after a failure, with zeros.
    """

    __slots__ = ("around", "avals", "function", "goes_on")

    def __init__(
        self,
        function: Callable[..., Sequence[Any]],
        avals: Sequence[Any],
        around: Callable[[], Any],
        goes_on: bool = False,
    ):
        self.goes_on = goes_on
        self.function = function
        self.avals = tuple(avals)
        self.around = around

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        inside.depth += 1
        try:
            with self.around():
                results = self.function(*arrays)
            # XLA copies as many bytes as it expects, whatever it is given.
            for value, aval in zip(results, self.avals, strict=True):
                if value.shape != aval.shape or value.dtype != aval.dtype:
                    raise TypeError(f"a callback returned {value.dtype}{list(value.shape)} for {aval}")
            return tuple(np.ascontiguousarray(value).reshape(value.shape) for value in results)
        except BaseException as error:
            if not self.goes_on:
                raise CallbackFailure(error) from None
            late.append((self, as_runtime_error(error)))
            return tuple(np.zeros(aval.shape, aval.dtype) for aval in self.avals)
        finally:
            inside.depth -= 1


def as_runtime_error(error: BaseException) -> BaseException:
    """The exception of a callback, that it may also be caught as what an engine raises, `JaxRuntimeError`."""
    kind = type(error)
    if not isinstance(error, Exception) or isinstance(error, JaxRuntimeError):
        return error
    try:
        body: dict[str, Any] = {"__module__": kind.__module__}
        # Where it is unpickled, the class is that of the callback's exception: the one made here has no name.
        body["__reduce__"] = lambda self: (_unpickled, (kind, self.args, vars(self)))
        if names_kinds:
            text = f"INTERNAL: a callback raised {kind.__module__}.{kind.__qualname__}: {error}"
            body["__str__"] = lambda self: text
        both = type(kind.__name__, (kind, JaxRuntimeError), body)
        copy = both.__new__(both, *error.args)
        copy.args = error.args
        vars(copy).update(vars(error))
    except TypeError:  # a class that cannot be derived from, or made so
        return error
    copy.__cause__, copy.__context__ = error.__cause__, error.__context__
    copy.__suppress_context__ = error.__suppress_context__
    return copy.with_traceback(error.__traceback__)


def _unpickled(kind: type[Exception], args: tuple, state: dict[str, Any]) -> BaseException:
    """An exception of a callback that was pickled."""
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return as_runtime_error(error)


def original_failure(error: BaseException) -> BaseException | None:
    """The exception that a callback raised, if that is what an error of XLA is about."""
    found = _mark.search(str(error))
    return _failures.get(int(found[1])) if found is not None else None


def raise_late() -> None:
    """Raises the exception of a callback of a program on several devices, once, on however many of them it failed."""
    if late and not inside.depth:
        callback, error = late[0]
        while _pending:  # other devices may be about to call it
            _wait(_pending)
        late[:] = [(other, e) for other, e in late if other is not callback]
        mark_reported(error)
        with contextlib.suppress(AttributeError):
            error._purax_late = True  # type: ignore[attr-defined]
        raise error


def keep_late(error: BaseException) -> None:
    """Lets an error of `raise_late`, which its reader does not show to anybody, be raised for the next one."""
    if getattr(error, "_purax_late", False):
        late.insert(0, (None, error))


def wait_inside(is_ready: Callable[[], bool], what: str) -> None:
    """Waits for something of XLA's while in a callback, but not forever: XLA may wait for that."""
    limit = time.monotonic() + WAIT_SECONDS
    while not is_ready():
        if time.monotonic() > limit:
            raise RuntimeError(
                f"a callback waited {WAIT_SECONDS:.0f} s for {what}, which is still being computed, perhaps by "
                "the very "
                "program that waits for this callback. Pass the array to the callback as an argument, or compute it "
                "before the program is called."
            )
        time.sleep(0.001)


def add_token(token: Any, ordered: bool) -> None:
    """Takes note of a program with effects that was started."""
    if ordered:
        _ordered.append(token)
    _pending.append(token)
    while len(_pending) > _MAX_PENDING and not inside.depth:
        _wait(_pending)


def wait_for_ordered() -> None:
    """Waits until earlier programs with ordered effects have had them; inside a callback there is nothing to do."""
    while _ordered and not inside.depth:
        _wait(_ordered)


def _wait(tokens: deque[Any]) -> None:
    """Waits for the first of `tokens`, which stays there until its program is done, whatever ends the wait."""
    try:
        token = tokens[0]
    except IndexError:  # another thread waited for it
        return
    try:
        interruptible_calls.wait(token)
        _discard(tokens, token)
    except (jaxlib_api.EngineError, ValueError) as error:
        _discard(tokens, token)
        original = original_failure(error)
        if original is None:
            raise
        # A failure is reported once: by the call, by what was waited for, or here.
        if not is_reported(original):
            mark_reported(original)
            raise original from None


def _discard(tokens: deque[Any], token: Any) -> None:
    with contextlib.suppress(ValueError):  # another thread waited for it, too
        tokens.remove(token)


def mark_reported(error: BaseException) -> None:
    """Takes note that the user has seen the exception of a callback."""
    with contextlib.suppress(AttributeError):
        error._purax_reported = True  # type: ignore[attr-defined]


def is_reported(error: BaseException) -> bool:
    """Whether `error` is the exception of a callback that the user has seen."""
    return getattr(error, "_purax_reported", False)


def effects_barrier() -> None:
    """Waits until everything that was called has had its effects: callbacks have run, and printing is done.

    Raises what a callback raised, unless that was raised elsewhere before.

    >>> import purax as px
    >>> px.jit(lambda x: px.debug.print("x = {}", x))(1.0)
    x = 1.0
    >>> px.effects_barrier()
    """
    if inside.depth:
        raise RuntimeError(
            "effects_barrier() was called in a callback of a compiled program, which it would wait for without "
            "end; call "
            "it outside"
        )
    while _pending:
        _wait(_pending)
    _ordered.clear()
    raise_late()


def _at_exit() -> None:
    """Waits for what was started so far; threads that go on starting programs are not waited for without end."""
    for wait in [_wait_for_one] * len(_pending) + [raise_late] * len(late):
        try:
            wait()
        except BaseException:
            traceback.print_exc()


def _wait_for_one() -> None:
    _wait(_pending)


atexit.register(_at_exit)
