"""`pad`, in all of NumPy's modes. Axes are padded one after the other, each including the padding of those before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from purax.api.vmap import vmap
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import shown
from purax.numpy._creation.creation import asarray
from purax.numpy._creation.ranges import linspace
from purax.numpy._promotion import as_array, as_operand, convert
from purax.numpy._shape.joining import concatenate
from purax.numpy._shape.shaping import moveaxis, reshape
from purax.primitives.elementwise.arithmetic import round_, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.reductions.reduction import reduce_max, reduce_min
from purax.primitives.shape.broadcasting import broadcast_in_dim, reduce_sum
from purax.primitives.shape.gather_scatter import take
from purax.primitives.shape.reshaping import rev
from purax.primitives.shape.slicing import pad as pad_with_scalar
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.sorting import sort
from purax.typing import ArrayLike

_OPTIONS = {
    "constant": {"constant_values"},
    "edge": set(),
    "empty": set(),
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "mean": {"stat_length"},
    "median": {"stat_length"},
    "minimum": {"stat_length"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
}


def pad(
    array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any
) -> Array:
    """`array` with elements added at the ends of its axes.

    Args:
        array: an array.
        pad_width: how many: one number, (before, after) for all axes, or such a pair for each axis.
        mode: what they are: "constant", "edge" (the last element), "linear_ramp", "maximum", "mean", "median" or
            "minimum" (of the axis), "reflect" (mirrored at the last element), "symmetric" (mirrored after it), "wrap",
            "empty" (zeros), or a function of (vector, (before, after), axis, options) that returns the new vector.
        kwargs: `constant_values`, `end_values`, `stat_length` (how many elements at each end count), numbers or pairs,
            or `reflect_type` ("even" or "odd").

    Returns:
        A larger array.

    >>> import purax.numpy as jnp
    >>> jnp.pad(jnp.array([1, 2, 3]), (1, 2)), jnp.pad(jnp.array([1, 2, 3]), 2, mode="reflect")
    (Array([0, 1, 2, 3, 0, 0], dtype=int32), Array([3, 2, 1, 2, 3, 2, 1], dtype=int32))
    """
    x = as_array(array, "pad")
    widths = _pairs("pad_width", pad_width, x.aval.ndim, _width)
    if callable(mode):
        return _pad_by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise located(
            NotImplementedError,
            f"pad: unknown mode {shown(mode)}; there are {', '.join(map(repr, _OPTIONS))}, and functions",
        )
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise located(
            ValueError,
            f"pad: mode {shown(mode)} takes {sorted(_OPTIONS[mode]) or 'no options'}, got {sorted(unknown)}",
        )
    if mode == "constant":
        return _pad_with_constants(x, widths, kwargs.get("constant_values", 0))
    if mode == "empty":
        return _pad_with_constants(x, widths, 0)
    if mode == "linear_ramp":
        ends = _pairs("end_values", kwargs.get("end_values", 0), x.aval.ndim, lambda value: value)
        return _pad_axes(
            x, widths, lambda y, axis, before, after: _pad_ramp(y, axis, before, after, ends[axis])
        )
    if mode in _STATISTICS:
        lengths = _pairs("stat_length", kwargs.get("stat_length"), x.aval.ndim, _length)
        statistic = _STATISTICS[mode]
        original = x.aval.shape

        def pad_axis(y, axis, before, after):
            return _pad_statistic(y, axis, before, after, lengths[axis], original[axis], statistic, mode)

        return _pad_axes(x, widths, pad_axis)
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise located(ValueError, f"pad: reflect_type must be 'even' or 'odd', got {shown(reflect_type)}")
    if reflect_type == "odd":
        return _pad_axes(x, widths, lambda y, axis, before, after: _pad_odd(y, axis, before, after, mode))
    return _pad_axes(x, widths, lambda y, axis, before, after: _pad_from_inside(y, axis, before, after, mode))


# --- arguments


def _pairs(name: str, value: Any, ndim: int, check: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """One value, a pair, or a pair per axis, as a pair per axis."""
    if isinstance(value, dict):
        pairs: list[tuple[Any, Any]] = [(0, 0)] * ndim
        for axis, entry in value.items():
            if isinstance(entry, dict):
                raise located(TypeError, f"pad: {name} of axis {shown(axis)} is a dict, {shown(entry)}")
            pairs[axis] = _pairs(name, entry, 1, check)[0]
        return pairs
    if isinstance(value, np.ndarray) or (
        isinstance(value, Array) and value.ndim and not isinstance(value, Tracer)
    ):
        value = np.asarray(value).tolist()
    if not isinstance(value, (list, tuple)):
        one = check(value)
        return [(one, one)] * ndim
    entries = [e.tolist() if isinstance(e, np.ndarray) else e for e in value]
    nested = [isinstance(e, (list, tuple)) for e in entries]
    if not any(nested):
        if len(entries) == 1:
            one = check(entries[0])
            return [(one, one)] * ndim
        if len(entries) == 2:
            return [(check(entries[0]), check(entries[1]))] * ndim
    elif all(nested) and len(entries) in (1, ndim) and all(len(e) in (1, 2) for e in entries):
        pairs = [(check(e[0]), check(e[-1])) for e in entries]
        return pairs * ndim if len(pairs) == 1 else pairs
    raise located(
        ValueError,
        f"pad: {name} must be one value, a pair (before, after), or a pair for each of {ndim} axes; got "
        f"{shown(value)}",
    )


def _width(value: Any) -> int:
    try:
        width = as_size(value)
    except TypeError:
        if isinstance(value, Tracer):
            raise
        raise located(TypeError, f"pad: pad_width must be integers, got {shown(value)}") from None
    if width < 0:
        raise located(ValueError, f"pad: pad_width may not be negative, got {width}")
    return width


def _length(value: Any) -> int | None:
    if value is None:
        return None
    length = as_size(value)
    if length < 1:
        raise located(ValueError, f"pad: stat_length must be positive, got {length}")
    return length


def _pad_axes(x: Array, widths: list[tuple[int, int]], pad_axis: Callable) -> Array:
    weak = x.aval.weak_type
    for axis, (before, after) in enumerate(widths):
        if before or after:
            if not x.aval.shape[axis]:
                raise located(
                    ValueError,
                    f"pad: axis {axis} of shape {x.aval.shape} is empty, and only 'constant' can pad it",
                )
            x = pad_axis(x, axis, before, after)
    return convert_element_type(x, x.aval.dtype, weak)


# --- modes


def _pad_with_constants(x: Array, widths: list[tuple[int, int]], values: Any) -> Array:
    ndim = x.aval.ndim
    pairs = _pairs(
        "constant_values", values, ndim, lambda value: as_operand(value, "pad(constant_values=...)")
    )
    dtype = x.aval.dtype
    if all(pair[0] is pairs[0][0] and pair[1] is pairs[0][0] for pair in pairs):
        if not pairs:
            return x
        value = _scalar(pairs[0][0], dtype, x.aval.weak_type)
        return pad_with_scalar(x, value, [(before, after, 0) for before, after in widths])
    for axis, ((before, after), (first, last)) in enumerate(zip(widths, pairs, strict=True)):
        for low, high, value in ((before, 0, first), (0, after, last)):
            config = [(low, high, 0) if i == axis else (0, 0, 0) for i in range(ndim)]
            x = pad_with_scalar(x, _scalar(value, dtype, x.aval.weak_type), config)
    return x


def _scalar(value: Any, dtype: Any, weak: bool) -> Any:
    if value.__class__ is float and dtypes.is_integer(dtype):
        value = np.asarray(value)
    value = convert(value, dtype, weak and dtypes.is_weakly_typed(value))
    return reshape(value, ()) if isinstance(value, Array) and value.aval.ndim else value


def _pad_from_inside(x: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """Padding whose elements are elements of the axis: the places are found by NumPy."""
    places = np.pad(np.arange(x.aval.shape[axis]), (before, after), mode)  # type: ignore[call-overload]
    return _at_places(x, places, axis)


def _at_places(x: Array, places: np.ndarray, axis: int) -> Array:
    """The elements at `places` along `axis`, as joined slices if they form few runs of steps +1, −1 or 0."""
    runs = _runs(places)
    if len(runs) > 16:
        return take(x, asarray(places.astype(np.int32)), axis)
    parts = []
    for start, step, count in runs:
        if step >= 0:
            part = slice_axis(x, start, start + (count if step else 1), axis)
        else:
            part = rev(slice_axis(x, start - count + 1, start + 1, axis), (axis,))
        if not step and count > 1:
            shape = (*x.aval.shape[:axis], count, *x.aval.shape[axis + 1 :])
            part = broadcast_in_dim(part, shape, range(len(shape)))
        parts.append(part)
    return concatenate(parts, axis)


def _runs(places: np.ndarray) -> list[tuple[int, int, int]]:
    """(start, step, count) of consecutive places with one step."""
    runs: list[list[int]] = []
    for place in places.tolist():
        if runs:
            start, step, count = runs[-1]
            if count == 1 and place - start in (-1, 0, 1):
                runs[-1] = [start, place - start, 2]
                continue
            if count > 1 and place == start + step * count:
                runs[-1][2] += 1
                continue
        runs.append([place, 1, 1])
    return [(start, step, count) for start, step, count in runs]


def _pad_odd(x: Array, axis: int, before: int, after: int, mode: str) -> Array:
    """Mirrored at the end elements in place and in value: 2·end − reflected. At most one length at a time."""
    edge = 1 if mode == "reflect" else 0
    while before > 0 or after > 0:
        size = x.aval.shape[axis]
        if size == 1 and edge:
            return _pad_from_inside(x, axis, before, after, "edge")
        chunk = size - edge
        low, high = min(before, chunk), min(after, chunk)
        parts = []
        if low:
            first = slice_axis(x, 0, 1, axis)
            parts.append(_reflected(first, slice_axis(x, edge, edge + low, axis), axis))
        parts.append(x)
        if high:
            last = slice_axis(x, size - 1, size, axis)
            parts.append(_reflected(last, slice_axis(x, size - edge - high, size - edge, axis), axis))
        x = concatenate(parts, axis)
        before, after = before - low, after - high
    return x


def _reflected(end: Array, part: Array, axis: int) -> Array:
    shape = part.aval.shape
    twice = broadcast_in_dim(mul(end, 2), shape, range(len(shape)))
    return sub(twice, rev(part, (axis,)))


def _pad_ramp(x: Array, axis: int, before: int, after: int, ends: tuple[Any, Any]) -> Array:
    """From the end values to the elements at the ends, in equal steps."""
    size = x.aval.shape[axis]
    dtype = x.aval.dtype
    parts = [x]
    for count, end, place in ((before, ends[0], 0), (after, ends[1], size - 1)):
        if not count:
            continue
        edge = reshape(
            slice_axis(x, place, place + 1, axis), (*x.aval.shape[:axis], *x.aval.shape[axis + 1 :])
        )
        computed = dtypes.to_inexact_dtype(dtype)
        start = convert(as_operand(end, "pad(end_values=...)"), computed)
        ramp = linspace(start, convert(edge, computed), count, endpoint=False, dtype=dtype)
        ramp = moveaxis(ramp, 0, axis)
        parts = (
            [ramp, *parts]
            if place == 0 and count is before and len(parts) == 1
            else [*parts, rev(ramp, (axis,))]
        )
    return concatenate(parts, axis)


def _mean(x, axis):
    dtype = x.aval.dtype
    wide = convert_element_type(x, np.float32 if dtype.itemsize < 4 else dtypes.to_inexact_dtype(dtype))
    mean = mul(reduce_sum(wide, (axis,)), 1 / x.aval.shape[axis])
    return _rounded(mean, dtype)


def _rounded(x, dtype):
    return convert_element_type(round_(x, 1) if dtypes.is_integer(dtype) else x, dtype)


def _median(x, axis):
    dtype = x.aval.dtype
    (ordered,) = sort([x], axis)
    size = x.aval.shape[axis]
    low, high = (
        reshape(slice_axis(ordered, i, i + 1, axis), (*x.aval.shape[:axis], *x.aval.shape[axis + 1 :]))
        for i in ((size - 1) // 2, size // 2)
    )
    computed = dtypes.to_inexact_dtype(dtype)
    return _rounded(
        mul(add(convert_element_type(low, computed), convert_element_type(high, computed)), 0.5), dtype
    )


_STATISTICS: dict[str, Callable] = {
    "maximum": lambda x, axis: reduce_max(x, (axis,)),
    "minimum": lambda x, axis: reduce_min(x, (axis,)),
    "mean": _mean,
    "median": _median,
}


def _pad_statistic(x, axis, before, after, lengths, original, statistic, mode) -> Array:
    """The statistic of the first or last `lengths` elements of the axis, before it was padded."""
    size = x.aval.shape[axis]
    first = min(lengths[0] or original, original)
    last = min(lengths[1] or original, original)
    parts = []
    for count, start, stop in ((before, 0, first), (after, size - last, size)):
        value = statistic(slice_axis(x, start, stop, axis), axis)
        shape = (*x.aval.shape[:axis], count, *x.aval.shape[axis + 1 :])
        parts.append(broadcast_in_dim(value, shape, [i for i in range(len(shape)) if i != axis]))
    return concatenate([parts[0], x, parts[1]], axis)


def _pad_by_function(
    x: Array, widths: list[tuple[int, int]], function: Callable, options: dict[str, Any]
) -> Array:
    """Zeros first, then each vector along each axis goes through the function."""
    x = _pad_with_constants(x, widths, 0)
    for axis in range(x.aval.ndim):
        pair = widths[axis]

        def apply(vector, axis=axis, pair=pair):
            return function(vector, pair, axis, options)

        for _ in range(x.aval.ndim - 1):
            apply = vmap(apply)
        x = moveaxis(apply(moveaxis(x, axis, -1)), -1, axis)
    return x
