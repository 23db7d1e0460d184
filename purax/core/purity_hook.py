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

    def deferred(self, function: Callable) -> None:
        """A function will be called when programs run, not while they are traced."""

    def origins(self, function: Callable) -> Sequence[Any]:
        """The traces that are being made, to which a rule with the given function belongs from now on."""
        return ()

    def run_rule(self, origins: Sequence[Any], run: Callable[[], Any]) -> Any:
        """Runs a rule that belongs to traces of before: what it changes, the traced functions changed themselves."""
        return run()

    def run_lowering(self, guards: Any, run: Callable[[], Any]) -> Any:
        """Lowers a program: what rules for that change, the function with these guards changed itself."""
        return run()

    def values_read(self) -> None:
        """Values of captured arrays may decide what the function does from here on."""


class _Installed:
    watcher = Watcher()


installed = _Installed()


def set_watcher(watcher: Watcher) -> None:
    """Installs who watches."""
    installed.watcher = watcher


def origins(function: Callable) -> Sequence[Any]:
    """The traces that are being made, for a rule that may run after them."""
    return installed.watcher.origins(function)


def run_rule(origins: Sequence[Any], run: Callable[[], Any]) -> Any:
    """Runs a rule of a function that was traced, watched; `origins` are those of its making."""
    return installed.watcher.run_rule(origins, run) if origins else run()


def run_lowering(guards: Any, run: Callable[[], Any]) -> Any:
    """Lowers a program with operations of the user's, watched; `guards` are those of the program."""
    return run() if guards is None else installed.watcher.run_lowering(guards, run)


def call(function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls a user's function with traced arguments, watched."""
    return installed.watcher.call(function, args, kwargs)
