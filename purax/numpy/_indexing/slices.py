"""`ds`: a slice by its start and its size, so that the start may be traced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from purax.core.dimensions import as_size
from purax.core.source import located
from purax.errors import shown


@dataclass(frozen=True)
class Slice:
    """`size` elements from `start` on, `stride` apart; an index like any other.

    Attributes:
        start: the first position, which may be traced.
        size: how many elements.
        stride: the distance between them.
    """

    start: Any
    size: int
    stride: int = 1

    def as_slice(self) -> slice:
        """The builtin slice of the same elements."""
        return slice(self.start, self.start + (self.size - 1) * self.stride + 1, self.stride)


def ds(start: Any, size: Any = None, stride: int | None = None) -> slice | Slice:
    """A slice from its start and its size, as the builtin `slice` is one from its start and its end.

    Args:
        start: the first position, which may be traced; alone it is the size of a slice from 0 on, or None for all.
        size: how many elements, an integer that is known.
        stride: the distance between them.

    >>> import purax as px, purax.numpy as jnp
    >>> x = jnp.arange(10)
    >>> x[px.ds(4, 2)]
    Array([4, 5], dtype=int32)
    >>> px.jit(lambda i: x[px.ds(i, 2)])(4)
    Array([4, 5], dtype=int32)
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    stride = 1 if stride is None else as_size(stride)
    try:
        size = as_size(size)
    except TypeError:
        raise located(
            TypeError,
            f"ds: the size must be an integer that is known, got {shown(size)}; only start may be traced",
        ) from None
    if size < 0 or stride < 1:
        raise located(
            ValueError,
            f"ds: the size must not be negative and the stride at least 1, got {size} and {stride}",
        )
    try:
        start = as_size(start)
    except TypeError:
        pass
    return Slice(start, size, stride)
