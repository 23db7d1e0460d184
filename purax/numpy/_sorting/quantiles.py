"""Medians, quantiles and percentiles, by all of NumPy's methods.

An array is sorted along its axes, and elements at places that depend on the quantile are combined. Where the quantile
is known, the places are computed in double precision outside of the program. NaN makes the result NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import SymbolicDimension, exceeds
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import as_one_program, constant_value, host_array, strong_array
from purax.numpy._promotion import as_array, convert, refuse_out
from purax.numpy._reductions.nan_reductions import is_nan
from purax.numpy._reductions.statistics import computed_dtype
from purax.numpy._shape.axes import canonical_axes, with_kept_axes
from purax.numpy._sorting.order_statistics import LONG, two_smallest
from purax.primitives.elementwise.arithmetic import floor, max_, min_, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, eq, ge, gt, lt, not_, or_, select
from purax.primitives.reductions.cumulative import cumsum
from purax.primitives.reductions.reduction import argmax, reduce_or
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, kept_axes, reduce_sum, transpose
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.gather_scatter import take_along_axis
from purax.primitives.shape.reshaping import expand_dims, reshape, squeeze, stack
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.sorting import sort
from purax.sharding.constraints import freely
from purax.typing import ArrayLike

# Position of the quantile q among n sorted elements, counted from 0: n q + alpha + q (1 - alpha - beta) - 1, …
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_OF_LINEAR = ("lower", "higher", "midpoint", "nearest")  # … rounded, for linear
_OF_COUNTS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")  # … or by counting
METHODS = (*_CONTINUOUS, *_OF_LINEAR, *_OF_COUNTS)


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The values below which given shares of the elements lie.

    Args:
        a: an array of real numbers.
        q: the shares, between 0 and 1; a scalar or a vector.
        axis: one axis, several, or None for all.
        out, overwrite_input: not supported.
        method: what to do where the quantile lies between two elements: "linear", "lower", "higher", "midpoint",
            "nearest", or one of the statistical definitions "inverted_cdf", "averaged_inverted_cdf",
            "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
            "normal_unbiased".
        keepdims: whether the reduced axes stay, with size 1.
        weights: of the elements, for the method "inverted_cdf"; of the shape of `a`, or a vector along `axis`.

    Returns:
        The quantiles; a vector `q` adds a first axis.

    >>> import purax.numpy as jnp
    >>> jnp.quantile(jnp.array([0.0, 1.0, 2.0, 3.0]), jnp.array([0.25, 0.5]))
    Array([0.75, 1.5 ], dtype=float32)
    """
    return _quantile("quantile", a, q, 1, axis, out, overwrite_input, method, keepdims, weights, False)


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The values below which given percentages of the elements lie. Arguments as those of `quantile`, `q` up to 100.

    >>> import purax.numpy as jnp
    >>> jnp.percentile(jnp.array([0.0, 1.0, 2.0, 3.0]), 25)
    Array(0.75, dtype=float32)
    """
    rest = (100, axis, out, overwrite_input, method, keepdims)
    return freely(lambda a, q, w: _quantile("percentile", a, q, *rest, w, False), out_sharding, a, q, weights)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The quantiles of the elements that are not NaN. Arguments as those of `quantile`.

    >>> import purax.numpy as jnp
    >>> jnp.nanquantile(jnp.array([0.0, jnp.nan, 2.0]), 0.5)
    Array(1., dtype=float32)
    """
    return _quantile("nanquantile", a, q, 1, axis, out, overwrite_input, method, keepdims, weights, True)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The percentiles of the elements that are not NaN. Arguments as those of `percentile`.

    >>> import purax.numpy as jnp
    >>> jnp.nanpercentile(jnp.array([0.0, jnp.nan, 2.0]), 50)
    Array(1., dtype=float32)
    """
    return _quantile("nanpercentile", a, q, 100, axis, out, overwrite_input, method, keepdims, weights, True)


def median(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element along axes, or the mean of the two in the middle.

    Args:
        a: an array of real numbers.
        axis: one axis, several, or None for all.
        out, overwrite_input: not supported.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        The medians; NaN where there is one, or where there are no elements.

    >>> import purax.numpy as jnp
    >>> jnp.median(jnp.array([[1, 5, 3], [2, 2, 9]]), axis=1)
    Array([3., 2.], dtype=float32)
    """
    refuse_out("median", out)
    _refuse_overwriting("median", overwrite_input)
    x, result, axes, rows, own_shape = _sortable("median", a, axis)
    value = convert(_median(rows), result)
    return with_kept_axes(value, own_shape, axes) if keepdims else value


