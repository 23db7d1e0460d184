"""Memory on the host that begins where the engine needs it, so that compiled programs use an array in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ENGINE_ALIGNMENT = 64  # bytes; the engine copies what begins elsewhere
SMALL = 1 << 16  # bytes; up to here an array keeps its value on both sides


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of any values, in memory that compiled programs use in place; for large arrays.

    >>> is_aligned(aligned_empty((3, 4), np.dtype("float32")))
    True
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    octets = np.empty(size + ENGINE_ALIGNMENT, np.uint8)
    start = -octets.ctypes.data % ENGINE_ALIGNMENT
    return octets[start : start + size].view(dtype).reshape(shape)


def is_aligned(x: np.ndarray) -> bool:
    """Whether the engine uses the memory of an array in place."""
    return not x.ctypes.data % ENGINE_ALIGNMENT
