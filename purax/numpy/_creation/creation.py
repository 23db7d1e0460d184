"""Making arrays from Python and NumPy values, and changing their dtypes.

A dtype asked for by name is kept, 64 bits too; values that name none get the dtypes in use (32 bits unless
`enable_x64`). Integers that do not fit raise an error.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray, refuse_mask
from purax.core.limits import finite
from purax.core.primitive import native
from purax.core.source import located
from purax.core.trace import Tracer, current
from purax.errors import shown
from purax.execution.eager import eager
from purax.interpreters.plain_numbers import settled
from purax.lax.operands import refuse_complex
from purax.numpy._creation.filled_arrays import placed
from purax.numpy._promotion import (
    PYTHON_NUMBERS,
    as_array,
    as_operand,
    cast_number,
    narrowed,
    quiet,
)
from purax.primitives.elementwise.arithmetic import copy_p
from purax.primitives.elementwise.conversion import convert_element_type_p, converted, real_p
from purax.primitives.elementwise.logic import ne
from purax.primitives.shape.reshaping import reshape_p, stack_p
from purax.typing import ArrayLike, DTypeLike
from purax.xla import jaxlib_api
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
            result: Array = DeviceArray(ShapedArray(value.shape, value.dtype), value)
            if ndmin == 0 and device is None and out_sharding is None:
                return result
            object = result
            copy = False
    result = _convert_value(object, None if dtype is None else dtypes.as_dtype(dtype), copy)
    if result.ndim < ndmin:
        shape = (1,) * (ndmin - result.ndim) + result.shape
        result = reshape_p.bind(result, new_sizes=shape, dimensions=None)
    return placed(result, device, out_sharding)


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
    return settled(array(a, dtype, bool(copy), order or "K", device=device, out_sharding=out_sharding))


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of `a` in memory of its own.

    Args:
        a: an array.
        order: "K", the only layout there is.

    >>> import purax.numpy as jnp
    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    as_operand(a, "copy")
    return array(a, copy=True, order=order or "K")


def _check_order(order: str | None) -> None:
    if order not in ("K", None):
        raise NotImplementedError(
            f"order={shown(order)}: arrays have no user-visible layout; leave `order` out (or 'K'), or use "
            "numpy.array(..., order=...) on the host"
        )


def rank_of_numbers(values: list) -> int | None:
    """The highest kind of Python numbers in a list, a position in `_CLASSES`; None if something else is in it."""
    highest = 0
    for element in values:
        rank = _KIND_OF_CLASS.get(element.__class__)
        if rank is None:
            return None
        if rank > highest:
            highest = rank
    return highest


if native is not None:
    rank_of_numbers = native.rank_of_numbers  # the same, in a tenth of the time


def _plain_list(values: list) -> np.ndarray | None:
    """A list of Python numbers, or of such lists, as a NumPy array; None if something else is in it."""
    highest = rank_of_numbers(values)
    if highest is None:
        return None
    if not values:
        return np.zeros(0, dtypes.default_float())
    if highest == 2 and not config.enable_x64:
        return quiet.run(np.array, values, _FLOAT32)
    dtype = dtypes.python_scalar_dtype(_CLASSES[highest])
    try:
        return np.array(values, dtype)
    except OverflowError:
        for number in values:
            cast_number(number, dtype, may_wrap=False)  # raises, naming the number
        raise


def _convert_value(x: Any, dtype: Any, copy: bool) -> Array:
    """Any value that `array` accepts as an array of `dtype`, its own if that is None."""
    convert = getattr(x, "__jax_array__", None)
    if convert is not None and not isinstance(x, (Array, type)):
        x = convert()
    if isinstance(x, Array):
        if dtype is not None and (x.aval.dtype is not dtype or x.aval.weak_type):
            if dtypes.is_complex(x.aval.dtype):
                return astype(x, dtype)
            return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False)
        return copied(x) if copy else x
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return _from_number(x, dtype)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    if x is None:
        raise located(ValueError, "None is not a valid value for jnp.array")
    if isinstance(x, np.ndarray):
        refuse_mask(x)
        value = np.asarray(x)
    elif hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        value = _from_array_of_others(x)
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


def _from_array_of_others(x: Any) -> np.ndarray:
    """By NumPy's protocol, or by DLPack for a dtype that the other library knows and NumPy does not."""
    try:
        return np.asarray(x)
    except TypeError:
        if not hasattr(x, "__dlpack__") or x.__dlpack_device__()[0] != 1:
            raise
        return jaxlib_api.array_of_capsule(x.__dlpack__())


def _from_protocols(x: Any) -> np.ndarray:
    try:
        return np.asarray(memoryview(x))
    except TypeError:
        pass
    if hasattr(x, "__len__") and hasattr(x, "__getitem__") and not hasattr(x, "keys"):  # a sequence
        return np.asarray(finite(x, min(len(x), _MAX_LENGTH)))
    return np.asarray(x)


