"""Means and variances.

Integers are averaged as floating point numbers. Narrow floats are summed in float32 and rounded once at the end. The
mean over no elements is NaN, without a warning.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.dimensions import is_at_most
from purax.core.source import located
from purax.core.trace import current
from purax.errors import shown
from purax.execution.eager import _Quiet, eager
from purax.numpy._programs import as_one_program, concrete_value, host_array, small_host_value, strong_array
from purax.numpy._promotion import FLOAT32, as_array, convert, refuse_out
from purax.numpy._reductions.reductions import Axis, check_where, requested_dtype
from purax.numpy._shape.axes import canonical_axes, with_kept_axes
from purax.primitives.elementwise.arithmetic import div, sqrt, square, sub, truncated_quotient
from purax.primitives.elementwise.conversion import convert_element_type, imag, real
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import gt, select
from purax.primitives.shape.broadcasting import broadcast_in_dim, kept_axes, reduce_sum, transpose
from purax.primitives.shape.dimension_value import number_as
from purax.typing import ArrayLike, DTypeLike
from purax.xla.array import DeviceArray

_quiet = _Quiet()
_add_reduce = np.add.reduce


def size_along(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """The number of elements that a reduction over `axes` combines into one."""
    return math.prod([shape[axis] for axis in axes])


def computed_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which statistics of `dtype` are computed: float32 for narrower floats."""
    return FLOAT32 if dtypes.is_floating(dtype) and dtype.itemsize < 4 else dtype


def divide_by_count(total: Any, count: Any) -> Any:
    """`total / count`, where the count is a number or an array, in the dtype of the total."""
    if isinstance(count, (int, float)):
        return div(total, np.array(count).astype(total.dtype))
    return div(total, convert_element_type(count, total.dtype))


# --- means


def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of elements along axes.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        dtype: of the result; the elements are converted first.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        where: a mask of the elements that count.

    Returns:
        The means; NaN over no elements.

    >>> import purax.numpy as jnp
    >>> jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    if a.__class__ is DeviceArray and not a.aval.weak_type:
        x: Array = a
        if (
            a.aval.dtype is FLOAT32
            and dtype is None
            and where is None
            and out is None
            and current.trace is eager
        ):
            value = small_host_value(a)
            if value is not None:
                if axis is None and not keepdims:
                    return DeviceArray(_FLOAT32_SCALAR, np.asarray(_quiet.run(_mean_of_all, value)))
                axes = None if axis is None else canonical_axes("mean", axis, a.aval.ndim)
                return host_array(_quiet.run(_mean_of_float32, value, axes, bool(keepdims)))
    else:
        x = strong_array(a, "mean")
    if out is not None:
        refuse_out("mean", out)
    own = x.aval.dtype
    if dtype is not None:
        result = own = requested_dtype("mean", dtype)
        if own == np.bool_:
            raise located(TypeError, "mean: dtype must be one of numbers, got bool")
    elif own is FLOAT32:
        result = own
    else:
        result = dtypes.to_inexact_dtype(own)
        own = computed_dtype(result)
    if own is not x.aval.dtype:
        x = convert(x, own)
    axes = canonical_axes("mean", axis, x.aval.ndim)
    if where is not None:
        average = _masked_mean(x, check_where("mean", where, x.shape), axes=axes, keepdims=bool(keepdims))
    else:
        average = _mean(x, axes=axes, keepdims=bool(keepdims))
    return average if own is result else convert(average, result)


_FLOAT32_SCALAR = ShapedArray((), FLOAT32)


def _mean_of_all(x):
    return _add_reduce(x, None) / x.size


def _mean_of_float32(x, axes, keepdims):
    total = _add_reduce(x, axes, None, None, keepdims)
    return total / (x.size if axes is None else size_along(x.shape, axes))


