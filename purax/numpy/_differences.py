"""Differences between neighbours, and what is made of them: gradients, integrals, unwrapped phases."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.core.trace import current
from purax.errors import shown
from purax.execution.eager import eager
from purax.numpy._elementwise.arithmetic import abs, remainder, subtract
from purax.numpy._elementwise.comparison import not_equal
from purax.numpy._indexing.selection import where
from purax.numpy._programs import as_one_program, host_array, small_host_value, strong_array
from purax.numpy._promotion import BOOL, as_array, common_dtype, convert
from purax.numpy._reductions.cumulative import cumsum
from purax.numpy._reductions.reductions import sum as summed
from purax.numpy._shape.axes import canonical_axes, canonical_axis
from purax.numpy._shape.joining import concatenate
from purax.numpy._shape.shaping import broadcast_to, ravel, reshape
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.slicing import slice_axis
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """The differences between neighbours along an axis, `a[i+1] - a[i]`.

    Args:
        a: an array with at least one axis.
        n: how often to take differences.
        axis: the axis.
        prepend, append: what to put before and after `a` along the axis first; a scalar stands for one element.

    Returns:
        An array that is `n` shorter along the axis. For booleans it says where neighbours differ.

    >>> import purax.numpy as jnp
    >>> jnp.diff(jnp.array([1, 4, 9, 16]))
    Array([3, 5, 7], dtype=int32)
    """
    x = as_array(a, "diff")
    order = operator.index(n)
    if order < 0:
        raise located(ValueError, f"diff: order must be non-negative but got {order}")
    if not x.ndim:
        raise located(ValueError, "diff requires input that is at least one dimensional, got a scalar")
    if not order:
        return x
    axis = canonical_axis("diff", axis, x.ndim)
    parts = [x]
    for argument, place in ((prepend, 0), (append, len(parts))):
        if argument is not None:
            extra = as_array(argument, "diff(prepend, append)")
            if not extra.ndim:
                extra = broadcast_to(extra, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
            parts.insert(0 if place == 0 else len(parts), extra)
    if len(parts) > 1:
        x = concatenate(parts, axis)
    for _ in range(order):
        if x.shape[axis] == 0:
            break
        x = _neighbours(x, axis)
    return x


def _neighbours(x: Array, axis: int) -> Array:
    size = x.shape[axis]
    if size.__class__ is int and size < 2:  # symbolic ones are at least 1
        return slice_axis(x, 0, 0, axis)
    upper, lower = slice_axis(x, 1, size, axis), slice_axis(x, 0, size - 1, axis)
    return not_equal(upper, lower) if x.dtype == BOOL else subtract(upper, lower)


def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Array:
    """The differences between neighbours of the flattened array.

    Args:
        ary: the array.
        to_end, to_begin: what to put after and before the differences.

    Returns:
        A vector of the dtype of `ary`.

    >>> import purax.numpy as jnp
    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
    Array([0, 3, 5], dtype=int32)
    """
    x = as_array(ary, "ediff1d")
    if dtypes.is_boolean(x.dtype):
        raise located(TypeError, "ediff1d: booleans have no differences; convert them first: x.astype(int)")
    result = [_neighbours(ravel(x), 0)]
    for name, argument in (("to_begin", to_begin), ("to_end", to_end)):
        if argument is None:
            continue
        extra = as_array(argument, f"ediff1d({name}=...)")
        if dtypes.is_inexact(extra.dtype) and not dtypes.is_inexact(x.dtype):
            raise located(
                TypeError,
                f"ediff1d: {name} of dtype {dtypes.dtype_name(extra.dtype)} does not fit into the dtype "
                f"{dtypes.dtype_name(x.dtype)} of the array. Convert the array first: x.astype(float).",
            )
        extra = convert_element_type(ravel(extra), x.dtype, x.weak_type)
        result.insert(0 if name == "to_begin" else len(result), extra)
    return concatenate(result) if len(result) > 1 else result[0]


def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """The derivative of sampled functions, by differences: central ones inside, one-sided ones at the ends.

    Args:
        f: the values of the function.
        varargs: the distance between samples, 1 if not given; a number for all axes, or for each axis a number or the
            vector of places.
        axis: the axes along which to differentiate; None for all.
        edge_order: 1 or 2, how accurate the differences at the ends are.

    Returns:
        An array of the shape of `f`, or a list of one for each axis.

    >>> import purax.numpy as jnp
    >>> jnp.gradient(jnp.array([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    x = as_array(f, "gradient")
    dtype, weak = dtypes.dtype_and_weak(x)
    x = convert(x, dtypes.to_inexact_dtype(dtype), weak)
    axes = canonical_axes("gradient", axis, x.ndim)
    edge = 1 if edge_order is None else edge_order
    if edge not in (1, 2):
        raise located(ValueError, f"gradient: edge_order must be 1 or 2, got {shown(edge_order)}")
    if len(varargs) not in (0, 1, len(axes)):
        raise located(
            TypeError,
            f"gradient: invalid number of spacing arguments {len(varargs)} for axis={axis}: give none, one, or one "
            f"for each of the {len(axes)} axes",
        )
    spacings = varargs or (1.0,)
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    results = [_gradient(x, spacing, i, edge) for i, spacing in zip(axes, spacings, strict=True)]
    return results[0] if len(results) == 1 and (axis is None or isinstance(axis, int)) else results


_NUMPYS_FLOATS = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


def _gradient(x: Array, spacing: Any, axis: int, edge: int) -> Array:
    size = x.shape[axis]
    if size < edge + 1:
        raise located(
            ValueError,
            f"gradient: shape of array too small to calculate a numerical gradient: axis {axis} of shape {x.shape} "
            f"needs at least {edge + 1} elements for edge_order={edge}",
        )
    if spacing.__class__ in (int, float) and x.__class__ is DeviceArray and current.trace is eager:
        value = small_host_value(x)
        if value is not None and value.dtype in _NUMPYS_FLOATS:
            numpys = np.gradient(value, spacing, axis=axis, edge_order=edge)  # type: ignore[call-overload]
            return host_array(numpys)
    h = as_array(spacing, "gradient(varargs)")
    h = convert(h, dtypes.to_inexact_dtype(h.dtype), h.weak_type)
    if h.ndim and h.shape != (size,):
        raise located(
            ValueError,
            f"gradient: spacing must be a number or a vector of the {size} places along axis {axis}, got shape "
            f"{h.shape}",
        )
    return _derivative(x, h, axis=axis, edge=edge)


@as_one_program()
def _derivative(x, h, *, axis, edge):
    size = x.shape[axis]

    def part(start: int, stop: int) -> Array:
        return slice_axis(x, start, stop, axis)

    if not h.ndim:
        inner = (part(2, size) - part(0, size - 2)) / (2.0 * h)
        steps_first = steps_last = (h, h)
    else:
        steps = subtract(slice_axis(h, 1, size, 0), slice_axis(h, 0, size - 1, 0))
        along = [1] * x.ndim
        along[axis] = size - 2
        left, right = (reshape(slice_axis(steps, i, size - 2 + i, 0), along) for i in (0, 1))
        inner = (
            -right / (left * (left + right)) * part(0, size - 2)
            + (right - left) / (left * right) * part(1, size - 1)
            + left / (right * (left + right)) * part(2, size)
        )
        second = min(1, size - 2)
        steps_first = (steps[0], steps[second])
        steps_last = (steps[size - 2], steps[max(size - 3, 0)])
    if edge == 1:
        first = (part(1, 2) - part(0, 1)) / steps_first[0]
        last = (part(size - 1, size) - part(size - 2, size - 1)) / steps_last[0]
    else:
        first = _one_sided(part(0, 1), part(1, 2), part(2, 3), *steps_first)
        ends = part(size - 1, size), part(size - 2, size - 1), part(size - 3, size - 2)
        last = -_one_sided(*ends, *steps_last)
    return concatenate([first, inner, last], axis)


def _one_sided(end: Array, next_one: Array, third: Array, h: Any, k: Any) -> Array:
    """The derivative at an end, from it and the two samples beside it at the distances h and h + k."""
    return -(2.0 * h + k) / (h * (h + k)) * end + (h + k) / (h * k) * next_one - h / (k * (h + k)) * third


def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """The integral of a sampled function along an axis, by the trapezoidal rule.

    Args:
        y: the values of the function.
        x: the places of the samples; a vector, or an array like `y`.
        dx: the distance between samples, if `x` is not given.
        axis: the axis.

    Returns:
        The integrals.

    >>> import purax.numpy as jnp
    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=0.5)
    Array(2., dtype=float32)
    """
    values = strong_array(y, "trapezoid", 0)
    axis = canonical_axis("trapezoid", axis, values.ndim)
    if x is None:
        places = None
        widths = as_array(dx, "trapezoid", 2)
        dtype = common_dtype((convert(values, dtypes.to_inexact_dtype(values.dtype)), widths))[0]
    else:
        places = strong_array(x, "trapezoid", 1)
        dtype = common_dtype((values, places))[0]
    dtype = dtypes.to_inexact_dtype(dtype)
    values = convert_element_type(values, dtype)
    if places is not None:
        places = convert_element_type(places, dtype)
        if places.ndim == 1:
            steps = _neighbours(places, 0)
            widths = reshape(steps, tuple([steps.shape[0] if i == axis else 1 for i in range(values.ndim)]))
        else:
            widths = _neighbours(places, axis)
    else:
        widths = convert_element_type(widths, dtype)
    return _area(values, widths, axis=axis)


def _area_on_host(values, widths, *, axis):
    dtype = values.dtype
    if dtypes.is_floating(dtype) and dtype.itemsize < 4:
        values, widths = values.astype(np.float32), widths.astype(np.float32)
    size = values.shape[axis]
    before = (slice(None),) * axis
    heights = values[(*before, slice(1, None))] + values[(*before, slice(0, max(size - 1, 0)))]
    return (np.add.reduce(widths * heights, axis) * heights.dtype.type(0.5)).astype(dtype)


@as_one_program(_area_on_host)
def _area(values, widths, *, axis):
    size = values.shape[axis]
    if size.__class__ is int and size < 2:
        return summed(slice_axis(values, 0, 0, axis), axis)
    heights = slice_axis(values, 1, size, axis) + slice_axis(values, 0, size - 1, axis)
    return summed(widths * heights, axis) * 0.5


def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 6.283185307179586
) -> Array:
    """A sequence of angles, or other values with a period, without jumps.

    Args:
        p: real numbers.
        discont: the least difference of neighbours that is a jump, half a period if not given.
        axis: the axis.
        period: the period, 2π if not given.

    Returns:
        The values with multiples of the period added, so that neighbours are closer than half of it.

    >>> import purax.numpy as jnp
    >>> jnp.unwrap(jnp.array([0, 3, 7, 1]), period=4)
    Array([ 0, -1, -1, -3], dtype=int32)
    """
    x = as_array(p, "unwrap")
    if dtypes.is_complex(x.dtype):
        raise located(ValueError, f"unwrap takes real numbers, got {x.dtype}; take jnp.angle(x) first")
    length = as_array(period, "unwrap(period=...)")
    dtype = common_dtype((x, length))[0]
    x, length = convert_element_type(x, dtype), convert_element_type(length, dtype)
    axis = canonical_axis("unwrap", axis, x.ndim)
    limit = [] if discont is None else [as_array(discont, "unwrap(discont=...)")]
    return _unwrap(x, length, *limit, axis=axis)


def _unwrap_on_host(x, period, *limit, axis):
    return np.unwrap(x, *limit, axis=axis, period=period[()]).astype(x.dtype)


@as_one_program(_unwrap_on_host)
def _unwrap(x, period, *limit, axis):
    if x.shape[axis] == 0:
        return x
    dtype = x.dtype
    steps = _neighbours(x, axis)
    if dtypes.is_integer(dtype):
        half, is_even = period // 2, remainder(period, 2) == 0
    else:
        half, is_even = period / 2, True
    moved = remainder(steps + half, period) - half
    moved = where((moved == -half) & (steps > 0) & is_even, half, moved)
    corrections = where(abs(steps) < (limit[0] if limit else half), 0, moved - steps)
    shifted = slice_axis(x, 1, x.shape[axis], axis) + cumsum(corrections, axis)
    first = slice_axis(x, 0, min(1, x.shape[axis]), axis)
    return concatenate([first, convert_element_type(shifted, dtype)], axis)