def nanmedian(
    a: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median of the elements along axes that are not NaN. Arguments as those of `median`.

    >>> import purax.numpy as jnp
    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1.5, dtype=float32)
    """
    return _quantile("nanmedian", a, 0.5, 1, axis, out, overwrite_input, "linear", keepdims, None, True)


def _refuse_overwriting(name: str, overwrite_input: bool) -> None:
    if overwrite_input:
        raise located(ValueError, f"{name}: overwrite_input=True is not supported: arrays are immutable")


def _sortable(
    name: str, a: Any, axis: Any
) -> tuple[Array, np.dtype, tuple[int, ...], Array, tuple[int, ...]]:
    """An array as rows to sort along the last axis, with the dtype of results and the axes that were meant."""
    x = strong_array(a, name)
    if dtypes.is_complex(x.dtype):
        raise located(
            ValueError,
            f"{name} does not support complex input, as complex numbers have no order; got {x.dtype}",
        )
    result = dtypes.to_inexact_dtype(x.dtype)
    x = convert(x, computed_dtype(result))
    axes = canonical_axes(name, axis, x.ndim)
    kept = kept_axes(x.ndim, axes)
    rows = transpose(x, (*kept, *axes))
    if len(axes) != 1:
        rows = reshape(rows, (*[x.shape[i] for i in kept], math.prod([x.shape[i] for i in axes])))
    return x, result, axes, rows, x.shape


def _median_on_host(rows):
    size = rows.shape[-1]
    if not size:
        return np.full(rows.shape[:-1], np.nan, rows.dtype)
    ordered = np.sort(rows, -1)
    last, value = ordered[..., -1], ordered[..., (size - 1) // 2]
    if size % 2 == 0:
        half = value.dtype.type(0.5)
        value = value * half + ordered[..., size // 2] * half
    invalid = last != last
    return np.where(invalid, last, value) if invalid.any() else value


@as_one_program(_median_on_host)
def _median(rows):
    *batch, size = rows.shape
    if not size:
        return full(tuple(batch), np.nan, rows.dtype)
    axis = len(batch)
    if exceeds(size, LONG - 1):
        low, high = two_smallest(rows, np.array((size - 1) // 2, np.int32))
        value = low if size % 2 else _between(low, high, np.array(0.5, rows.dtype))
        return select(reduce_or(is_nan(rows), (axis,)), np.array(np.nan, rows.dtype), value)
    (ordered,) = sort([rows], axis)
    last, low, high = (
        squeeze(slice_axis(ordered, i, i + 1, axis), (axis,)) for i in (size - 1, (size - 1) // 2, size // 2)
    )
    if isinstance(size % 2, SymbolicDimension) or size % 2 == 0:  # of an odd size the two are one
        low = _between(low, high, np.array(0.5, rows.dtype))
    return select(is_nan(last), last, low)


def _between(low: Any, high: Any, weight: Any) -> Any:
    """(1 - weight) low + weight high; exact where the two are equal."""
    rest = sub(np.array(1, low.dtype), weight)
    return select(eq(low, high), low, add(mul(low, rest), mul(high, weight)))


def _quantile(
    name, a, q, scale, axis, out, overwrite_input, method, keepdims, weights, leaves_nan_out
) -> Array:
    refuse_out(name, out)
    _refuse_overwriting(name, overwrite_input)
    if method not in METHODS:
        raise located(
            ValueError,
            f"{name}: method can only be one of {', '.join(map(repr, METHODS))}; got {shown(method)}",
        )
    x, result, axes, rows, own_shape = _sortable(name, a, axis)
    known = constant_value(_checked_share(name, q))
    lead = np.ndim(q) if known is None else known.ndim
    if known is not None:
        known = known.astype(np.float64)
        if not ((known >= 0) & (known <= scale)).all():
            raise located(ValueError, f"{name}: q must be in the range [0, {scale}], got {known}")
        known = known / scale
    if weights is not None and method != "inverted_cdf":
        raise located(
            NotImplementedError,
            f"{name}: method {shown(method)} does not take weights, only 'inverted_cdf' does",
        )
    size = rows.shape[-1]
    if known is not None and weights is None and not leaves_nan_out and size and size.__class__ is int:
        low, high, weight = _places_of(known, size, method)
        low, high = (host_array(place.astype(np.int32)) for place in (low, high))
        values = _combined(rows, low, high, host_array(weight.astype(rows.dtype)))
    else:
        if known is not None:
            share = host_array(known.astype(rows.dtype))
        else:
            share = mul(
                convert_element_type(as_array(q, name, 1), rows.dtype), np.array(1 / scale, rows.dtype)
            )
        if not size:
            values = full((*share.shape, *rows.shape[:-1]), np.nan, rows.dtype)
        elif weights is not None:
            own_weights = _weight_rows(name, weights, x, axis, axes, rows)
            values = _weighted_quantile(rows, own_weights, share, leaves_nan_out=leaves_nan_out)
        elif leaves_nan_out:
            values = _nan_quantile(rows, share, method=method)
        else:
            values = _traced_quantile(rows, share, method=method)
    if keepdims:
        shape = tuple([1 if i in axes else n for i, n in enumerate(own_shape)])
        values = reshape(values, (*values.shape[:lead], *shape))
    return convert(values, result)


def _checked_share(name: str, q: Any) -> Any:
    """The argument `q`, if it is real numbers, a scalar or a vector."""
    if q.__class__ is float:
        return q
    share = as_array(q, name, 1)
    if share.ndim > 1:
        raise located(ValueError, f"{name}: q must be a scalar or a vector, got shape {share.shape}")
    if not dtypes.is_floating(share.dtype) and not dtypes.is_integer(share.dtype):
        raise located(TypeError, f"{name}: q must be real numbers, got {share.dtype}")
    return q


def _places_of(q: np.ndarray, size: Any, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Between which elements the quantiles lie, and how close to the second one, in double precision."""
    zero = np.zeros_like(q)
    if method in _CONTINUOUS or method in _OF_LINEAR:
        alpha, beta = _CONTINUOUS.get(method, (1.0, 1.0))
        place = q * (size - 1) if alpha == 1 else size * q + (alpha + q * (1 - alpha - beta)) - 1
        place = np.clip(place, 0, size - 1)
        low = np.floor(place)
        high, weight = np.minimum(low + 1, size - 1), place - low
        if method == "lower":
            return low, low, zero
        if method == "higher":
            return np.ceil(place), np.ceil(place), zero
        if method == "nearest":
            nearest = np.round(place)
            return nearest, nearest, zero
        if method == "midpoint":
            return low, np.ceil(place), np.full_like(q, 0.5)
        return low, high, weight
    place = size * q - 1
    if method == "closest_observation":
        place = place - 0.5
    low = np.floor(place)
    fraction = place - low
    if method == "inverted_cdf":
        weight = np.where(fraction > 0, 1.0, 0.0)
    elif method == "averaged_inverted_cdf":
        weight = np.where(fraction > 0, 1.0, 0.5)
    else:  # to the even one of two, counted from 1
        weight = np.where((fraction == 0) & (low % 2 == 1), 0.0, 1.0)
    low, high = (np.clip(p, 0, size - 1) for p in (low, low + 1))
    return low, high, weight