def _mean_on_host(x, *, axes, keepdims):
    dtype = x.dtype
    count = x.size if len(axes) == x.ndim else size_along(x.shape, axes)
    if dtypes.is_integer(dtype):
        return _integer_mean(np.sum(x, axes, np.int64, keepdims=keepdims), np.array(count), dtype)
    if dtype.kind not in "fc" or dtype.itemsize < 4:
        return np.mean(x.astype(np.float32), axes, keepdims=keepdims).astype(dtype)
    return np.add.reduce(x, axes, keepdims=keepdims) / dtype.type(count)


def _integer_mean(total, count, dtype):
    """A mean of integers that wrap around, as programs compute it."""
    return truncated_quotient(total.astype(dtype), count.astype(dtype))


@as_one_program(_mean_on_host)
def _mean(x, *, axes, keepdims):
    count = size_along(x.shape, axes)
    result = divide_by_count(reduce_sum(x, axes), count)
    return with_kept_axes(result, x.shape, axes) if keepdims else result


def _masked_mean_on_host(x, mask, *, axes, keepdims):
    dtype = x.dtype
    if mask.shape != x.shape:
        mask = np.broadcast_to(mask, x.shape)
    if dtypes.is_integer(dtype):
        total, count = (np.sum(v, axes, np.int64, where=mask, keepdims=keepdims) for v in (x, mask))
        return _integer_mean(total, count, dtype)
    if dtype.kind not in "fc" or dtype.itemsize < 4:
        return np.mean(x.astype(np.float32), axes, where=mask, keepdims=keepdims).astype(dtype)
    total = np.add.reduce(x, axes, where=mask, keepdims=keepdims)
    return total / np.add.reduce(mask, axes, dtype, keepdims=keepdims)


@as_one_program(_masked_mean_on_host)
def _masked_mean(x, mask, *, axes, keepdims):
    zero = np.array(0, x.dtype)
    mask = broadcast_in_dim(mask, x.shape, ()) if not mask.ndim else mask
    total = reduce_sum(select(mask, x, zero), axes)
    result = div(total, reduce_sum(convert_element_type(mask, x.dtype), axes))
    return with_kept_axes(result, x.shape, axes) if keepdims else result


def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """The weighted mean of elements along axes.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        weights: an array of the shape of `a`, or of its shape along `axis`; None for equal weights.
        returned: whether to return the sums of the weights, too.
        keepdims: whether the reduced axes stay, with size 1.

    Returns:
        The means, or a pair of the means and the sums of the weights. NaN where all weights are 0.

    >>> import purax.numpy as jnp
    >>> jnp.average(jnp.array([1.0, 2.0, 4.0]), weights=jnp.array([1, 0, 1]))
    Array(2.5, dtype=float32)
    """
    x = strong_array(a, "average")
    axes = canonical_axes("average", axis, x.ndim)
    if weights is None:
        result = mean(x, axes, None, None, keepdims)
        if not returned:
            return result
        count = number_as(size_along(x.shape, axes), result.dtype)
        return result, broadcast_in_dim(as_array(count, "average"), result.shape, ())
    w = as_array(weights, "average", 2)
    dtype = dtypes.to_inexact_dtype(dtypes.lattice_result_type(x, w)[0])
    x, w = convert_element_type(x, dtype), convert_element_type(w, dtype)
    if w.shape != x.shape:
        if axis is None:
            raise located(
                ValueError,
                f"average: axis must be specified when shapes of a and weights differ: {x.shape} and {w.shape}",
            )
        wanted = tuple([x.shape[i] for i in axes])
        if w.shape != wanted:
            raise located(
                ValueError,
                f"average: shape of weights must be consistent with shape of a along the specified axis: weights "
                f"have shape {w.shape}, a of shape {x.shape} has {wanted} along axis {axis}",
            )
        order = np.argsort(axes).tolist()
        w = broadcast_in_dim(transpose(w, order), x.shape, [axes[i] for i in order])
    total, result = _weighted_mean(x, w, axes=axes)
    if keepdims:
        total, result = (with_kept_axes(y, x.shape, axes) for y in (total, result))
    return (result, total) if returned else result


