"""An object that a function can reach, with what was in it when it was found."""

from __future__ import annotations

import types
from typing import Any

from purax.purity.contents import Contents, Reader, read_function, read_namespace


class Node:
    """An object that a function can reach, and what was in it.

    Attributes:
        value: the object.
        kind: its class when it was found.
        reader: how it is read (`contents`).
        names: of the attributes that count; None if all do.
        state: what was in it.
        seen: how many names there were when it was read.
        code: that mentions it first.
        is_argument: whether it is part of an argument, which is a copy that only the function sees.
        is_library: whether it is a container that something of a library holds.
    """

    __slots__ = (
        "_name",
        "code",
        "is_argument",
        "is_library",
        "kind",
        "names",
        "reader",
        "seen",
        "state",
        "value",
    )

    def __init__(
        self,
        value: Any,
        reader: Reader,
        names: Any,
        name: Any,
        code: Any,
        is_argument: bool,
        state: Any = None,
    ):
        self.value = value
        self.kind = type(value)
        self.reader = reader
        self.names = names
        self._name = name  # or the node that holds it, and the key; few are ever told
        self.code = code
        self.is_argument = is_argument
        self.is_library = False
        self.state: Contents = reader(value, names) if state is None else state
        self.seen = 0 if names is None else len(names)  # of the names, which only become more

    @property
    def name(self) -> str:
        """How messages call it."""
        if type(self._name) is tuple:
            holder, key = self._name
            self._name = f"{holder.name}[{key[0]}]" if type(key) is list else holder.text(key)
        return self._name

    def settle_name(self) -> None:
        """Makes the name, so that what holds the object is not kept alive for it."""
        self._name = self.name

    def read(self) -> Contents:
        """What is in it now."""
        return self.reader(self.value, self.names)

    def without_state(self) -> Node:
        """The same, which keeps nothing alive but the object."""
        node = Node(
            self.value, self.reader, self.names, self.name, self.code, self.is_argument, (None, [], [])
        )
        node.is_library = self.is_library
        return node

    def text(self, key: Any) -> str:
        """How messages call a part of it."""
        if self.reader is read_namespace:
            return str(key)
        if isinstance(self.value, types.CellType):
            return self.name
        if self.reader is read_function and isinstance(key, str):
            kind, _, name = key.partition(" ")
            return name if kind in ("cell", "default") else f"{self.name}.{key}"
        if isinstance(self.value, (dict, list, tuple)) and not isinstance(self.value, type):
            return f"{self.name}[{key!r}]"
        return f"{self.name}.{key}" if isinstance(key, str) else f"{self.name}[{key!r}]"
