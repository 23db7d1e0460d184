"""Reductions that leave NaN out: the `nan…` functions. On arrays that cannot hold NaN they are the plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.numpy._programs import as_one_program, strong_array
from purax.numpy._promotion import refuse_out
from purax.numpy._reductions.reductions import (
    Axis,
    argmax,
    argmin,
    check_not_empty,
    check_where,
    max,
    min,
    prod,
    sum,
)
from purax.numpy._reductions.statistics import as_correction, mean, spread_dtypes, std, var
from purax.numpy._shape.axes import canonical_axes, with_kept_axes
from purax.primitives.elementwise import extrema_on_host
from purax.primitives.elementwise.logic import and_, eq, ne, not_, select
from purax.primitives.reductions.reduction import highest, lowest, reduce_and, reduce_max, reduce_min
from purax.typing import ArrayLike, DTypeLike


def is_nan(x: Any) -> Any:
    """Where x is NaN; for complex numbers, where a part is."""
    return ne(x, x)


def without_nan(x: Array, value: Any) -> Array:
    """`x` with a number in the place of NaN."""
    if not dtypes.is_inexact(x.dtype):
        return x
    return select(is_nan(x), np.array(value, x.dtype), x)


def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum of elements along axes; NaN counts as 0. Arguments as those of `sum`.

    >>> import purax.numpy as jnp
    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
    Array(3., dtype=float32)
    """
    refuse_out("nansum", out)
    return sum(without_nan(strong_array(a, "nansum"), 0), axis, dtype, None, keepdims, initial, where)


def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product of elements along axes; NaN counts as 1. Arguments as those of `prod`.

    >>> import purax.numpy as jnp
    >>> jnp.nanprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array(6., dtype=float32)
    """
    refuse_out("nanprod", out)
    return prod(without_nan(strong_array(a, "nanprod"), 1), axis, dtype, None, keepdims, initial, where)


def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element along axes that is not NaN; NaN if all are. Arguments as those of `max`.

    >>> import purax.numpy as jnp
    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2., dtype=float32)
    """
    return _nan_extremum("nanmax", a, axis, out, keepdims, initial, where, max, lowest)


def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element along axes that is not NaN; NaN if all are. Arguments as those of `min`.

    >>> import purax.numpy as jnp
    >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmin", a, axis, out, keepdims, initial, where, min, highest)


def _nan_extremum(name, a, axis, out, keepdims, initial, where, extremum, worst):
    refuse_out(name, out)
    x = strong_array(a, name)
    if not dtypes.is_inexact(x.dtype):
        return extremum(x, axis, None, keepdims, initial, where)
    axes = canonical_axes(name, axis, x.ndim)
    if initial is None:
        check_not_empty(name, x, axes)
    if initial is None and where is None and not keepdims and not dtypes.is_complex(x.dtype):
        return (_nanmax if extremum is max else _nanmin)(x, axes=axes)
    filled = without_nan(x, worst(x.dtype))
    result = extremum(filled, axes, None, keepdims, initial, where)
    if initial is not None:
        return result
    nothing = reduce_and(is_nan(x), axes)
    if keepdims:
        nothing = with_kept_axes(nothing, x.shape, axes)
    return select(nothing, np.array(np.nan, x.dtype), result)


def _nanmax_on_host(x, *, axes):
    wide = x if x.dtype.itemsize >= 4 else x.astype(np.float32)
    return extrema_on_host.maximum_of_numbers.reduce(wide, axes).astype(x.dtype)


def _nanmin_on_host(x, *, axes):
    wide = x if x.dtype.itemsize >= 4 else x.astype(np.float32)
    return extrema_on_host.minimum_of_numbers.reduce(wide, axes).astype(x.dtype)


@as_one_program(_nanmax_on_host)
def _nanmax(x, *, axes):
    result = reduce_max(without_nan(x, lowest(x.dtype)), axes)
    return select(reduce_and(is_nan(x), axes), np.array(np.nan, x.dtype), result)


@as_one_program(_nanmin_on_host)
def _nanmin(x, *, axes):
    result = reduce_min(without_nan(x, highest(x.dtype)), axes)
    return select(reduce_and(is_nan(x), axes), np.array(np.nan, x.dtype), result)


