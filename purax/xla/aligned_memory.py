"""Memory on the host that begins where the engine needs it, so that compiled programs use an array in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax.core.primitive import native

ENGINE_ALIGNMENT = 64  # bytes; the engine copies what begins elsewhere
SMALL = 1 << 16  # bytes; up to here an array keeps its value on both sides


def address_of_octets(x: np.ndarray) -> int:
    """Where the memory of an array of octets begins."""
    return x.ctypes.data


if native is not None:
    address_of_octets = native.address_of  # the same, in a tenth of the time


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of any values, in memory that compiled programs use in place; for large arrays.

    >>> is_aligned(aligned_empty((3, 4), np.dtype("float32")))
    True
    """
    octets = np.empty(math.prod(shape) * dtype.itemsize + ENGINE_ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, octets, -address_of_octets(octets) % ENGINE_ALIGNMENT)


def is_aligned(x: np.ndarray) -> bool:
    """Whether the engine uses the memory of an array in place."""
    return not x.ctypes.data % ENGINE_ALIGNMENT
