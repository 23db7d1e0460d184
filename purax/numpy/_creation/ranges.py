"""Evenly spaced numbers: `arange`, `linspace`, `logspace`, `geomspace`.

Concrete ends are computed in float64 and rounded once, also inside of transformations.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, overload

import numpy as np

from purax.api.transfer import device_put
from purax.config import config
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.dimensions import SymbolicDimension, as_size, is_symbolic_shape, non_negative
from purax.core.limits import numpy_value
from purax.core.source import located
from purax.core.trace import Tracer, current
from purax.errors import shown
from purax.execution.eager import eager
from purax.numpy._creation.creation import asarray
from purax.numpy._elementwise.arithmetic import power
from purax.numpy._promotion import (
    PYTHON_NUMBERS,
    as_operand,
    broadcast_operands,
    common_dtype,
    convert,
    dtype_of,
    quiet,
    shape_of,
    stretch,
)
from purax.numpy._shape.axes import canonical_axis
from purax.numpy._shape.shaping import moveaxis
from purax.primitives.elementwise.arithmetic import div, floor, sub
from purax.primitives.elementwise.conversion import convert_element_type, converted
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import eq, select
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.primitives.shape.reshaping import iota
from purax.sharding.constraints import put_at
from purax.typing import ArrayLike, DTypeLike
from purax.xla import client
from purax.xla.array import DeviceArray

_FLOAT64 = np.dtype(np.float64)
_INT32 = np.dtype(np.int32)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """start, start + step, start + 2 step, … up to, not including, stop.

    Args:
        start: the first number; `arange(n)` counts from 0 up to n.
        stop: the end, which is not included.
        step: the distance, by default 1.
        dtype: of the result; by default that of the arguments.
        device: where to put it.

    Returns:
        An array with one axis. Its length is part of the program, so the arguments must be known under `jit`.

    >>> import purax.numpy as jnp
    >>> jnp.arange(3), jnp.arange(1, 2, 0.25), jnp.arange(5, 0, -2)
    (Array([0, 1, 2], dtype=int32), Array([1.  , 1.25, 1.5 , 1.75], dtype=float32), Array([5, 3, 1], dtype=int32))
    """
    place = device if device is not None else out_sharding
    if start.__class__ is int and dtype is None and stop is None and step is None and place is None:
        return _count(0, 1, max(start, 0), dtypes.default_int(), (0, start))
    if stop is None:
        start, stop, names = 0, start, ("start", "stop", "step")
    else:
        names = ("start", "stop", "step")
    given = (start, stop, 1 if step is None else step)
    values = [_concrete_number(x, name) for x, name in zip(given, names, strict=True)]
    if dtype is None:
        wanted, _ = dtypes.lattice_result_type(
            *[x for x in given if x is not None and not (x is start and stop is None)]
        )
    else:
        wanted = dtypes.as_dtype(dtype)
    if wanted == np.bool_:
        raise located(TypeError, "arange does not make truth values; ask for integers and compare them")
    first, last, distance = values
    if is_symbolic_shape(values):
        size = non_negative(-((first - last) // distance))
        return put_at(_count(first, distance, size, wanted, (first, last)), place)
    if distance == 0:
        raise located(ZeroDivisionError, "arange: the step is zero")
    length = (
        (last - first) / distance
        if isinstance(distance, float) or isinstance(last, float) or isinstance(first, float)
        else -((first - last) // distance)
    )
    if length != length or length in (math.inf, -math.inf):
        raise located(ValueError, f"arange: start {first}, stop {last} and step {distance} give no length")
    result = _count(first, distance, max(math.ceil(length), 0), wanted, (first, last))
    return put_at(result, place)


def _concrete_number(x: Any, name: str) -> Any:
    """An argument of `arange` as a Python number."""
    if x.__class__ is int or x.__class__ is float or x.__class__ is SymbolicDimension:
        return x
    if isinstance(x, Tracer) and x.constant_or_none() is None:
        x.concrete(f"the argument `{name}` of jnp.arange, which decides on the length of the result,")
    if isinstance(x, (complex, np.complexfloating)) or dtypes.is_complex(getattr(x, "dtype", None)):
        raise located(ValueError, f"arange: {name} must be a real number, got {shown(x)}")
    if isinstance(x, (Array, np.ndarray)) and x.ndim:
        raise located(ValueError, f"arange: the arguments must be scalars, got {name} of shape {x.shape}")
    try:
        number = numpy_value(x).item() if not isinstance(x, (str, bytes)) and x is not None else None
    except (TypeError, ValueError):
        number = None
    if not isinstance(number, (int, float)):
        raise located(
            TypeError, f"arange: {name} must be a number, got {shown(x)} of type {type(x).__name__}"
        )
    return number


def _count(first: Any, step: Any, length: Any, dtype: Any, ends: tuple) -> Array:
    """first + i·step for i < length."""
    if is_symbolic_shape((first, step, length)):
        count = iota(dtype, (length,))
        if step != 1:
            count = mul(count, convert_element_type(step, dtype))
        return add(count, convert_element_type(first, dtype)) if first != 0 else count
    if dtypes.is_integer(dtype) and length:
        lowest, highest = _limits(dtype)
        for extreme in (first, first + step * (length - 1)):
            if not lowest <= extreme <= highest:
                raise located(
                    OverflowError,
                    f"arange from {ends[0]} to {ends[1]} does not fit into {dtypes.dtype_name(dtype)}, which holds "
                    f"{lowest} to {highest}. Ask for a wider dtype by name: dtype='int64'.",
                )
    if current.trace is eager and (
        length <= config.host_size_limit or client.default_device().platform == "cpu"
    ):
        return DeviceArray(ShapedArray((length,), dtype), _count_on_host(first, step, length, dtype))
    if dtypes.is_integer(dtype) and isinstance(first, int) and isinstance(step, int):
        count = iota(dtype, (length,))
        if step != 1:
            count = mul(count, step)
        return add(count, first) if first else count
    if first == 0 and step == 1:
        return iota(dtype, (length,))
    exact = add(mul(iota(_FLOAT64, (length,)), float(step)), float(first))
    return convert_element_type(exact, dtype)


@functools.lru_cache
def _limits(dtype: Any) -> tuple[int, int]:
    limits = dtypes.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _count_on_host(first: Any, step: Any, length: int, dtype: np.dtype) -> np.ndarray:
    if isinstance(first, int) and isinstance(step, int):
        if dtype.kind in "iu" and dtype.isbuiltin == 1:
            return (
                np.arange(first, first + step * length, step, dtype=dtype) if length else np.zeros(0, dtype)
            )
        return np.arange(first, first + step * length, step).astype(dtype) if length else np.zeros(0, dtype)
    return converted(np.arange(length) * float(step) + float(first), dtype)


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Any = None,
) -> tuple[Array, Array]: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Array | tuple[Array, Array]:
    """Evenly spaced numbers from `start` to `stop`.

    Args:
        start: the first number, or an array of them.
        stop: the last number.
        num: how many.
        endpoint: whether `stop` is included.
        retstep: whether to return the distance, too.
        dtype: of the result; by default that of the ends, floating point.
        axis: where the new axis is when the ends are arrays.
        device: where to put it.

    Returns:
        An array, or an array and the distance.

    >>> import purax.numpy as jnp
    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = _number_of_samples(num, "linspace")
    if start.__class__ is float and stop.__class__ is float:
        first, last = start, stop
        computed = dtypes.default_float()
    else:
        first, last = as_operand(start, "linspace", 0), as_operand(stop, "linspace", 1)
        computed = dtypes.to_inexact_dtype(common_dtype([first, last])[0])
    computed, wanted = _dtypes_of_samples(computed, dtype)
    intervals = num - 1 if endpoint else num
    step: Any
    if first.__class__ in PYTHON_NUMBERS and last.__class__ in PYTHON_NUMBERS and num.__class__ is int:
        result, step = _linspace_of_numbers(first, last, num, intervals, endpoint, computed, wanted)
        if retstep:
            step = asarray(step, dtype=computed)
        if axis != 0:
            canonical_axis("linspace", axis, 1)
    else:
        result, step = _linspace_of_arrays(first, last, num, intervals, endpoint, computed, wanted)
        result = moveaxis(result, 0, axis)
    if device is not None:
        result = device_put(result, device)
    if not retstep:
        return result
    return result, convert_element_type(step, wanted if dtypes.is_inexact(wanted) else computed)


