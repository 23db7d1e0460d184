"""Arrays filled with one number, and the shapes that users ask for.

Small arrays are made by NumPy; inside of transformations they are recorded as operations, so that no large constant
enters a program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.api.jit import jit
from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.dimensions import as_size
from purax.core.limits import finite
from purax.core.source import located
from purax.core.trace import Tracer, current
from purax.errors import ShapeError, shown
from purax.execution.eager import eager
from purax.lax.operands import refuse_complex
from purax.numpy._promotion import (
    PYTHON_NUMBERS,
    as_array,
    as_operand,
    broadcast_shapes,
    cast_number,
    not_an_array,
    shape_of,
    stretch,
)
from purax.primitives.elementwise.conversion import convert_element_type_p, converted
from purax.primitives.shape.broadcasting import broadcast_in_dim_p
from purax.sharding.constraints import beside, put_at
from purax.typing import ArrayLike, DTypeLike
from purax.xla import client
from purax.xla.array import DeviceArray
from purax.xla.capacity import SURELY_THERE, refuse_what_does_not_fit


def placed(x: Array, device: Any, out_sharding: Any = None) -> Array:
    return put_at(x, device if device is not None else out_sharding)


def _placed_like(x: Array, a: Any, device: Any, out_sharding: Any) -> Array:
    """An array like `a`, which lies as `a` does unless the user asked for a place."""
    return beside(a, x) if device is None and out_sharding is None else placed(x, device, out_sharding)


def shape_argument(shape: Any, name: str) -> tuple[int, ...]:
    """A shape given by the user, an integer or a sequence of them, as a tuple of sizes ≥ 0.

    >>> shape_argument([2, 3], "zeros")
    (2, 3)
    """
    if shape.__class__ is int:
        sizes: tuple[Any, ...] = (shape,)
        if shape >= 0:
            return sizes
    elif shape.__class__ is tuple or shape.__class__ is list:
        sizes = tuple(shape)
    elif isinstance(shape, (Array, np.ndarray)) and shape.ndim:
        sizes = tuple(np.asarray(shape).tolist()) if shape.ndim == 1 else (shape,)
    elif isinstance(shape, (str, bytes)) or shape is None:
        sizes = (shape,)
    else:
        try:
            sizes = (as_size(shape),)
        except TypeError:
            if isinstance(shape, Tracer):
                raise
            sizes = tuple(finite(shape)) if hasattr(shape, "__iter__") else (shape,)
    try:
        sizes = tuple([n if n.__class__ is int else as_size(n) for n in sizes])
    except TypeError:
        if any(isinstance(n, Tracer) for n in sizes):
            raise
        raise located(
            TypeError, f"{name}: a shape is an integer or a sequence of integers, got {shown(shape):.80}"
        ) from None
    for n in sizes:
        if n < 0:
            raise located(ShapeError, f"{name}: negative dimensions are not allowed, got the shape {sizes}")
    return sizes


def filled(shape: tuple[int, ...], value: Any, dtype: Any, weak: bool = False) -> Array:
    """An array of one number: `value` is a Python number or a NumPy scalar that `dtype` can hold."""
    if current.trace is eager:
        try:
            aval = ShapedArray(shape, dtype, weak)
        except OverflowError as error:
            raise source.with_location(error) from None
        if aval.size <= config.host_size_limit or client.default_device().platform == "cpu":
            if aval.size > SURELY_THERE:
                refuse_what_does_not_fit("an array", [aval], (), (client.default_device(),))
            host = (
                np.zeros(shape, dtype)
                if not value and value.__class__ is int
                else np.full(shape, value, dtype)
            )
            return DeviceArray(aval, host)
        return _filled_on_device(np.asarray(value, dtype), shape)
    return broadcast_in_dim_p.bind(np.asarray(value, dtype), shape=shape, broadcast_dimensions=())


def _broadcast_scalar(value, shape):
    return broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=())


_filled_on_device = jit(_broadcast_scalar, static_argnums=1)


def zeros(
    shape: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of zeros.

    Args:
        shape: an integer or a sequence of them.
        dtype: by default float.
        device: where to put it.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.zeros(3), jnp.zeros((1, 2), int)
    (Array([0., 0., 0.], dtype=float32), Array([[0, 0]], dtype=int32))
    """
    result = filled(shape_argument(shape, "zeros"), 0, dtypes.as_dtype(dtype))
    return result if device is None and out_sharding is None else placed(result, device, out_sharding)


