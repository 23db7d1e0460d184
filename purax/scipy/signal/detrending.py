"""Signals without their trend: `detrend`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import numpy_value
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import strong_array
from purax.numpy._promotion import promotes_freely
from purax.primitives.elementwise.conversion import convert_element_type
from purax.typing import ArrayLike


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """Data without the line, or the mean, that fits it best.

    Args:
        data: an array.
        axis: the axis along which the data has a trend.
        type: "linear" or "constant".
        bp: positions at which a new line begins, for "linear".
        overwrite_data: must be None, as arrays do not change.

    Returns:
        An array of the shape of the data.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.signal.detrend(jnp.array([1.0, 4.0, 8.0, 8.0, 9.0])).round(3)
    Array([-1.,  0.,  2.,  0., -1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise located(
            NotImplementedError, "detrend: overwrite_data must be None: arrays cannot be written to"
        )
    if type not in ("constant", "linear"):
        raise located(ValueError, f"detrend: type must be 'linear' or 'constant', got {shown(type)}")
    x = strong_array(data, "detrend")
    x = convert_element_type(x, dtypes.to_inexact_dtype(x.dtype))
    if type == "constant":
        return x - jnp.mean(x, axis=axis, keepdims=True)
    size = x.shape[axis]
    breaks = sorted({0, size, *np.atleast_1d(numpy_value(bp)).astype(int).tolist()})
    if breaks[0] < 0 or breaks[-1] > size:
        raise located(
            ValueError, f"detrend: breakpoints must lie in [0, {size}], the length of the axis, got bp={bp}"
        )
    x = jnp.moveaxis(x, axis, -1)
    parts = [_without_line(x[..., start:stop]) for start, stop in zip(breaks[:-1], breaks[1:], strict=True)]
    if parts:
        x = parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)
    return jnp.moveaxis(x, -1, axis)


@promotes_freely
def _without_line(x: Any) -> Any:
    """With times t that have mean 0, the best line is mean(x) + t · Σ t x / Σ t²."""
    size = x.shape[-1]
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    if size < 2:
        return x
    times = np.arange(size) - (size - 1) / 2
    times /= times[-1]
    real = dtypes.to_real_dtype(x.dtype)
    slope = jnp.sum(x * times.astype(real), axis=-1, keepdims=True) / np.sum(times**2).astype(real)
    return x - slope * times.astype(real)
