"""The memories of a device, by what they are for: a part of the types of arrays.

What is not said is in the device's own memory. Where a device has one memory only, such as the CPU, programs leave
values where they are.
"""

from __future__ import annotations

import enum

from purax.core.source import located
from purax.errors import shown


class MemorySpace(enum.Enum):
    """A memory of a device: its own, the host's as far as the device reaches it, or either.

    >>> import purax as px
    >>> px.memory.Space.Device
    MemorySpace.Device
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    def __str__(self) -> str:
        return f"<{self.name.lower()}>"


# The names that the runtime has for them. On some platforms the default memory has a name of its own.
_SPACES = {
    "device": MemorySpace.Device,
    "pinned_host": MemorySpace.Host,
    "unpinned_host": MemorySpace.Host,
}
HOST_KIND = "pinned_host"


def space_of_kind(kind: str | None, device: object = None) -> MemorySpace:
    """Which memory a name of the runtime's means.

    Args:
        kind: such as "pinned_host"; None for the default one.
        device: whose default memory is its own, whatever its name.

    >>> space_of_kind("pinned_host")
    MemorySpace.Host
    """
    if kind is None or (device is not None and kind == default_kind(device)):
        return MemorySpace.Device
    found = _SPACES.get(kind)
    if found is None:
        raise located(
            ValueError, f"a memory kind is one of {', '.join(map(repr, sorted(_SPACES)))}, got {shown(kind)}"
        )
    return found


def kind_of_space(space: MemorySpace, device: object) -> str | None:
    """The name that the runtime has for a memory of a device; None for the default one."""
    return HOST_KIND if space is MemorySpace.Host else None


def default_kind(device: object) -> str:
    """The name of the memory of a device that arrays are in unless somebody says otherwise."""
    return device.default_memory().kind  # type: ignore[attr-defined]
