"""`jax.experimental.layout`: in which order the elements of an array lie in memory, as descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Format", "Layout"]


@dataclass(frozen=True)
class Layout:
    """The order of the axes in memory, from the slowest to the fastest."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0


@dataclass(frozen=True)
class Format:
    """A layout and a sharding."""

    layout: Any = None
    sharding: Any = None
