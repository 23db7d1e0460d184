"""`jax.extend.source_info_util`: the user's line that is running, and the scopes that are open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from purax.compat.equation_source import NameStack, SourceInfo
from purax.core.source import exclude, named_scope, names, user_location

__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "transform_name_stack",
    "user_context",
]


def register_exclusion(path: str) -> None:
    """Lets the lines of a file not count as the user's."""
    exclude(path)


def current_name_stack() -> NameStack:
    """The scopes that are open."""
    return NameStack(tuple(filter(None, names.scope.split("/"))))


def current() -> SourceInfo:
    """The user's line that is running, and the scopes that are open."""
    return SourceInfo(user_location(), current_name_stack())


def new_source_info() -> SourceInfo:
    """No line, and no scopes."""
    return SourceInfo(None)


def new_name_stack(name: str = "") -> NameStack:
    """One scope, or none."""
    return NameStack((name,) if name else ())


extend_name_stack = named_scope


@contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """A context in which the scopes are others."""
    before = names.scope
    names.scope = str(name_stack)
    try:
        yield
    finally:
        names.scope = before


def reset_name_stack() -> Any:
    """A context in which no scope is open."""
    return set_name_stack(NameStack())


def transform_name_stack(name: str) -> Any:
    """A context in which the scopes say that a transformation is under way."""
    inner = str(current_name_stack())
    return set_name_stack(NameStack((f"{name}({inner})",)))


@contextmanager
def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """A context in which the scopes are those that an equation was made in; lines stay those that run.

    Args:
        traceback: where the equation was made.
        name_stack: the scopes; those that are open if left out.
    """
    with set_name_stack(current_name_stack() if name_stack is None else name_stack):
        yield


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """A line of the user's code, as text."""
    return str(source_info)
