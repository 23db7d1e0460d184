"""`Error`: what went wrong in a function under `checkify`, as a value that transformations carry along.

It holds a number, 0 for no error or that of the check that failed first, and the values that its message shows; the
checks themselves are known when the function is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.limits import finite
from purax.core.source import Location
from purax.interpreters.arguments import to_array
from purax.tree.registry import tree_unflatten
from purax.tree_util import register_pytree_node_class


class JaxRuntimeError(ValueError):
    """A check failed."""


class ErrorCategory(JaxRuntimeError):
    """The base of the kinds of errors that can be looked for."""


class FailedCheckError(ErrorCategory):
    """A `check` of the user's failed."""


class NaNError(ErrorCategory):
    """An operation made a NaN."""


class DivisionByZeroError(ErrorCategory):
    """A division by zero."""


class OOBError(ErrorCategory):
    """An index out of bounds."""


user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Check:
    """One thing that can go wrong.

    Attributes:
        category: the kind of error.
        message: with places for the values, as for `str.format`.
        tree: the structure (args, kwargs) of the values.
        location: the user's line.
        count: how many values the message shows.
        wrap: for each value its dtype if that is an extended one; such values travel as their words.
    """

    __slots__ = ("category", "count", "location", "message", "tree", "wrap")

    def __init__(
        self,
        category: type[ErrorCategory],
        message: str,
        tree: Any,
        count: int,
        location: Location | None,
        wrap: Sequence[Any] = (),
    ):
        self.category = category
        self.message = message
        self.tree = tree
        self.count = count
        self.location = location
        self.wrap = tuple(wrap) or (None,) * count

    def text(self, values: Sequence[Any]) -> str:
        """The message, with the values and the user's line."""
        shown = [
            to_array(x) if dtype is None else dtype.wrap(to_array(x))
            for x, dtype in zip(values, self.wrap, strict=True)
        ]
        args, kwargs = tree_unflatten(self.tree, shown)
        text = self.message.format(*args, **kwargs)
        if self.category is FailedCheckError:
            text += " (`check` failed)"
        if self.location is None:
            return text
        line = f": {self.location.text}" if self.location.text else ""
        return f"{text}\n  at {self.location}{line}"


class Ledger:
    """The checks of a function, numbered from 1; and where the values of each lie among those of the error."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.starts: list[int] = []
        self.size = 0

    def add(self, check: Check) -> None:
        self.checks.append(check)
        self.starts.append(self.size)
        self.size += check.count


@register_pytree_node_class
class Error:
    """The first error of a function under `checkify`, if there was one.

    >>> from purax.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "x must be positive, got {}", x)
    ...     return x
    >>> error, _ = checkify.checkify(f)(-1.0)
    >>> error.throw()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    purax.experimental.checkify.errors.JaxRuntimeError: x must be positive, got -1.0 (`check` failed)
      at ...
    """

    def __init__(self, code: Any, values: Sequence[Any], ledger: Ledger):
        self._code = code
        self._values = tuple(finite(values))
        self._ledger = ledger

    def tree_flatten(self):
        return (self._code, self._values), self._ledger

    @classmethod
    def tree_unflatten(cls, ledger, children):
        code, values = children
        return cls(code, values, ledger)

    def get(self) -> str | None:
        """The message of the error, or None if all went well; for a batch, the messages with their indices."""
        code = np.asarray(self._code)
        if not code.any():
            return None
        if code.ndim == 0:
            return self._text(int(code), [np.asarray(x) for x in self._values])
        lines = []
        for index in np.argwhere(code):
            place = tuple(int(i) for i in index)
            values = [np.asarray(x)[place] for x in self._values]
            shown = place[0] if len(place) == 1 else place
            lines.append(f"at mapped index {shown}: {self._text(int(code[place]), values)}")
        return "\n".join(lines)

    def _text(self, code: int, values: Sequence[np.ndarray]) -> str:
        check, start = self._ledger.checks[code - 1], self._ledger.starts[code - 1]
        return check.text(values[start : start + check.count])

    def get_exception(self) -> JaxRuntimeError | None:
        """The error as an exception of its category, or None."""
        message = self.get()
        if message is None:
            return None
        code = np.asarray(self._code)
        return self._ledger.checks[int(code[code != 0].flat[0]) - 1].category(message)

    def throw(self) -> None:
        """Raises `JaxRuntimeError` if there was an error."""
        message = self.get()
        if message is not None:
            raise JaxRuntimeError(message)

    def __repr__(self) -> str:
        try:
            return f"Error({self.get()})"
        except Exception:  # a traced one
            return "Error(traced)"


def init_error() -> Error:
    """The error of a function in which nothing went wrong."""
    return Error(np.zeros((), np.int32), (), Ledger())