def _combined_on_host(rows, low, high, weight):
    ordered = np.sort(rows, -1)
    below, above = ordered[..., low], ordered[..., high]
    value = np.where((below == above) | (weight == 0), below, below * (1 - weight) + above * weight)
    value = np.where(weight == 1, above, value)
    last = ordered[..., -1:] if low.ndim else ordered[..., -1]
    invalid = last != last
    if invalid.any():
        value = np.where(invalid, last, value)
    return np.moveaxis(value, -1, 0).astype(rows.dtype) if low.ndim else value.astype(rows.dtype)


@as_one_program(_combined_on_host)
def _combined(rows, low, high, weight):
    axis = rows.ndim - 1
    if rows.shape[-1] >= LONG and low.size <= 4:
        invalid = reduce_or(is_nan(rows), (axis,))
        places = (
            [_place(low, high, weight, i) for i in range(low.size)] if low.ndim else [(low, high, weight)]
        )
        values = [_long_weighed(rows, *place, invalid) for place in places]
        return _stack(values, (0, *invalid.shape), rows.dtype) if low.ndim else values[0]
    (ordered,) = sort([rows], axis)
    invalid = is_nan(squeeze(slice_axis(ordered, rows.shape[-1] - 1, rows.shape[-1], axis), (axis,)))
    return _weighed(ordered, low, high, weight, invalid)


