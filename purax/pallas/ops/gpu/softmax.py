"""softmax along an axis."""

from __future__ import annotations

from typing import Any

from purax import nn


def softmax(
    x: Any, *, axis: int = -1, num_warps: int = 4, interpret: bool = False, debug: bool = False
) -> Any:
    """The softmax of `x`."""
    return nn.softmax(x, axis)