_MAX_LENGTH = 1 << 24  # of a sequence of the user's


def _from_number(x: Any, dtype: Any) -> Array:
    weak = dtype is None and not isinstance(x, bool)
    if dtype is None:
        dtype = dtypes.python_scalar_dtype(x)
    elif isinstance(x, complex):
        refuse_complex(x, dtype)
    elif isinstance(x, float) and dtypes.is_integer(dtype):
        x = int(x)  # raises for NaN and infinities
    value = cast_number(x, dtype, may_wrap=False)
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
        raise located(
            ValueError,
            "the lists given to jnp.array have unlike lengths at the same depth (inhomogeneous shape): "
            f"{shown(x):.80}. "
            "Pad them to one length.",
        ) from None
    if values.dtype == object or (values.dtype.kind in "iu" and dtypes.is_integer(dtype)):
        return _from_integers(values, dtype, x)
    return _from_numpy(values, dtype, x, explicit=True)


_MAX_DEPTH = 64  # of arrays of NumPy


def _hosted(x: Any) -> Any:
    """Nested sequences with arrays replaced by their values on the host."""
    if isinstance(x, (list, tuple)):
        return [_hosted(element) for element in x]
    return x.host_value() if isinstance(x, DeviceArray) else x


def _collect_leaves(x: Any, leaves: list[Any], depth: int = 1) -> None:
    if depth > _MAX_DEPTH:
        raise located(
            ValueError,
            f"the lists given to jnp.array are nested deeper than {_MAX_DEPTH} levels: {shown(x):.60}",
        )
    for element in x:
        if isinstance(element, (list, tuple)):
            _collect_leaves(element, leaves, depth + 1)
        elif element.__class__ in PYTHON_NUMBERS or isinstance(element, (Array, np.ndarray, np.generic)):
            leaves.append(element)
        elif element is None:
            raise located(ValueError, "None is not a valid value for jnp.array")
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
        raise located(
            ValueError, f"the elements of a list given to jnp.array must have one shape, got shapes {shapes}"
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
                cast_number(int(extreme), dtype, may_wrap=False)  # raises, naming the number
    value = values.astype(dtype)
    return DeviceArray(ShapedArray(value.shape, dtype), value)


def _check_numeric(dtype: np.dtype, x: Any) -> None:
    try:
        dtypes.as_exact_dtype(dtype)
    except TypeError:
        raise located(
            TypeError,
            f"jnp.array takes numbers: a value of type {type(x).__name__} and dtype {dtype} is not a valid array "
            f"type: {shown(x):.60}",
        ) from None


def _from_numpy(value: np.ndarray, dtype: Any, x: Any, explicit: bool = False) -> Array:
    _check_numeric(value.dtype, x)
    if dtype is None:
        dtype = dtypes.canonicalize_dtype(dtypes.as_exact_dtype(value.dtype))
        result = np.array(value) if value.dtype == dtype else narrowed(value, dtype)
    elif value.dtype == dtype:
        result = np.array(value)
    elif explicit and value.dtype.kind == "c" and not dtypes.is_complex(dtype) and dtype != np.bool_:
        raise located(
            TypeError, f"complex numbers cannot become {dtypes.dtype_name(dtype)}; take x.real or abs(x)"
        )
    elif explicit and value.dtype.kind == "f" and dtypes.is_integer(dtype) and not np.isfinite(value).all():
        raise located(ValueError, f"cannot convert NaN or infinity to {dtypes.dtype_name(dtype)}")
    else:
        with np.errstate(all="ignore"):
            result = converted(value, dtype)
    return DeviceArray(ShapedArray(result.shape, dtype), result)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False, device: Any = None) -> Array:
    """The elements of `x` as another dtype.

    Args:
        x: an array or a number.
        dtype: the new dtype; None is the default float. Floats become integers by dropping the fraction, complex
            numbers become booleans where they are not zero; becoming real they lose their imaginary part, with
            a `ComplexWarning`: write `jnp.real(x)`.
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
        return placed(copied(x) if copy else x, device)
    if dtypes.is_complex(own) and not dtypes.is_complex(dtype):
        if dtype == np.bool_:
            return placed(ne(x, 0), device)
        warn_of_lost_parts(own, dtype)
        x = real_p.bind(x)
    return placed(convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False), device)


def warn_of_lost_parts(own: Any, dtype: Any) -> None:
    """Warns, at the user's line, that complex numbers lose their imaginary parts."""
    message = (
        f"casting {dtypes.dtype_name(own)} to {dtypes.dtype_name(dtype)} discards the imaginary part; write "
        "jnp.real(x) or jnp.abs(x) to say what is meant"
    )
    location = source.user_location()
    place = (location.file, location.line) if location else ("purax", 0)
    warnings.warn_explicit(message, np.exceptions.ComplexWarning, *place)
