"""Making arrays: from Python and NumPy values, and filled with one number.

A dtype asked for by name is kept, 64 bits too; values that name none get the dtypes in use (32 bits unless
`enable_x64`). Integers that do not fit raise an error. Small arrays are made by NumPy; inside of transformations,
arrays of one number are recorded as operations, so that no large constant enters a program.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.trace import Tracer, current
from purax.numpy.promotion import (
    PYTHON_NUMBERS,
    ShapeError,
    as_array,
    as_operand,
    broadcast_shapes,
    cast_number,
    narrowed,
    not_an_array,
    quiet,
    shape_of,
    stretch,
)
from purax.ops.arithmetic import copy_p
from purax.ops.broadcasting import broadcast_in_dim_p
from purax.ops.conversion import convert_element_type_p, converted, real_p
from purax.ops.logic import ne
from purax.ops.reshaping import reshape_p, stack_p
from purax.transforms.eager import eager
from purax.transforms.jit import jit
from purax.transforms.transfer import device_put
from purax.typing import ArrayLike, DTypeLike
from purax.xla import client
from purax.xla.array import DeviceArray

_KIND_OF_CLASS = {bool: 0, int: 1, float: 2, complex: 3}
_FLOAT32 = np.dtype(np.float32)
_CLASSES = (bool, int, float, complex)


# --- from values


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of the given values.

    Args:
        object: a number, a nested list or tuple of numbers and arrays, an array, a NumPy array, or an object with
            `__jax_array__`, `__array__` or a buffer.
        dtype: of the result; by default that of the values.
        copy: whether an array gets memory of its own.
        order: only "K" and None; the layout of arrays in memory is not the user's concern.
        ndmin: the least number of axes; axes of size 1 are added in front.
        device: where to put it; by default the default device.

    Returns:
        An array. A Python number without `dtype` gives a weak dtype.

    Raises:
        ValueError: lists of unlike lengths, or None.
        TypeError: strings and other objects.
        OverflowError: an integer that does not fit.

    >>> import purax.numpy as jnp
    >>> jnp.array([1.0, 2.0, 3.0])
    Array([1., 2., 3.], dtype=float32)
    >>> jnp.array([[1, 2], [3, 4]], dtype="int8")
    Array([[1, 2],
           [3, 4]], dtype=int8)
    """
    if order != "K":
        _check_order(order)
    if object.__class__ is list and dtype is None:
        value = _plain_list(object)
        if value is not None:
            result = DeviceArray(ShapedArray(value.shape, value.dtype), value)
            if ndmin == 0 and device is None and out_sharding is None:
                return result
            object = result
            copy = False
    result = _convert_value(object, None if dtype is None else dtypes.as_dtype(dtype), copy)
    if result.ndim < ndmin:
        shape = (1,) * (ndmin - result.ndim) + result.shape
        result = reshape_p.bind(result, new_sizes=shape, dimensions=None)
    return _placed(result, device, out_sharding)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The given values as an array; an array is returned as it is.

    Args:
        a: what `array` accepts.
        dtype: of the result; by default that of the values.
        order: only "K" and None.
        copy: True for memory of its own, None where needed, False to forbid it (which only arrays allow).
        device: where to put it.

    Returns:
        An array.

    >>> import purax.numpy as jnp, numpy as np
    >>> jnp.asarray(np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    if a.__class__ is DeviceArray and dtype is None and not copy and device is None and out_sharding is None:
        return a
    return array(a, dtype, bool(copy), order or "K", device=device, out_sharding=out_sharding)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of `a` in memory of its own.

    >>> import purax.numpy as jnp
    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    as_operand(a, "copy")
    return array(a, copy=True, order=order or "K")


def _check_order(order: str | None) -> None:
    if order not in ("K", None):
        raise NotImplementedError(
            f"order={order!r}: arrays have no user-visible layout; leave `order` out (or 'K'), or use "
            "numpy.array(..., order=...) on the host"
        )


def _placed(x: Array, device: Any, out_sharding: Any = None) -> Array:
    place = device if device is not None else out_sharding
    return x if place is None else device_put(x, place)


def _plain_list(values: list) -> np.ndarray | None:
    """A list of Python numbers, or of such lists, as a NumPy array; None if something else is in it."""
    highest = 0
    for element in values:
        rank = _KIND_OF_CLASS.get(element.__class__)
        if rank is None:
            return None
        if rank > highest:
            highest = rank
    if not values:
        return np.zeros(0, dtypes.default_float())
    if highest == 2 and not config.enable_x64:
        return quiet.run(np.array, values, _FLOAT32)
    dtype = dtypes.python_scalar_dtype(_CLASSES[highest])
    try:
        return np.array(values, dtype)
    except OverflowError:
        for number in values:
            cast_number(number, dtype)  # raises, naming the number
        raise


def _convert_value(x: Any, dtype: Any, copy: bool) -> Array:
    """Any value that `array` accepts as an array of `dtype`, its own if that is None."""
    convert = getattr(x, "__jax_array__", None)
    if convert is not None and not isinstance(x, (Array, type)):
        x = convert()
    if isinstance(x, Array):
        if dtype is not None and (x.aval.dtype is not dtype or x.aval.weak_type):
            return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False)
        return copied(x) if copy else x
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return _from_number(x, dtype)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if x is None:
        raise source.with_location(ValueError("None is not a valid value for jnp.array"))
    if isinstance(x, (np.ndarray, np.generic)):
        value = np.asarray(x)
    elif hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        value = np.asarray(x)
    elif not isinstance(x, (str, bytes)):
        value = _from_protocols(x)
    else:
        value = np.asarray(x)
    return _from_numpy(value, dtype, x)


