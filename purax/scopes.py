"""Context managers that an interrupt cannot leave half entered or half left.

`scoped` is `contextlib.contextmanager` for generators that restore what they changed in a `finally`, `Scope` is the
base of classes with `enter` and `leave`, and `Assigned` gives an attribute another value. They are in C, since a
handler of a signal may raise at the beginning of a Python function, and so before an `__exit__` in Python has done
anything; without a compiler that much is possible.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

try:
    native: Any = importlib.import_module("purax._scopes")
except ImportError:  # not compiled
    native = None

P = ParamSpec("P")
T = TypeVar("T")


class Scope:
    """A context manager with two methods, each given a list that is empty at first.

    `enter(entry)` puts into the list what `leave(entry)` needs, before it changes anything, and returns what `with`
    gives. `leave` gets an empty list if it is called for `with`, and finds out itself what to leave. It is called again
    with the same list if it was interrupted, so that doing it twice must be as good as once.
    """

    __slots__ = ()

    def __enter__(self) -> Any:
        entry: list[Any] = []
        try:
            return self.enter(entry)
        except BaseException:
            if entry:
                self.leave(entry)
            raise

    def __exit__(self, *error: Any) -> None:
        entry: list[Any] = []
        try:
            self.leave(entry)
        except BaseException:
            self.leave(entry)
            raise

    def enter(self, entry: list[Any]) -> Any:
        raise NotImplementedError

    def leave(self, entry: list[Any]) -> None:
        raise NotImplementedError


class Assigned:
    """`with Assigned(object, name, value):` gives an attribute another value."""

    __slots__ = ("_name", "_object", "_previous", "_value")

    def __init__(self, object: Any, name: str, value: Any) -> None:
        self._object, self._name, self._value = object, name, value

    def __enter__(self) -> Any:
        self._previous = getattr(self._object, self._name)
        setattr(self._object, self._name, self._value)
        return self._value

    def __exit__(self, *error: Any) -> None:
        setattr(self._object, self._name, self._previous)


_Steps: Any = object
if native is not None and not TYPE_CHECKING:
    Scope, Assigned, _Steps = native.Scope, native.Assigned, native.Steps


class Scoped(_Steps):
    """The context manager that a function made by `scoped` returns; it can decorate functions, too."""

    __slots__ = ("_again",)

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        super().__init__(make())
        self._again = make

    def __call__(self, function: Callable[P, Any]) -> Callable[P, Any]:
        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> Any:
            with Scoped(self._again):
                return function(*args, **kwargs)

        return inside


def scoped(function: Callable[P, Iterator[T]]) -> Callable[P, Any]:
    """Makes a context manager of a generator function, whose `try: yield` must be followed by a `finally`.

    >>> @scoped
    ... def shown(text):
    ...     print("<", text)
    ...     try:
    ...         yield
    ...     finally:
    ...         print(">")
    >>> with shown("a"):
    ...     print("b")
    < a
    b
    >
    """

    if native is None:
        return contextlib.contextmanager(function)

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> Any:
        return Scoped(functools.partial(function, *args, **kwargs))

    return make
