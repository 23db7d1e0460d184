"""What a process of `make fuzz` is doing: the program that it tries, and how many were tried with which outcome.

The program is kept in a file, if there is one, so that a process that dies leaves it behind.
"""

from __future__ import annotations

import os
from collections import Counter

counts: Counter[str] = Counter()
_file: list[int] = []
_LONGEST = 1 << 20


def keep_in(path: str) -> None:
    """From now on, the program that is being tried stands in a file."""
    _file[:] = [os.open(path, os.O_CREAT | os.O_RDWR, 0o600)]


def trying(program: str) -> None:
    """Says which program runs next."""
    if _file:
        text = program.encode(errors="replace")[:_LONGEST]
        os.pwrite(_file[0], text, 0)
        os.ftruncate(_file[0], len(text))


def count(outcome: str) -> None:
    """Counts a program that is no failure and was not compared either, by its outcome."""
    counts[outcome] += 1