def _dtypes_of_samples(computed: Any, dtype: DTypeLike | None) -> tuple[Any, Any]:
    """The dtype that samples are computed in, with as many digits as are asked for, and that of the result."""
    if dtype is None:
        return computed, computed
    wanted = dtypes.as_dtype(dtype)
    if not dtypes.is_inexact(wanted):
        return computed, wanted
    own, digits = (dtypes.to_real_dtype(x) if dtypes.is_complex(x) else x for x in (computed, wanted))
    if dtypes.itemsize_bits(digits) > dtypes.itemsize_bits(own):
        computed = dtypes.promote_pair(computed, False, digits, False)[0]
    return computed, wanted


def _number_of_samples(num: Any, name: str) -> int:
    num = as_size(num)
    if num < 0:
        raise located(ValueError, f"{name}: the number of samples must be non-negative, got {num}")
    return num


def _linspace_of_numbers(first, last, num, intervals, endpoint, computed, wanted):
    wide = complex if dtypes.is_complex(computed) else float
    first, last = wide(first), wide(last)
    step = (last - first) / intervals if intervals > 0 else math.nan
    host = quiet.run(_evenly_spaced, first, last, step, num, intervals, endpoint, wanted)
    return DeviceArray(ShapedArray((num,), wanted), host), step


