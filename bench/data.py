"""Inputs of the rows: NumPy arrays from a fixed seed, the same for every peer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=8)
def _normal(shape: tuple[int, ...], seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    values.flags.writeable = False
    return values


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Standard normal float32 values times `scale`."""
    return _normal(shape, seed).copy() if scale == 1.0 else _normal(shape, seed) * np.float32(scale)


def uniform(*shape: int, seed: int = 0, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Uniform float32 values in [low, high)."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def integers(high: int, *shape: int, seed: int = 0, dtype: Any = np.int32) -> np.ndarray:
    """Uniform integers in [0, high)."""
    return np.random.default_rng(seed).integers(0, high, shape).astype(dtype)


def positive_definite(*shape: int) -> np.ndarray:
    """Well-conditioned symmetric positive definite matrices, one per leading index."""
    matrix = _normal(shape, 3)
    product = matrix @ np.swapaxes(matrix, -1, -2) / np.float32(shape[-1])
    return product + 2 * np.eye(shape[-1], dtype=np.float32)


def forget() -> None:
    """Let go of the arrays that are kept for the next row."""
    _normal.cache_clear()
