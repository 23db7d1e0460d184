"""`eqn.source_info`: where an equation was written and in which `named_scope`s, as JAX says it."""

from __future__ import annotations

from typing import Any, NamedTuple

from purax.core.jaxpr import JaxprEqn
from purax.core.source import Location


class Frame(NamedTuple):
    """A line of the user's code, by the names that jaxlib's frames have."""

    file_name: str
    function_name: str
    line_num: int


class Traceback(NamedTuple):
    """The lines that led to an equation: the user's line, which is the one that is kept."""

    frames: list[Frame]


class NameStack(NamedTuple):
    """The scopes that were open, outermost first; as text they are joined by `/`."""

    stack: tuple[str, ...] = ()

    def extend(self, name: str) -> NameStack:
        """The scopes with one more inside."""
        return NameStack((*self.stack, name))

    def __add__(self, other: Any) -> NameStack:
        return NameStack((*self.stack, *other.stack))

    def __str__(self) -> str:
        return "/".join(self.stack)


class SourceInfo(NamedTuple):
    """Where an equation comes from.

    Attributes:
        location: the user's line, or None if the equation was made without one.
        name_stack: the scopes that were open there.
    """

    location: Location | None
    name_stack: NameStack = NameStack()

    @property
    def traceback(self) -> Traceback | None:
        """The user's line as jaxlib's tracebacks say it, or None where none is known."""
        where = self.location
        return None if where is None else Traceback([Frame(where.file, where.function, where.line)])

    def replace(self, **changes: Any) -> SourceInfo:
        """A copy with other attributes."""
        return self._replace(**changes)

    def __str__(self) -> str:
        return "<unknown>" if self.location is None else str(self.location)


def source_info(equation: JaxprEqn) -> SourceInfo:
    """Where `equation` comes from."""
    return SourceInfo(equation.source, NameStack(tuple(filter(None, equation.scope.split("/")))))


def place_of(info: Any) -> tuple[Location | None, str]:
    """The user's line and the scopes, as `JaxprEqn` keeps them, of what a program passes as `source_info`."""
    return (info.location, str(info.name_stack)) if isinstance(info, SourceInfo) else (info, "")