def copied(x: Array) -> Array:
    """The value of `x` in memory of its own."""
    if x.__class__ is DeviceArray and current.trace is eager:
        return x.copy()
    return copy_p.bind(x)


def _from_protocols(x: Any) -> np.ndarray:
    try:
        return np.asarray(memoryview(x))
    except TypeError:
        pass
    if hasattr(x, "__len__") and hasattr(x, "__getitem__") and not hasattr(x, "keys"):  # a sequence
        return np.asarray(list(x))
    return np.asarray(x)


def _from_number(x: Any, dtype: Any) -> Array:
    weak = dtype is None and not isinstance(x, bool)
    if dtype is None:
        dtype = dtypes.python_scalar_dtype(x)
    elif isinstance(x, complex) and not dtypes.is_complex(dtype):
        raise source.with_location(
            TypeError(
                f"the complex number {x} cannot become {dtypes.dtype_name(dtype)}; take x.real or abs(x)"
            )
        )
    elif isinstance(x, float) and dtypes.is_integer(dtype):
        x = int(x)  # raises for NaN and infinities
    value = cast_number(x, dtype)
    if current.trace is eager or not weak:
        return DeviceArray(ShapedArray((), dtype, weak), value)
    return convert_element_type_p.bind(value, new_dtype=dtype, weak_type=weak)


def _from_sequence(x: Any, dtype: Any) -> Array:
    leaves: list[Any] = []
    _collect_leaves(x, leaves)
    if dtype is None:
        dtype = _common_leaf_dtype(leaves)
    if any(isinstance(leaf, Tracer) for leaf in leaves) or any(
        isinstance(leaf, DeviceArray) and leaf._placement is not None for leaf in leaves
    ):
        return _stacked(x, dtype)
    try:
        values = np.array(_hosted(x)) if leaves else np.array(x, np.float32)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise source.with_location(
            ValueError(
                f"the lists given to jnp.array have unlike lengths at the same depth (inhomogeneous shape): {x!r:.80}. "
                "Pad them to one length."
            )
        ) from None
    if values.dtype == object or (values.dtype.kind in "iu" and dtypes.is_integer(dtype)):
        return _from_integers(values, dtype, x)
    return _from_numpy(values, dtype, x, explicit=True)


def _hosted(x: Any) -> Any:
    """Nested sequences with arrays replaced by their values on the host."""
    if isinstance(x, (list, tuple)):
        return [_hosted(element) for element in x]
    return x.host_value() if isinstance(x, DeviceArray) else x


def _collect_leaves(x: Any, leaves: list[Any]) -> None:
    for element in x:
        if isinstance(element, (list, tuple)):
            _collect_leaves(element, leaves)
        elif element.__class__ in PYTHON_NUMBERS or isinstance(element, (Array, np.ndarray, np.generic)):
            leaves.append(element)
        elif element is None:
            raise source.with_location(ValueError("None is not a valid value for jnp.array"))
        else:
            leaves.append(_convert_value(element, None, copy=False))


