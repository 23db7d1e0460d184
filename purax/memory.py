"""The memories of a device, by what they are for."""

from __future__ import annotations

from purax.core.memories import MemorySpace

__all__ = ["Space"]

Space = MemorySpace
