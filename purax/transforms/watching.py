"""Where user functions are called while they are traced: the place that `purax.purity` watches.

Without it installed, functions are simply called. `purax.purity.watcher` installs itself with `set_watcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Watcher:
    """Watches user functions being traced; this one does nothing."""

    def begin(
        self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any], static: Sequence[Any]
    ) -> Any:
        """A function is about to be traced, to be run many times; the record goes to `call` and `guards`."""
        return None

    def call(
        self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any], record: Any = None
    ) -> Any:
        """Calls a function with traced arguments."""
        return function(*args, **kwargs)

    def guards(self, record: Any, constants: Sequence[Any]) -> Any:
        """What must still hold when the traced program, which captured `constants`, is used again, or None.

        It has a function `check` that gives the captured arrays as they are at the time, or None if something
        changed, and a method `changes` that says what.
        """
        return None

    def end(self, record: Any) -> None:
        """The function has been traced, or failed."""

    def values_read(self) -> None:
        """Values of captured arrays may decide what the function does from here on."""


class _Installed:
    watcher = Watcher()


installed = _Installed()


def set_watcher(watcher: Watcher) -> None:
    """Installs who watches."""
    installed.watcher = watcher


def call(function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a user's function with traced arguments, watched."""
    return installed.watcher.call(function, args, kwargs)