def _common_leaf_dtype(leaves: list[Any]) -> Any:
    if not leaves:
        return dtypes.default_float()
    kinds: dict[Any, Any] = {}
    for leaf in leaves:  # one of each type is enough
        kinds.setdefault(leaf.dtype if hasattr(leaf, "dtype") else leaf.__class__, leaf)
    for leaf in kinds.values():
        if isinstance(leaf, (np.ndarray, np.generic)):
            _check_numeric(leaf.dtype, leaf)
    return dtypes.lattice_result_type(*kinds.values())[0]


def _stacked(x: Any, dtype: Any) -> Array:
    """Nested sequences of arrays and tracers, joined by operations."""
    if not isinstance(x, (list, tuple)):
        return _convert_value(x, dtype, copy=False)
    if not x:
        return as_array(np.zeros(0, dtype), "array")
    parts = [_stacked(element, dtype) for element in x]
    if any(part.shape != parts[0].shape for part in parts):
        shapes = ", ".join(str(part.shape) for part in parts)
        raise source.with_location(
            ValueError(f"the elements of a list given to jnp.array must have one shape, got shapes {shapes}")
        )
    return stack_p.bind(*parts, axis=0)


def _from_integers(values: np.ndarray, dtype: Any, x: Any) -> Array:
    """Integers of any size, in an array of 64 bits or of Python objects."""
    if values.dtype == object and not all(
        isinstance(v, (int, float, complex, np.number)) for v in values.flat
    ):
        _check_numeric(values.dtype, x)
    if dtypes.is_integer(dtype) and values.size:
        limits = dtypes.iinfo(dtype)
        for extreme in (values.min(), values.max()):
            if not int(limits.min) <= extreme <= int(limits.max):
                cast_number(int(extreme), dtype)  # raises, naming the number
    value = values.astype(dtype)
    return DeviceArray(ShapedArray(value.shape, dtype), value)


def _check_numeric(dtype: np.dtype, x: Any) -> None:
    try:
        dtypes.as_dtype(dtype)
    except TypeError:
        raise source.with_location(
            TypeError(
                f"jnp.array takes numbers: a value of type {type(x).__name__} and dtype {dtype} is not a valid array "
                f"type: {x!r:.60}"
            )
        ) from None


def _from_numpy(value: np.ndarray, dtype: Any, x: Any, explicit: bool = False) -> Array:
    _check_numeric(value.dtype, x)
    if dtype is None:
        dtype = dtypes.canonicalize_dtype(dtypes.as_dtype(value.dtype))
        result = np.array(value) if value.dtype == dtype else narrowed(value, dtype)
    elif value.dtype == dtype:
        result = np.array(value)
    elif explicit and value.dtype.kind == "c" and not dtypes.is_complex(dtype):
        raise source.with_location(
            TypeError(f"complex numbers cannot become {dtypes.dtype_name(dtype)}; take x.real or abs(x)")
        )
    elif explicit and value.dtype.kind == "f" and dtypes.is_integer(dtype) and not np.isfinite(value).all():
        raise source.with_location(
            ValueError(f"cannot convert NaN or infinity to {dtypes.dtype_name(dtype)}")
        )
    else:
        with np.errstate(all="ignore"):
            result = converted(value, dtype)
    return DeviceArray(ShapedArray(result.shape, dtype), result)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Any = None) -> Array:
    """The elements of `x` as another dtype.

    Args:
        x: an array or a number.
        dtype: the new dtype; None is the default float. Floats become integers by dropping the fraction, complex
            numbers become truth values where they are not zero, and may not become real.
        copy: whether the result has memory of its own even if nothing changes.
        device: where to put it.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.astype(jnp.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int32)
    """
    x = as_array(x, "astype")
    dtype = dtypes.as_dtype(dtype)
    own = x.aval.dtype
    if own is dtype and not x.aval.weak_type:
        return _placed(copied(x) if copy else x, device)
    if dtypes.is_complex(own) and not dtypes.is_complex(dtype):
        if dtype == np.bool_:
            return _placed(ne(x, 0), device)
        x = real_p.bind(x)
    return _placed(convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False), device)


# --- filled with one number


