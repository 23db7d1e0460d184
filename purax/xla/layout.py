"""In which order the elements of an array lie in memory, as descriptions.

Arrays lie row by row, the last axis fastest; another order can be described and is refused where an array is placed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Format", "Layout"]


@dataclass(frozen=True)
class Layout:
    """The order of the axes in memory, from the slowest to the fastest.

    >>> from purax.experimental.layout import Layout
    >>> Layout((0, 1)).is_by_rows, Layout((1, 0)).is_by_rows
    (True, False)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    @property
    def is_by_rows(self) -> bool:
        """Whether the last axis is the fastest, and so on."""
        return self.major_to_minor == tuple(range(len(self.major_to_minor))) and not self.tiling


def format_of(aval: Any, sharding: Any) -> Format:
    """How an array of a type lies: row by row, and as a sharding says."""
    return Format(Layout(tuple(range(aval.ndim)), ()), sharding)


@dataclass(frozen=True)
class Format:
    """A layout and a sharding; without a layout, or with that by rows, it is as good as the sharding."""

    layout: Any = None
    sharding: Any = None

    def place(self) -> Any:
        """The sharding, or an error if the layout is another than that by rows."""
        if isinstance(self.layout, Layout) and not self.layout.is_by_rows:
            raise NotImplementedError(
                f"arrays lie row by row in memory, not as {self.layout}; transpose the array instead"
            )
        return self.sharding
