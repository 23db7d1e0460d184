"""`Memo`, a dictionary of what can be computed again.

It forgets everything when it has become too large, and when there are too many types of arrays (`avals.let_go`):
what is remembered by the type of an array keeps the type alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST = 4096


class Memo(dict[K, V]):
    """A dictionary that empties itself before it gets more than `most` items.

    >>> squares = Memo(2)
    >>> for i in range(3):
    ...     squares[i] = i * i
    >>> squares
    {2: 4}
    """

    __slots__ = ("__weakref__", "most")

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        _memos.append(weakref.ref(self))

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)

    def __reduce__(self) -> Any:
        raise TypeError("what is remembered belongs to this process")


_memos: list[weakref.ref[Memo]] = []
on_forget: list[Callable[[], Any]] = []  # called as well, for what is remembered elsewhere


def forget_all() -> None:
    """Empties all of them."""
    for reference in _memos:
        memo = reference()
        if memo is not None:
            memo.clear()
    for forget in on_forget:
        forget()
