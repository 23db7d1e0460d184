"""Integrals of sampled functions, as `jax.scipy.integrate`: `trapezoid`."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core.array import Array
from purax.typing import ArrayLike


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of a function that is linear between its samples.

    Args:
        y: the samples.
        x: where they were taken; if None, `dx` is the distance between neighbours.
        dx: see `x`.
        axis: the axis to integrate along.

    Returns:
        The integral, without that axis.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.integrate.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=2.0)
    Array(8., dtype=float32)
    """
    return jnp.trapezoid(y, x, dx, axis)