def _long_weighed(rows, low, high, weight, invalid):
    """The elements at two neighbouring places of rows that are not sorted, combined."""
    below, above = two_smallest(rows, low)
    above = select(eq(low, high), below, above)
    value = select(eq(weight, 0), below, _between(below, above, weight))
    value = select(eq(weight, 1), above, value)
    return select(invalid, np.array(np.nan, rows.dtype), value)


def _weighed(ordered, low, high, weight, invalid):
    """The elements at two places of sorted rows, combined; a scalar place or a vector of them."""
    if not low.ndim:
        return _one_weighed(ordered, low, high, weight, invalid)
    values = [_one_weighed(ordered, *_place(low, high, weight, i), invalid) for i in range(low.size)]
    return _stack(values, (0, *invalid.shape), ordered.dtype)


def _stack(values, empty_shape, dtype):
    return stack(values, 0) if values else full(empty_shape, 0, dtype)


def _place(low, high, weight, i):
    return (reshape(slice_axis(p, i, i + 1, 0), ()) for p in (low, high, weight))


def _one_weighed(ordered, low, high, weight, invalid):
    below, above = _at(ordered, low), _at(ordered, high)
    value = select(eq(weight, 0), below, _between(below, above, weight))
    value = select(eq(weight, 1), above, value)
    return select(invalid, np.array(np.nan, ordered.dtype), value)


def _at(ordered, place):
    shape = (*ordered.shape[:-1], 1)
    index = broadcast_in_dim(place, shape, ())
    return squeeze(take_along_axis(ordered, index, ordered.ndim - 1), (ordered.ndim - 1,))


@as_one_program()
def _traced_quantile(rows, share, *, method):
    axis, size = rows.ndim - 1, rows.shape[-1]
    (ordered,) = sort([rows], axis)
    invalid = is_nan(squeeze(slice_axis(ordered, size - 1, size, axis), (axis,)))
    count = number_as(size, rows.dtype)
    low, high, weight = _traced_places(share, count, method)
    low, high = (convert_element_type(p, np.int32) for p in (low, high))
    return _weighed(ordered, low, high, weight, invalid)


def _traced_places(share, count, method):
    """`_places_of` as operations; `count` is the number of elements, an array that goes with `share`, or a scalar."""
    zero, one, dtype = np.array(0, share.dtype), np.array(1, share.dtype), share.dtype
    last = sub(count, one)
    top = max_(last, zero)

    def clipped(place):
        return min_(max_(place, zero), top)

    if method in _CONTINUOUS or method in _OF_LINEAR:
        alpha, beta = _CONTINUOUS.get(method, (1.0, 1.0))
        if alpha == 1:
            place = mul(share, last)
        else:
            shift = sub(mul(share, np.array(1 - alpha - beta, dtype)), np.array(1 - alpha, dtype))
            place = add(mul(share, count), shift)
        place = clipped(place)
        low = floor(place)
        weight = sub(place, low)
        next_one = min_(add(low, one), top)
        ceiling = select(gt(weight, zero), next_one, low)
        nothing = mul(weight, zero)
        if method == "lower":
            return low, low, nothing
        if method == "higher":
            return ceiling, ceiling, nothing
        if method == "nearest":  # of two equally near ones, the even
            half = np.array(0.5, dtype)
            is_odd = eq(sub(low, mul(floor(mul(low, half)), np.array(2, dtype))), one)
            up = or_(gt(weight, half), and_(eq(weight, half), is_odd))
            nearest = select(up, next_one, low)
            return nearest, nearest, nothing
        if method == "midpoint":
            return low, ceiling, add(nothing, np.array(0.5, dtype))
        return low, next_one, weight
    place = sub(mul(share, count), np.array(1.5 if method == "closest_observation" else 1, dtype))
    low = floor(place)
    fraction = sub(place, low)
    nothing = mul(fraction, zero)
    full_weight = add(nothing, one)
    if method == "inverted_cdf":
        weight = select(gt(fraction, zero), full_weight, nothing)
    elif method == "averaged_inverted_cdf":
        weight = select(gt(fraction, zero), full_weight, add(nothing, np.array(0.5, dtype)))
    else:
        half = np.array(0.5, dtype)
        is_odd = eq(sub(low, mul(floor(mul(low, half)), np.array(2, dtype))), one)
        weight = select(and_(eq(fraction, zero), is_odd), nothing, full_weight)
    return clipped(low), clipped(add(low, one)), weight