def shape_argument(shape: Any, name: str) -> tuple[int, ...]:
    """A shape given by the user, an integer or a sequence of them, as a tuple of sizes ≥ 0.

    >>> shape_argument([2, 3], "zeros")
    (2, 3)
    """
    if shape.__class__ is int:
        sizes: tuple[int, ...] = (shape,)
    elif shape.__class__ is tuple or shape.__class__ is list:
        sizes = tuple(shape)
    elif isinstance(shape, (Array, np.ndarray)) and shape.ndim:
        sizes = tuple(np.asarray(shape).tolist()) if shape.ndim == 1 else (shape,)
    elif isinstance(shape, (str, bytes)) or shape is None:
        sizes = (shape,)
    else:
        try:
            sizes = (operator.index(shape),)
        except TypeError:
            if isinstance(shape, Tracer):
                raise
            sizes = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
    try:
        sizes = tuple([n if n.__class__ is int else operator.index(n) for n in sizes])
    except TypeError:
        if any(isinstance(n, Tracer) for n in sizes):
            raise
        raise source.with_location(
            TypeError(f"{name}: a shape is an integer or a sequence of integers, got {shape!r:.80}")
        ) from None
    for n in sizes:
        if n < 0:
            raise source.with_location(
                ShapeError(f"{name}: negative dimensions are not allowed, got the shape {sizes}")
            )
    return sizes


def filled(shape: tuple[int, ...], value: Any, dtype: Any, weak: bool = False) -> Array:
    """An array of one number: `value` is a Python number or a NumPy scalar that `dtype` can hold."""
    if current.trace is eager:
        if math.prod(shape) <= config.host_size_limit or client.default_device().platform == "cpu":
            host = (
                np.zeros(shape, dtype)
                if not value and value.__class__ is int
                else np.full(shape, value, dtype)
            )
            return DeviceArray(ShapedArray(shape, dtype, weak), host)
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
    return result if device is None and out_sharding is None else _placed(result, device, out_sharding)


