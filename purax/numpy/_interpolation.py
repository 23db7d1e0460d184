"""Piecewise linear interpolation: `interp`."""

from __future__ import annotations

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._elementwise.arithmetic import remainder
from purax.numpy._indexing.selection import where
from purax.numpy._programs import as_one_program, concrete_value, strong_array
from purax.numpy._promotion import as_array, common_dtype
from purax.numpy._shape.joining import concatenate
from purax.numpy._shape.shaping import broadcast_to
from purax.numpy._sorting.searching import search
from purax.numpy._sorting.sorting import argsort
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import clamp
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.gather_scatter import take
from purax.typing import ArrayLike


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """The function that goes through given points and is linear between them.

    Args:
        x: where to compute it.
        xp: the places of the points, increasing unless there is a period.
        fp: the values at the points, real or complex.
        left: the value below `xp[0]`, `fp[0]` if not given; "extrapolate" goes on with the first line.
        right: the value above `xp[-1]`, `fp[-1]` if not given; "extrapolate" goes on with the last line.
        period: the period of the function; then `left` and `right` are not used.

    Returns:
        The values at `x`.

    >>> import purax.numpy as jnp
    >>> jnp.interp(jnp.array([0.5, 1.5, 9.0]), jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0, 40.0]))
    Array([ 5., 25., 40.], dtype=float32)
    """
    queries, places, values = (strong_array(a, "interp", i) for i, a in enumerate((x, xp, fp)))
    if places.ndim != 1 or values.ndim != 1 or places.shape != values.shape:
        raise located(
            ValueError,
            f"interp: xp and fp must be one-dimensional arrays of equal size, got shapes {places.shape} and "
            f"{values.shape}",
        )
    if not places.size:
        raise located(ValueError, "interp: xp and fp must not be empty")
    for name, end in (("left", left), ("right", right)):
        if isinstance(end, str) and end != "extrapolate":
            raise located(
                ValueError,
                f"interp: the only valid string value of {name} is 'extrapolate', got {shown(end)}",
            )
    for argument, array in (("x", queries), ("xp", places)):
        if dtypes.is_complex(array.dtype):
            raise located(ValueError, f"interp: {argument} must be real, got {array.dtype}")
    dtype = dtypes.to_inexact_dtype(common_dtype((queries, places))[0])
    beyond = [
        as_array(end, f"interp({name}=...)")
        for name, end in (("left", left), ("right", right))
        if period is None and end is not None and not isinstance(end, str)
    ]
    result = dtypes.to_inexact_dtype(common_dtype((queries, places, values, *beyond))[0])
    queries, places = convert_element_type(queries, dtype), convert_element_type(places, dtype)
    values = convert_element_type(values, result)
    operands = [queries, places, values]
    ends: list[str | None] = []
    if period is not None:
        known = concrete_value(period)
        if known is not None and (known.ndim or known == 0):
            raise located(ValueError, f"interp: period must be a number other than 0, got {period}")
        operands.append(abs(convert_element_type(as_array(period, "interp(period=...)"), dtype)))
        ends = ["extrapolate", "extrapolate"]
    else:
        ends = [end if end is None or isinstance(end, str) else "value" for end in (left, right)]
        operands += [convert_element_type(end, result) for end in beyond]
    return _interpolate(*operands, ends=tuple(ends), is_periodic=period is not None)


def _interpolate_on_host(x, xp, fp, *others, ends, is_periodic):
    if is_periodic:
        return np.interp(x, xp, fp, period=others[0]).astype(fp.dtype)
    others = list(others)
    low, high = (others.pop(0).item() if end == "value" else None for end in ends)
    value = np.asarray(np.interp(x, xp, fp, low, high))
    size = xp.shape[0]
    for end, beyond, i, j in ((ends[0], x < xp[0], 0, 1), (ends[1], x > xp[-1], -1, -2)):
        if end == "extrapolate" and size > 1 and beyond.any():
            wide = np.float64(xp[j]) - np.float64(xp[i])
            value = np.where(beyond, fp[i] + (x - np.float64(xp[i])) * ((fp[j] - fp[i]) / wide), value)
    return value.astype(fp.dtype)


@as_one_program(_interpolate_on_host)
def _interpolate(x, xp, fp, *others, ends, is_periodic):
    others = list(others)
    if is_periodic:
        period = others.pop()
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order, 0), take(fp, order, 0)
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    size = xp.shape[0]
    if size == 1:
        value = broadcast_to(fp[0], x.shape)
    else:
        index = search(xp, x, side="right", method="scan")
        index = clamp(np.array(1, index.dtype), index, number_as(size - 1, index.dtype))
        x0, x1, f0, f1 = (take(a, i, 0) for a in (xp, fp) for i in (index - 1, index))
        width = x1 - x0
        is_jump = width == 0
        share = (x - x0) / where(is_jump, 1, width)
        value = where(is_jump, f0, f0 + share.astype(fp.dtype) * (f1 - f0))
    for end, beyond, edge in ((ends[0], x < xp[0], fp[0]), (ends[1], x > xp[-1], fp[-1])):
        if end != "extrapolate":
            value = where(beyond, others.pop(0) if end == "value" else edge, value)
    return value