def _nan_quantile_on_host(rows, share, *, method):
    count = np.add.reduce(rows == rows, -1)
    ordered = np.sort(rows, -1)
    results = []
    for one in np.atleast_1d(share).astype(np.float64):
        low, high, weight = _places_of(np.full(count.shape, one), np.maximum(count, 1), method)
        below, above = (
            np.take_along_axis(ordered, p.astype(int)[..., None], -1)[..., 0] for p in (low, high)
        )
        value = np.where((below == above) | (weight == 0), below, below * (1 - weight) + above * weight)
        results.append(np.where(count == 0, np.nan, np.where(weight == 1, above, value)))
    result = np.stack(results) if results else np.zeros((0, *count.shape))
    return (result if share.ndim else result[0]).astype(rows.dtype)


@as_one_program(_nan_quantile_on_host)
def _nan_quantile(rows, share, *, method):
    """Sorting puts NaN last, so that the quantile is one of the first elements of each row."""
    axis = rows.ndim - 1
    count = reduce_sum(convert_element_type(not_(is_nan(rows)), rows.dtype), (axis,))
    (ordered,) = sort([rows], axis)
    nothing = eq(count, 0)
    values = []
    shares = (
        [reshape(slice_axis(share, i, i + 1, 0), ()) for i in range(share.size)] if share.ndim else [share]
    )
    for one in shares:
        low, high, weight = _traced_places(broadcast_in_dim(one, count.shape, ()), count, method)
        low, high = (expand_dims(convert_element_type(p, np.int32), (axis,)) for p in (low, high))
        below, above = (squeeze(take_along_axis(ordered, p, axis), (axis,)) for p in (low, high))
        value = select(eq(weight, 0), below, _between(below, above, weight))
        value = select(eq(weight, 1), above, value)
        values.append(select(nothing, np.array(np.nan, rows.dtype), value))
    return _stack(values, (0, *count.shape), rows.dtype) if share.ndim else values[0]


# --- weights


def _weight_rows(name, weights, x, axis, axes, rows) -> Array:
    w = convert_element_type(as_array(weights, f"{name}(weights=...)"), rows.dtype)
    if w.shape != x.shape:
        wanted = tuple([x.shape[i] for i in axes])
        if axis is None or w.shape != wanted:
            raise located(
                ValueError,
                f"{name}: weights of shape {w.shape} must have the shape {x.shape} of the array, or its shape "
                f"{wanted} along axis={axis}",
            )
        return broadcast_in_dim(reshape(w, (rows.shape[-1],)), rows.shape, (rows.ndim - 1,))
    return reshape(transpose(w, (*kept_axes(x.ndim, axes), *axes)), rows.shape)


@as_one_program()
def _weighted_quantile(rows, weights, share, *, leaves_nan_out):
    """The first element up to which the weights sum up to the share of their total."""
    axis = rows.ndim - 1
    invalid = reduce_or(is_nan(rows), (axis,))
    if leaves_nan_out:
        weights = select(is_nan(rows), np.array(0, rows.dtype), weights)
    ordered, weights = sort([rows, weights], axis)
    sums = cumsum(weights, axis)
    total = slice_axis(sums, rows.shape[-1] - 1, rows.shape[-1], axis)
    values = []
    shares = (
        [reshape(slice_axis(share, i, i + 1, 0), ()) for i in range(share.size)] if share.ndim else [share]
    )
    for one in shares:
        wanted = broadcast_in_dim(mul(total, one), sums.shape, range(rows.ndim))
        reached = and_(ge(sums, wanted), or_(gt(weights, 0), gt(wanted, 0)))
        index = expand_dims(argmax(reached, axis, np.int32), (axis,))
        value = squeeze(take_along_axis(ordered, index, axis), (axis,))
        if leaves_nan_out:
            empty = lt(squeeze(total, (axis,)), np.array(np.finfo(np.float32).tiny, rows.dtype))
            value = select(empty, np.array(np.nan, rows.dtype), value)
        else:
            value = select(invalid, np.array(np.nan, rows.dtype), value)
        values.append(value)
    return _stack(values, (0, *rows.shape[:-1]), rows.dtype) if share.ndim else values[0]
