"""What a process of `make fuzz` is doing: the program that it tries, and how many were tried with which outcome.

The program is kept in a file, if there is one, so that a process that dies leaves it behind.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

counts: Counter[str] = Counter()
tried: list[str] = [""]  # the program that runs now
_file: list[int] = []
_LONGEST = 1 << 20


def keep_in(path: str) -> None:
    """From now on, the program that is being tried stands in a file."""
    _file[:] = [os.open(path, os.O_CREAT | os.O_RDWR, 0o600)]


def trying(program: str) -> None:
    """Says which program runs next."""
    tried[0] = program
    if _file:
        text = program.encode(errors="replace")[:_LONGEST]
        os.pwrite(_file[0], text, 0)
        os.ftruncate(_file[0], len(text))


def count(outcome: str) -> None:
    """Counts a program that is no failure and was not compared either, by its outcome."""
    counts[outcome] += 1


class TooLong(BaseException):
    """Raised in a program that runs for longer than it may; no program catches it."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Cuts what takes longer: by `TooLong`, or, where Python has nothing to say for twice as long, with the process."""
    if threading.current_thread() is not threading.main_thread() or any(signal.getitimer(signal.ITIMER_REAL)):
        yield  # another one keeps the time
        return

    def cut(*_: Any) -> None:
        raise TooLong

    previous = signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(3 * seconds, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, previous)