def _evenly_spaced(first, last, step, num, intervals, endpoint, wanted):
    if intervals <= 0:
        values = np.full(num, first)
    elif num <= 16:  # the same numbers, and NumPy's operations would cost more
        values = np.array([first + i * step for i in range(num)])
    else:
        values = np.arange(num, dtype=type(step))
        values *= step
        values += first
    if endpoint and intervals > 0:
        values[-1] = last
    if wanted.kind == "f":
        return values.astype(wanted)
    return converted(np.floor(values) if dtypes.is_integer(wanted) else values, wanted)


def _linspace_of_arrays(first, last, num, intervals, endpoint, computed, wanted):
    first, last = (convert(x, computed) for x in broadcast_operands("linspace", [first, last]))
    shape = shape_of(first) or shape_of(last)
    first, last = (stretch(x, shape) if shape_of(x) != shape else x for x in (first, last))
    real = dtypes.to_real_dtype(computed)
    if intervals == 0:
        step = asarray(np.full(shape, np.nan), dtype=computed)
        result = broadcast_in_dim(first, (num, *shape), range(1, len(shape) + 1))
        return convert_element_type(result, wanted), step
    is_symbolic = num.__class__ is SymbolicDimension
    distances = asarray(intervals) if is_symbolic else intervals
    step = div(sub(last, first), convert(distances, computed))
    # (1 − t) start + t stop: exact at both ends.
    exact = real if real.itemsize >= 4 else np.dtype(np.float32)
    if is_symbolic:
        count = convert(div(iota(exact, (num,)), convert_element_type(distances, exact)), computed)
    else:
        count = convert(asarray((np.arange(num) / intervals).astype(exact)), computed)
    full = (num, *shape)
    t = broadcast_in_dim(count, full, (0,))
    first, last = (broadcast_in_dim(x, full, range(1, len(full))) for x in (first, last))
    result = add(mul(first, sub(1, t)), mul(last, t))
    if is_symbolic and endpoint:
        is_end = eq(iota(_INT32, (num,)), convert_element_type(distances, _INT32))
        result = select(broadcast_in_dim(is_end, full, (0,)), last, result)
    elif endpoint and num > 1:
        is_end = asarray(np.arange(num) == num - 1)
        result = select(broadcast_in_dim(is_end, full, (0,)), last, result)
    if dtypes.is_integer(wanted) and not dtypes.is_complex(computed):
        result = floor(result)
    return convert_element_type(result, wanted), step


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Powers of `base` with evenly spaced exponents from `start` to `stop`.

    Args:
        start: the first exponent.
        stop: the last exponent.
        num: how many.
        endpoint: whether `stop` is included.
        base: of the powers.
        dtype: of the result; by default that of the ends, floating point.
        axis: where the new axis is when the ends are arrays.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    first, last = as_operand(start, "logspace", 0), as_operand(stop, "logspace", 1)
    radix: Any = as_operand(base, "logspace", 4)
    computed = dtypes.to_inexact_dtype(common_dtype([first, last, radix])[0])
    computed, wanted = _dtypes_of_samples(computed, dtype)
    num = _number_of_samples(num, "logspace")
    if num.__class__ is int and all(x.__class__ in PYTHON_NUMBERS for x in (first, last, radix)):
        canonical_axis("logspace", axis, 1)
        samples = np.linspace(first, last, num, endpoint)
        with np.errstate(all="ignore"):
            return asarray(converted(np.power(radix, samples), wanted), dtype=wanted)
    exponents = linspace(first, last, num, endpoint, dtype=computed, axis=axis)
    return convert_element_type(power(radix, exponents), wanted)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Numbers from `start` to `stop`, each the same multiple of the one before.

    Args:
        start: the first number.
        stop: the last number, of the same sign.
        num: how many.
        endpoint: whether `stop` is included.
        dtype: of the result; by default that of the ends, floating point.
        axis: where the new axis is when the ends are arrays.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.geomspace(1, 100, 3), jnp.geomspace(-1, -8, 4)
    (Array([  1.,  10., 100.], dtype=float32), Array([-1., -2., -4., -8.], dtype=float32))
    """
    first: Any = as_operand(start, "geomspace", 0)
    last: Any = as_operand(stop, "geomspace", 1)
    computed = dtypes.to_inexact_dtype(common_dtype([first, last])[0])
    computed, wanted = _dtypes_of_samples(computed, dtype)
    num = _number_of_samples(num, "geomspace")
    if first.__class__ in PYTHON_NUMBERS and last.__class__ in PYTHON_NUMBERS and first and last:
        wide: Any = complex if dtypes.is_complex(computed) else float
        with np.errstate(all="ignore"):
            if wide is float and (first < 0) != (last < 0):
                values = np.full(num, np.nan)
            else:
                values = np.geomspace(wide(first), wide(last), num, endpoint)
            return asarray(converted(converted(values, computed), wanted), dtype=wanted)
    first, last = (convert(x, computed) for x in broadcast_operands("geomspace", [first, last]))
    return convert_element_type(_geomspace(first, last, num, endpoint, axis), wanted)


def _geomspace(first, last, num, endpoint, axis):
    """start · (stop/start)ᵗ"""
    t = linspace(0.0, 1.0, num, endpoint, dtype=dtypes.to_real_dtype(dtype_of(first)))
    shape = shape_of(first) or shape_of(last)
    ratio = div(last, first)
    full = (num, *shape)
    exponents = broadcast_in_dim(convert(t, dtype_of(first)), full, (0,))
    first, ratio = (
        broadcast_in_dim(x, full, range(1, len(full))) if shape_of(x) == shape else x for x in (first, ratio)
    )
    return moveaxis(mul(first, power(ratio, exponents)), 0, axis)