def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements along axes that are not NaN; NaN if all are. Arguments as those of `mean`.

    >>> import purax.numpy as jnp
    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1.5, dtype=float32)
    """
    refuse_out("nanmean", out)
    x = strong_array(a, "nanmean")
    if not dtypes.is_inexact(x.dtype):
        return mean(x, axis, dtype, None, keepdims, where=where)
    if where is None and dtype is None and x.dtype.itemsize >= 4:
        return _nanmean(x, axes=canonical_axes("nanmean", axis, x.ndim), keepdims=bool(keepdims))
    return mean(x, axis, dtype, None, keepdims, where=_numbers("nanmean", x, where))


def _nanmean_on_host(x, *, axes, keepdims):
    is_number = x == x
    total = np.add.reduce(x, axes, where=is_number, keepdims=keepdims)
    return total / np.add.reduce(is_number, axes, x.dtype, keepdims=keepdims)


@as_one_program(_nanmean_on_host)
def _nanmean(x, *, axes, keepdims):
    return mean(x, axes, None, None, keepdims, where=not_(is_nan(x)))


def _numbers(name: str, x: Array, where: Any) -> Array:
    """Where `x` is a number and counts."""
    mask = not_(is_nan(x))
    return mask if where is None else and_(mask, check_where(name, where, x.shape))


def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance of the elements along axes that are not NaN. Arguments as those of `var`.

    Where `ddof` leaves nothing to divide by, the result is NaN.

    >>> import purax.numpy as jnp
    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    return _nan_spread("nanvar", a, axis, dtype, out, ddof, keepdims, where, mean)


def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation of the elements along axes that are not NaN. Arguments as those of `std`.

    >>> import purax.numpy as jnp
    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    return _nan_spread("nanstd", a, axis, dtype, out, ddof, keepdims, where, mean)


def _nan_spread(name, a, axis, dtype, out, ddof, keepdims, where, center):
    refuse_out(name, out)
    x = strong_array(a, name)
    plain = std if name == "nanstd" else var
    if not dtypes.is_inexact(x.dtype):
        return plain(x, axis, dtype, None, ddof, keepdims, where=where, mean=center)
    ddof = as_correction(name, ddof)
    spread_dtypes(name, x, dtype)
    mask = _numbers(name, x, where)
    result = plain(x, axis, dtype, None, ddof, keepdims, where=mask, mean=center)
    if not ddof:
        return result
    count = sum(mask, axis, None, None, keepdims)
    return select(eq(count, np.array(ddof, count.dtype)), np.array(np.nan, result.dtype), result)


def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first largest element along an axis that is not NaN; -1 if all are.

    Args:
        a: an array.
        axis: the axis; None for the flattened array.
        out: not supported: arrays are immutable.
        keepdims: whether to keep the axes, with size 1.

    >>> import purax.numpy as jnp
    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 2.0]))
    Array(2, dtype=int32)
    """
    return _nan_arg_extremum("nanargmax", a, axis, out, keepdims, argmax, lowest)


def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first smallest element along an axis that is not NaN; -1 if all are.

    Args:
        a: an array.
        axis: the axis; None for the flattened array.
        out: not supported: arrays are immutable.
        keepdims: whether to keep the axes, with size 1.

    >>> import purax.numpy as jnp
    >>> jnp.nanargmin(jnp.array([1.0, jnp.nan, 2.0]))
    Array(0, dtype=int32)
    """
    return _nan_arg_extremum("nanargmin", a, axis, out, keepdims, argmin, highest)


def _nan_arg_extremum(name, a, axis, out, keepdims, find, worst):
    refuse_out(name, out)
    x = strong_array(a, name)
    if not dtypes.is_inexact(x.dtype):
        return find(x, axis, None, keepdims)
    axes = canonical_axes(name, axis, x.ndim)
    result = find(without_nan(x, worst(x.dtype)), axis, None, keepdims)
    nothing = reduce_and(is_nan(x), axes)
    if keepdims:
        nothing = with_kept_axes(nothing, x.shape, axes)
    return select(nothing, np.array(-1, result.dtype), result)
