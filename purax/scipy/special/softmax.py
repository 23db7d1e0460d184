"""Softmax over all axes unless some are named, as SciPy has it."""

from __future__ import annotations

from collections.abc import Sequence

from purax.core.array import Array
from purax.nn import normalization
from purax.typing import ArrayLike


def softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """eˣ / Σ eˣ: positive numbers of sum 1.

    Args:
        x: the exponents.
        axis: the axis, or axes, of the sum; all if None.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import softmax
    >>> softmax(jnp.zeros(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    return normalization.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | Sequence[int] | None = None) -> Array:
    """x − log Σ eˣ, the logarithm of `softmax` without its underflow.

    Args:
        x: the exponents.
        axis: the axis, or axes, of the sum; all if None.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import log_softmax
    >>> log_softmax(jnp.array([0.0, -1000.0]))
    Array([    0., -1000.], dtype=float32)
    """
    return normalization.log_softmax(x, axis=axis)