def ones(
    shape: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of ones.

    Args:
        shape: of the result.
        dtype: of the result, by default the default float.
        device: where to put it.
        out_sharding: how the result is sharded over devices.

    >>> import purax.numpy as jnp
    >>> jnp.ones(3), jnp.ones((1, 2), bool)
    (Array([1., 1., 1.], dtype=float32), Array([[ True,  True]], dtype=bool))
    """
    result = filled(shape_argument(shape, "ones"), 1, dtypes.as_dtype(dtype))
    return result if device is None and out_sharding is None else placed(result, device, out_sharding)


def empty(
    shape: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array whose values do not matter; they are zeros.

    Args:
        shape: of the result.
        dtype: of the result, by default the default float.
        device: where to put it.
        out_sharding: how the result is sharded over devices.

    >>> import purax.numpy as jnp
    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)
    """
    return placed(filled(shape_argument(shape, "empty"), 0, dtypes.as_dtype(dtype)), device, out_sharding)


def full(
    shape: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with a value.

    Args:
        shape: an integer or a sequence of them.
        fill_value: a number, or an array that broadcasts to `shape`.
        dtype: by default that of `fill_value`, weak for a Python number.
        device: where to put it.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.full((2, 2), jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    sizes = shape_argument(shape, "full")
    value = as_operand(fill_value, "full", 1)
    own, weak = dtypes.dtype_and_weak(value)
    wanted = own if dtype is None else dtypes.as_dtype(dtype)
    return placed(_full(sizes, value, wanted, weak and dtype is None), device, out_sharding)


def _full(shape: tuple[int, ...], value: Any, dtype: Any, weak: bool) -> Array:
    if isinstance(dtype, dtypes.ExtendedDtype) and value.__class__ in PYTHON_NUMBERS and value == 0:
        words = _full((*shape, *dtype.element_shape), 0, dtype.physical_dtype, False)
        return dtype.wrap(words)  # type: ignore[attr-defined]
    if value.__class__ in PYTHON_NUMBERS and current.trace is eager:
        return filled(shape, _number_as(value, dtype), dtype, weak)
    if (
        value.__class__ in PYTHON_NUMBERS
    ):  # not by way of `as_array`, which would round it to the dtypes in use
        value = convert_element_type_p.bind(_number_as(value, dtype), new_dtype=dtype, weak_type=weak)
    value = as_array(value, "full")
    if value.aval.dtype is not dtype or value.aval.weak_type != weak:
        value = convert_element_type_p.bind(value, new_dtype=dtype, weak_type=weak)
    own = shape_of(value)
    if own == shape:
        return value
    if len(own) > len(shape) or broadcast_shapes(own, shape) != shape:
        raise located(
            ValueError, f"full: the fill value of shape {own} does not broadcast to the shape {shape}"
        )
    return stretch(value, shape)


def _number_as(value: Any, dtype: Any) -> np.ndarray:
    """A Python number as a scalar of `dtype`, converted as arrays are."""
    if value.__class__ is float and dtypes.is_integer(dtype):
        return converted(np.asarray(value), dtype)
    refuse_complex(value, dtype)
    return cast_number(value, dtype)


def _like(name: str, a: Any, dtype: DTypeLike | None, shape: Any) -> tuple[tuple[int, ...], Any, bool]:
    """The shape, the dtype and the weakness of an array like `a`, which may be any object with a shape and a dtype."""
    if (
        not isinstance(a, Array)
        and hasattr(a, "shape")
        and hasattr(a, "dtype")
        and not isinstance(a, np.ndarray)
    ):
        own, weak = (
            dtypes.as_available_dtype(dtypes.as_exact_dtype(a.dtype)),
            bool(getattr(a, "weak_type", False)),
        )
        if isinstance(a, np.generic):
            own = dtypes.canonicalize_dtype(own)
    else:
        if isinstance(a, (list, tuple)):
            raise source.located(not_an_array, a, name, 0)
        a = as_operand(a, name)
        own, weak = dtypes.dtype_and_weak(a)
    sizes = tuple(shape_of(a)) if shape is None else shape_argument(shape, name)
    return (sizes, own, weak) if dtype is None else (sizes, dtypes.as_dtype(dtype), False)


def zeros_like(
    a: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Zeros with the shape and dtype of `a`.

    Args:
        a: an array, a number, or any object with `shape` and `dtype`.
        dtype: instead of that of `a`.
        shape: instead of that of `a`.
        device: where to put it.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    sizes, dtype, weak = _like("zeros_like", a, dtype, shape)
    return _placed_like(_full(sizes, 0, dtype, weak), a, device, out_sharding)


def ones_like(
    a: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Ones with the shape and dtype of `a`.

    Args:
        a: an array with the shape and dtype.
        dtype: another dtype.
        shape: another shape.
        device: where to put it.
        out_sharding: how the result is sharded over devices.

    >>> import purax.numpy as jnp
    >>> jnp.ones_like(jnp.arange(3), dtype=float)
    Array([1., 1., 1.], dtype=float32)
    """
    sizes, dtype, weak = _like("ones_like", a, dtype, shape)
    return _placed_like(_full(sizes, 1, dtype, weak), a, device, out_sharding)


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None
) -> Array:
    """An array with the shape and dtype of `prototype` whose values do not matter; they are zeros.

    Args:
        prototype: an array with the shape and dtype.
        dtype: another dtype.
        shape: another shape.
        device: where to put it.

    >>> import purax.numpy as jnp
    >>> jnp.empty_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    sizes, dtype, weak = _like("empty_like", prototype, dtype, shape)
    return _placed_like(_full(sizes, 0, dtype, weak), prototype, device, None)


def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array with the shape and dtype of `a`, filled with a value.

    Args:
        a: an array with the shape and dtype.
        fill_value: the value of all elements, broadcast to the shape.
        dtype: another dtype.
        shape: another shape.
        device: where to put it.
        out_sharding: how the result is sharded over devices.

    >>> import purax.numpy as jnp
    >>> jnp.full_like(jnp.arange(3.0), 7)
    Array([7., 7., 7.], dtype=float32)
    """
    sizes, dtype, weak = _like("full_like", a, dtype, shape)
    value = as_operand(fill_value, "full_like", 1)
    result = _full(sizes, value, dtype, weak and dtypes.is_weakly_typed(value))
    return _placed_like(result, a, device, out_sharding)
