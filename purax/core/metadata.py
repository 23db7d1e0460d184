"""Attributes for the compiler on the operations that a block of code records, as `set_xla_metadata` gives them.

They travel in the scope of an equation, as one component that begins with a character which no name has; so whatever
keeps scopes keeps them. They count in the identity of a program, which names do not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from purax.core.source import located, names
from purax.errors import shown

MARK = "\x1f"
_SLASH = "\x1e"  # stands for the slash, which divides scopes

Metadata = tuple[tuple[str, str], ...]


def metadata_of(pairs: Mapping[str, Any], caller: str) -> Metadata:
    """Names and values as attributes: strings, with numbers and bools written as text.

    Args:
        pairs: the values by name.
        caller: the function that was given them, for messages.
    """
    found = []
    for name, value in pairs.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            raise located(
                TypeError,
                f"{caller}: the value of {shown(name)} must be a string, a number or a bool, got {shown(value)}",
            )
        found.append((name, str(value)))
    return tuple(found)


def attribute_text(metadata: Metadata) -> str:
    """Metadata as StableHLO has it: `mhlo.frontend_attributes = {a = "1"}`."""
    fields = ", ".join(f"{_key(name)} = {json.dumps(value)}" for name, value in metadata)
    return f"mhlo.frontend_attributes = {{{fields}}}"


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name)


@contextmanager
def metadata_scope(metadata: Metadata) -> Iterator[None]:
    """Gives the equations recorded in the `with` block attributes."""
    previous = names.scope
    entry = MARK + json.dumps(metadata).replace("/", _SLASH)
    names.scope = f"{previous}/{entry}" if previous else entry
    try:
        yield
    finally:
        names.scope = previous


def split_scope(scope: str) -> tuple[str, Metadata]:
    """The names of a scope, and the metadata in it; inner values stand for outer ones of the same name."""
    plain, found = [], {}
    for part in scope.split("/"):
        if part.startswith(MARK):
            found.update(json.loads(part[1:].replace(_SLASH, "/")))
        else:
            plain.append(part)
    return "/".join(plain), tuple(found.items())


def annotated(line: str, metadata: Metadata) -> str:
    """A line of StableHLO with attributes added to its operation; lines of other kinds are left as they are."""
    head, found, types = line.rpartition(" : (")
    if not found or line.lstrip().startswith(("}", "^")) or "mhlo.frontend_attributes" in head:
        return line
    if head.endswith("}") and not head.endswith(("}>", "})")):
        return f"{head[:-1]}, {attribute_text(metadata)}}}{found}{types}"
    return f"{head} {{{attribute_text(metadata)}}}{found}{types}"