def _weighted_mean_on_host(x, weights, *, axes):
    dtype = x.dtype
    if dtypes.is_floating(dtype) and dtype.itemsize < 4:
        x, weights = x.astype(np.float32), weights.astype(np.float32)
    total = np.add.reduce(weights, axes)
    return np.asarray(total).astype(dtype), np.asarray(np.add.reduce(x * weights, axes) / total).astype(dtype)


@as_one_program(_weighted_mean_on_host)
def _weighted_mean(x, weights, *, axes):
    total = reduce_sum(weights, axes)
    return total, div(reduce_sum(mul(x, weights), axes), total)


# --- variances


def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The variance of elements along axes: the mean squared distance from the mean.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        dtype: of the result; the elements are converted first.
        out: not supported.
        ddof: what is subtracted from the number of elements before dividing by it.
        keepdims: whether the reduced axes stay, with size 1.
        where: a mask of the elements that count.
        mean: the mean, if it is known, with the reduced axes kept.
        correction: another name of `ddof`.

    Returns:
        The variances, real also for complex arrays; NaN where `ddof` is not less than the number of elements.

    >>> import purax.numpy as jnp
    >>> jnp.var(jnp.array([[1.0, 3.0], [2.0, 2.0]]), axis=1)
    Array([1., 0.], dtype=float32)
    """
    return _spread("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction, False)


def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The standard deviation of elements along axes: the square root of the variance.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        dtype: of the result; the elements are converted first.
        out: not supported.
        ddof: what is subtracted from the number of elements before dividing by it.
        keepdims: whether the reduced axes stay, with size 1.
        where: a mask of the elements that count.
        mean: the mean, if it is known, with the reduced axes kept.
        correction: another name of `ddof`.

    Returns:
        The standard deviations, real also for complex arrays.

    >>> import purax.numpy as jnp
    >>> jnp.std(jnp.array([1, 3, 5, 7]), ddof=1)
    Array(2.5819888, dtype=float32)
    """
    return _spread("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction, True)


def spread_dtypes(name: str, x: Array, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """The dtype in which a variance is computed and that of the result."""
    if dtype is None:
        computed = dtypes.to_inexact_dtype(x.dtype)
        return computed_dtype(computed), dtypes.to_real_dtype(computed)
    result = requested_dtype(name, dtype)
    if not dtypes.is_inexact(result):
        raise located(
            TypeError,
            f"{name}: dtype must be a floating point dtype, got {dtypes.dtype_name(result)}: variances are not "
            "integers. Convert the result with `.astype`.",
        )
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(result):
        raise located(
            ValueError,
            f"{name}: dtype {dtypes.dtype_name(result)} would drop the imaginary parts of the "
            f"{dtypes.dtype_name(x.dtype)} array. Leave dtype out: the variance of complex numbers is real.",
        )
    return computed_dtype(result), result


def _spread(name, a, axis, dtype, out, ddof, keepdims, where, mean, correction, is_root):
    refuse_out(name, out)
    if correction is not None:
        if ddof:
            raise located(
                ValueError, f"{name}: ddof and correction can't be provided simultaneously; they are the same"
            )
        ddof = correction
    ddof = as_correction(name, ddof)
    x = strong_array(a, name)
    computed, result = spread_dtypes(name, x, dtype)
    x = convert(x, computed)
    axes = canonical_axes(name, axis, x.ndim)
    operands = [x]
    if where is not None:
        mask = check_where(name, where, x.shape)
        operands.append(mask if mask.ndim else broadcast_in_dim(mask, x.shape, ()))
    if mean is not None:
        operands.append(_known_mean(name, mean, x, axes))
    value = _variance(
        *operands, axes=axes, ddof=ddof, has_mask=where is not None, has_mean=mean is not None, is_root=is_root
    )  # fmt: skip
    if keepdims:
        value = with_kept_axes(value, x.shape, axes)
    return convert(value, result)


def as_correction(name: str, ddof: Any) -> float:
    """The number that is subtracted from the number of elements, of whatever type it was given."""
    if ddof.__class__ is int or ddof.__class__ is float:
        return ddof
    value = concrete_value(as_array(ddof, f"{name}(ddof=...)"))
    if value is None or value.ndim or value.dtype.kind not in "biuf":
        raise located(TypeError, f"{name}: ddof must be a number that is known, got {shown(ddof)}")
    return value.item()


def _known_mean(name: str, mean: Any, x: Array, axes: tuple[int, ...]) -> Array:
    center = convert_element_type(as_array(mean, f"{name}(mean=...)"), x.dtype)
    extra = x.ndim - center.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(center.shape, x.shape[extra:], strict=True)):
        raise located(
            ValueError,
            f"{name}: mean of shape {center.shape} does not broadcast to the shape {x.shape} of the array; keep "
            "the reduced axes: jnp.mean(x, axis, keepdims=True)",
        )
    return broadcast_in_dim(center, x.shape, range(extra, x.ndim))


def _variance_on_host(x, *operands, axes, ddof, has_mask, has_mean, is_root):
    mask = operands[0] if has_mask else None
    if has_mask:
        count = np.add.reduce(mask, axes, dtype=np.int64, keepdims=True)
    else:
        count = size_along(x.shape, axes)
    real_type = x.real.dtype.type
    if has_mean:
        center = operands[-1]
    else:
        total = np.add.reduce(x if mask is None else np.where(mask, x, x.dtype.type(0)), axes, keepdims=True)
        center = (total / np.asarray(count, real_type)).astype(x.dtype)
    distance = x - center
    squares = distance.real**2 + distance.imag**2 if x.dtype.kind == "c" else distance * distance
    if has_mask:
        squares = np.where(mask, squares, real_type(0))
        count = count.reshape([n for axis, n in enumerate(x.shape) if axis not in axes])
    freedom = np.asarray(count - ddof, real_type)
    result = np.add.reduce(squares, axes) / freedom
    result = np.where(freedom > 0, result, real_type(np.nan)).astype(real_type)
    return np.sqrt(result) if is_root else result


@as_one_program(_variance_on_host)
def _variance(x, *operands, axes, ddof, has_mask, has_mean, is_root):
    mask = operands[0] if has_mask else None
    zero = np.array(0, x.dtype)
    kept = kept_axes(x.ndim, axes)
    if has_mask:
        count = reduce_sum(convert_element_type(mask, dtypes.to_real_dtype(x.dtype)), axes)
    else:
        count = size_along(x.shape, axes)
    if has_mean:
        center = operands[-1]
    else:
        total = reduce_sum(select(mask, x, zero) if has_mask else x, axes)
        center = broadcast_in_dim(divide_by_count(total, count), x.shape, kept)
    distance = sub(x, center)
    # What is masked is left out before it is squared, so that its derivative is 0, also where it is NaN.
    squares = square_length(select(mask, distance, zero) if has_mask else distance)
    total = reduce_sum(squares, axes)
    if has_mask:
        freedom = sub(count, np.array(ddof, count.dtype))
        result = div(total, freedom)
        result = select(gt(freedom, np.array(0, count.dtype)), result, np.array(np.nan, result.dtype))
    elif is_at_most(count, ddof):
        result = broadcast_in_dim(np.array(np.nan, total.dtype), total.shape, ())
    else:
        result = div(total, number_as(count - ddof, total.dtype))
    return sqrt(result) if is_root else result


def square_length(x: Any) -> Any:
    """|x|², real."""
    if dtypes.is_complex(x.dtype):
        return add(square(real(x)), square(imag(x)))
    return square(x)