def ones(
    shape: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of ones.

    >>> import purax.numpy as jnp
    >>> jnp.ones(3), jnp.ones((1, 2), bool)
    (Array([1., 1., 1.], dtype=float32), Array([[ True,  True]], dtype=bool))
    """
    result = filled(shape_argument(shape, "ones"), 1, dtypes.as_dtype(dtype))
    return result if device is None and out_sharding is None else _placed(result, device, out_sharding)


def empty(
    shape: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array whose values do not matter; they are zeros.

    >>> import purax.numpy as jnp
    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)
    """
    return _placed(filled(shape_argument(shape, "empty"), 0, dtypes.as_dtype(dtype)), device, out_sharding)


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
    return _placed(_full(sizes, value, wanted, weak and dtype is None), device, out_sharding)


def _full(shape: tuple[int, ...], value: Any, dtype: Any, weak: bool) -> Array:
    if value.__class__ in PYTHON_NUMBERS and current.trace is eager:
        return filled(shape, _number_as(value, dtype), dtype, weak)
    value = as_array(_number_as(value, dtype) if value.__class__ in PYTHON_NUMBERS else value, "full")
    if value.aval.dtype is not dtype or value.aval.weak_type != weak:
        value = convert_element_type_p.bind(value, new_dtype=dtype, weak_type=weak)
    own = shape_of(value)
    if own == shape:
        return value
    if len(own) > len(shape) or broadcast_shapes(own, shape) != shape:
        raise source.with_location(
            ValueError(f"full: the fill value of shape {own} does not broadcast to the shape {shape}")
        )
    return stretch(value, shape)


def _number_as(value: Any, dtype: Any) -> np.ndarray:
    """A Python number as a scalar of `dtype`, converted as arrays are."""
    if value.__class__ is float and dtypes.is_integer(dtype):
        return converted(np.asarray(value), dtype)
    if value.__class__ is complex and not dtypes.is_complex(dtype):
        return converted(np.asarray(value.real), dtype)
    return cast_number(value, dtype)


def _like(name: str, a: Any, dtype: DTypeLike | None, shape: Any) -> tuple[tuple[int, ...], Any, bool]:
    """The shape, the dtype and the weakness of an array like `a`, which may be any object with a shape and a dtype."""
    if (
        not isinstance(a, Array)
        and hasattr(a, "shape")
        and hasattr(a, "dtype")
        and not isinstance(a, np.ndarray)
    ):
        own, weak = dtypes.as_dtype(a.dtype), bool(getattr(a, "weak_type", False))
        if isinstance(a, np.generic):
            own = dtypes.canonicalize_dtype(own)
    else:
        if isinstance(a, (list, tuple)):
            raise source.with_location(not_an_array(a, name, 0))
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
    return _placed(_full(sizes, 0, dtype, weak), device, out_sharding)


def ones_like(
    a: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Ones with the shape and dtype of `a`.

    >>> import purax.numpy as jnp
    >>> jnp.ones_like(jnp.arange(3), dtype=float)
    Array([1., 1., 1.], dtype=float32)
    """
    sizes, dtype, weak = _like("ones_like", a, dtype, shape)
    return _placed(_full(sizes, 1, dtype, weak), device, out_sharding)


def empty_like(
    prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None
) -> Array:
    """An array with the shape and dtype of `prototype` whose values do not matter; they are zeros.

    >>> import purax.numpy as jnp
    >>> jnp.empty_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    sizes, dtype, weak = _like("empty_like", prototype, dtype, shape)
    return _placed(_full(sizes, 0, dtype, weak), device)


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

    >>> import purax.numpy as jnp
    >>> jnp.full_like(jnp.arange(3.0), 7)
    Array([7., 7., 7.], dtype=float32)
    """
    sizes, dtype, weak = _like("full_like", a, dtype, shape)
    value = as_operand(fill_value, "full_like", 1)
    return _placed(_full(sizes, value, dtype, weak and dtypes.is_weakly_typed(value)), device, out_sharding)


# --- from buffers and other libraries


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """The bytes of a buffer read as numbers.

    Args:
        buffer: an object with the buffer protocol, such as bytes.
        dtype: of the numbers.
        count: how many; −1 for all.
        offset: where to start, in bytes.

    Returns:
        An array with one axis.

    >>> import purax.numpy as jnp
    >>> jnp.frombuffer(b"abcd", dtype="uint8", offset=1)
    Array([ 98,  99, 100], dtype=uint8)
    """
    wanted = dtypes.as_dtype(dtype)
    return array(np.frombuffer(buffer, wanted, count, offset), dtype=wanted)


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Numbers written in a string.

    Args:
        string: the text.
        dtype: of the numbers.
        count: how many; −1 for all.
        sep: what stands between them.

    Returns:
        An array with one axis.

    >>> import purax.numpy as jnp
    >>> jnp.fromstring("1, 2, 3", sep=",")
    Array([1., 2., 3.], dtype=float32)
    """
    wanted = dtypes.as_dtype(dtype)
    return array(np.fromstring(string, wanted, count, sep=sep), dtype=wanted)


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not provided: reading a file is not pure. Use `jnp.asarray(numpy.fromfile(...))`.

    >>> import purax.numpy as jnp
    >>> jnp.fromfile("data.bin")
    Traceback (most recent call last):
    NotImplementedError: jnp.fromfile is not provided because it is not pure. Use jnp.asarray(numpy.fromfile(...)).
    """
    raise NotImplementedError(
        "jnp.fromfile is not provided because it is not pure. Use jnp.asarray(numpy.fromfile(...))."
    )


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not provided: consuming an iterator is not pure. Use `jnp.asarray(numpy.fromiter(...))`.

    >>> import purax.numpy as jnp
    >>> jnp.fromiter(range(3), int)
    Traceback (most recent call last):
    NotImplementedError: jnp.fromiter is not provided because it is not pure. Use jnp.asarray(numpy.fromiter(...)).
    """
    raise NotImplementedError(
        "jnp.fromiter is not provided because it is not pure. Use jnp.asarray(numpy.fromiter(...))."
    )


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """The array of another library, taken over through DLPack.

    Args:
        x: an object with `__dlpack__` and `__dlpack_device__`.
        device: where to put it.
        copy: True for memory of its own, None where needed, False to forbid it.

    Returns:
        An array.

    >>> import purax.numpy as jnp, numpy as np
    >>> jnp.from_dlpack(np.arange(3, dtype="int32"))
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(x, Array):
        return _placed(copied(x) if copy else x, device)
    if not hasattr(x, "__dlpack__"):
        raise source.with_location(TypeError(f"from_dlpack needs an object with __dlpack__, got {type(x)}"))
    value = np.from_dlpack(x)
    result = DeviceArray(
        ShapedArray(value.shape, dtypes.as_dtype(value.dtype)), np.array(value) if copy else value
    )
    return _placed(result, device)


__all__ = [
    "array", "asarray", "astype", "copied", "copy", "empty", "empty_like", "filled", "from_dlpack",
    "frombuffer", "fromfile", "fromiter", "fromstring", "full", "full_like", "ones", "ones_like", "shape_argument",
    "zeros", "zeros_like",
]  # fmt: skip
