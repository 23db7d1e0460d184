"""The memories of a device, by what they are for."""

from __future__ import annotations

import enum

__all__ = ["Space"]


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


Space = MemorySpace
