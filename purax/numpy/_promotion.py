"""What the functions of `purax.numpy` do with their arguments before an operation sees them.

Operations are strict: one dtype, as many axes or none. Here arguments become so: NumPy values get the dtypes in use,
Python numbers give way to arrays, dtypes are promoted, shapes are broadcast. Needs `core.dtypes` for the rules. Lists
and other objects are refused with the name of the function and the position of the argument.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from purax.api.jit import jit
from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray, refuse_mask
from purax.core.dimensions import as_size
from purax.core.limits import finite
from purax.core.memo import Memo
from purax.core.source import located
from purax.core.trace import current
from purax.errors import IncompatibleShapesError, shown
from purax.execution.eager import _Quiet, eager
from purax.interpreters.plain_numbers import settled
from purax.lax.operands import refuse_complex
from purax.primitives.elementwise.conversion import convert_element_type_p, converted
from purax.primitives.shape.broadcasting import broadcast_in_dim_p
from purax.xla.array import DeviceArray

BOOL = np.dtype(np.bool_)
FLOAT32 = np.dtype(np.float32)
PYTHON_NUMBERS: frozenset[Any] = frozenset((bool, int, float, complex))
_INEXACT = frozenset(dtype for dtype in dtypes.ALL_DTYPES if dtypes.is_inexact(dtype))
_ABSORBED = {  # a Python number of this class takes the dtype of an array of these dtypes
    int: frozenset(dtype for dtype in dtypes.ALL_DTYPES if dtype != BOOL),
    float: _INEXACT,
    complex: frozenset(dtype for dtype in dtypes.ALL_DTYPES if dtypes.is_complex(dtype)),
}


quiet = _Quiet()  # `quiet.run(f, x)` calls f without NumPy's floating point warnings


# --- single arguments


def as_operand(x: Any, name: str, position: int = 0) -> Any:
    """An argument as something that operations take: an array, a NumPy array of a dtype in use, or a Python number.

    Args:
        x: the argument.
        name: of the function, for the error message.
        position: of the argument, for the error message.

    Returns:
        Arrays, tracers and Python numbers as they are; NumPy values with their dtype canonicalized.

    Raises:
        TypeError: it is a list, a tuple, a string or another object that is not an array.

    >>> as_operand(np.ones(2), "sin")
    array([1., 1.], dtype=float32)
    """
    cls = x.__class__
    if cls is DeviceArray or cls in PYTHON_NUMBERS:
        return x
    if isinstance(x, Array):
        return settled(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return canonical_numpy(x)
    kinds: tuple[Any, ...] = (bool, int, float, complex)
    for kind in kinds:
        if isinstance(x, kind):
            return kind(x)  # a subclass, such as an IntEnum
    convert = getattr(x, "__jax_array__", None)
    if convert is not None and not isinstance(x, type):
        return as_operand(convert(), name, position)
    raise source.located(not_an_array, x, name, position)


def not_an_array(x: Any, name: str, position: int) -> TypeError:
    kind = type(x).__name__
    message = f"{name} requires ndarray or scalar arguments, got {type(x)} at position {position}"
    if isinstance(x, (list, tuple)):
        return TypeError(f"{message}: a {kind} is not converted silently. Write {name}(jnp.array(...)).")
    if hasattr(x, "__array__"):
        return TypeError(f"{message}. Write {name}(jnp.asarray(x)).")
    return TypeError(f"{message}: {shown(x):.60}")


def canonical_numpy(x: np.ndarray | np.generic) -> np.ndarray:
    """A NumPy value as an array of a dtype in use: without `enable_x64`, 64 bits become 32.

    >>> canonical_numpy(np.float64(1)).dtype
    dtype('float32')
    """
    refuse_mask(x)
    value = np.asarray(x)
    dtype = dtypes.canonicalize_dtype(dtypes.as_exact_dtype(value.dtype, f"{type(x).__name__} of dtype"))
    if value.dtype == dtype:
        return value
    return narrowed(value, dtype)


def narrowed(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`value` in a dtype of fewer bits; an integer that does not fit is an error and does not wrap around."""
    result = converted(value, dtype) if value.dtype.kind != "f" else quietly_cast(value, dtype)
    if value.dtype.kind in "iu" and dtypes.is_integer(dtype) and not np.array_equal(result, value):
        worst = max(value.ravel().tolist(), key=abs)
        raise located(
            OverflowError,
            f"the NumPy integer {worst} does not fit into {dtype}, the dtype of {value.dtype} values without "
            f"`enable_x64`. Ask for the dtype by name: jnp.asarray(x, dtype='{value.dtype}').",
        )
    return result


def quietly_cast(value: Any, dtype: np.dtype) -> np.ndarray:
    """`value` as an array of `dtype`; what is too large becomes infinite without a warning."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(value).astype(dtype)


def as_array(x: Any, name: str, position: int = 0) -> Array:
    """An argument as an array: like `as_operand`, but numbers and NumPy values become arrays, too.

    NumPy arrays are copied, since they may change later.

    >>> as_array(1.0, "reshape")
    Array(1., dtype=float32, weak_type=True)
    """
    if x.__class__ is DeviceArray:
        return x
    x = as_operand(x, name, position)
    if isinstance(x, Array):
        return x
    if isinstance(x, np.ndarray) and x.ndim:
        return DeviceArray(ShapedArray(x.shape, x.dtype), np.array(x))
    dtype, weak = dtypes.dtype_and_weak(x)
    if x.__class__ in PYTHON_NUMBERS:
        x = cast_number(x, dtype)
    if current.trace is eager:
        return DeviceArray(ShapedArray((), dtype, weak), np.array(x))
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak)


class Wraps:
    """Whether Python integers that a narrow dtype cannot hold wrap around, as in JAX, if an int32 holds them."""

    integers = False


wraps = Wraps()


def exceeds_default(number: int) -> bool:
    """Whether the dtype of Python integers cannot hold one."""
    limits = dtypes.iinfo(dtypes.default_int())
    return not limits.min <= number <= limits.max


def cast_number(number: Any, dtype: np.dtype, may_wrap: bool = True) -> np.ndarray:
    """A Python number as an array of shape () of `dtype`; with `may_wrap`, as `wraps` says.

    Raises:
        OverflowError: it is an integer that `dtype` cannot hold.

    >>> cast_number(1, np.dtype("float16"))
    array(1., dtype=float16)
    """
    cls = number.__class__
    if cls is float or cls is complex:
        if cls is complex:
            refuse_complex(number, dtype)
        if dtype.kind in "iu" and cls is float:
            return converted(np.array(number), dtype)
        if abs(number) < 6e4:
            return np.array(number, dtype)
        return quietly_cast(number, dtype)
    try:
        return np.array(number, dtype)
    except OverflowError:
        if may_wrap and wraps.integers and dtypes.is_integer(dtype) and not exceeds_default(number):
            return np.array(number, dtypes.default_int()).astype(dtype)
        limits = dtypes.iinfo(dtype) if dtypes.is_integer(dtype) else None
        rule = f", which holds {limits.min} to {limits.max}" if limits is not None else ""
        raise located(
            OverflowError,
            f"the Python int {number} is too large to convert to {dtypes.dtype_name(dtype)}{rule}. Convert the "
            "array to a wider dtype first, or ask for one by name: dtype='int64'.",
        ) from None


def refuse_out(name: str, out: Any, where: Any = None) -> None:
    """Raises if one of the arguments of NumPy's ufuncs that make no sense for immutable arrays is given."""
    if out is not None:
        raise located(
            NotImplementedError,
            f"{name} does not support `out`: arrays are immutable. Use the result: y = {name}(...)",
        )
    if where is not None:
        raise located(
            NotImplementedError,
            f"{name} does not support `where`. Write jnp.where(where, {name}(...), otherwise).",
        )


# --- several arguments


def common_dtype(operands: Sequence[Any]) -> tuple[Any, bool]:
    """The dtype that operands are promoted to, and whether it is weak."""
    if len(operands) == 2:
        return dtypes.promote_pair(*dtypes.dtype_and_weak(operands[0]), *dtypes.dtype_and_weak(operands[1]))
    if len(operands) == 1:
        return dtypes.dtype_and_weak(operands[0])
    return dtypes.lattice_result_type(*operands)


_PYTHON_KINDS = {"integer": int, "float": float, "complex": complex}


def convert(x: Any, dtype: Any, weak: bool = False) -> Any:
    """An operand with its elements as `dtype`; `weak` says whether the result of the operation is."""
    if x.__class__ in PYTHON_NUMBERS:
        if weak:
            if x.__class__ is complex:
                refuse_complex(x, dtype)
            number = _PYTHON_KINDS[dtypes.kind(dtype)](x)
            if dtypes.python_scalar_dtype(number) is dtype:
                if number.__class__ is int:
                    cast_number(number, dtype)  # raises if it does not fit
                return number
        return cast_number(x, dtype)
    if isinstance(x, np.ndarray):
        value = x if x.dtype == dtype else converted(x, dtype)
        return DeviceArray(ShapedArray(x.shape, dtype, True), value) if weak else value
    if x.aval.dtype is dtype or x.aval.dtype == dtype:
        return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an operand."""
    return () if x.__class__ in PYTHON_NUMBERS else x.shape


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that results from broadcasting shapes against each other.

    Args:
        shapes: tuples of sizes, or single sizes.

    Returns:
        A tuple.

    Raises:
        ValueError: sizes differ along an axis and neither is 1.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    try:
        tuples = [
            (int(s),) if isinstance(s, (int, np.integer)) else tuple(map(as_size, finite(s))) for s in shapes
        ]
    except TypeError:
        raise located(
            TypeError,
            f"broadcast_shapes: a shape is an integer or a sequence of integers, got {shown(shapes)}",
        ) from None
    return _broadcast_shapes(tuple(tuples), "broadcast_shapes")


@functools.lru_cache(4096)
def _broadcast_shapes(shapes: tuple[tuple[int, ...], ...], name: str) -> tuple[int, ...]:
    ndim = max(map(len, shapes), default=0)
    result = []
    for axis in range(-ndim, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis}
        sizes.discard(1)
        if len(sizes) > 1:
            told = sorted(map(str, sizes), key=lambda size: (len(size), size))
            fault = ": Incompatible" if name.startswith("broadcast") else " got incompatible"  # as in jax
            raise IncompatibleShapesError(
                f"{name}{fault} shapes for broadcasting: {', '.join(map(str, shapes))}; along axis {axis} "
                f"the sizes {' and '.join(told)} differ and neither is 1. Add axes of size 1 where "
                "they should be stretched: x[:, None]"
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def promotes_freely(function: Function) -> Function:
    """Lets a function of the library mix dtypes and numbers of axes, also where flags forbid that to users."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if config.numpy_rank_promotion == "allow" and config.numpy_dtype_promotion == "standard":
            return function(*args, **kwargs)
        with config.override(numpy_rank_promotion="allow", numpy_dtype_promotion="standard"):
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def check_ranks(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """Warns or raises, as the flag `numpy_rank_promotion` says, if arrays of unlike ranks meet."""
    if len({len(shape) for shape in shapes if shape}) <= 1:
        return
    message = (
        f"operands of {name} have unlike numbers of axes, shapes {', '.join(map(str, shapes))}, and the flag "
        f"numpy_rank_promotion is '{config.numpy_rank_promotion}'. Add the axes: x[None]"
    )
    if config.numpy_rank_promotion == "raise":
        raise located(ValueError, message)
    line = source.user_location()
    if line is not None:
        warnings.warn_explicit(message, UserWarning, line.file, line.line)


def _joint_shape(name: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """What shapes are broadcast to; an error at the user's line if they cannot be, or if their ranks may not differ."""
    if config.numpy_rank_promotion != "allow":
        check_ranks(name, shapes)
    try:
        return _broadcast_shapes(shapes, name)
    except IncompatibleShapesError as error:
        raise source.located(IncompatibleShapesError, *error.args) from None


def broadcast_operands(name: str, operands: Sequence[Any], scalars: bool = False) -> list[Any]:
    """Operands of one shape; scalars stay scalars unless `scalars`."""
    shapes = tuple([() if x.__class__ in PYTHON_NUMBERS else x.shape for x in operands])
    for shape in shapes:
        if shape != shapes[0]:
            break
    else:
        return list(operands)
    shape = _joint_shape(name, shapes)
    return [
        x if own == shape or not (own or scalars) else stretch(x, shape)
        for x, own in zip(operands, shapes, strict=True)
    ]


def align_operands(name: str, operands: Sequence[Any]) -> list[Any]:
    """Operands of an elementwise operation: with as many axes, the missing ones in front; scalars stay scalars."""
    shapes = tuple([() if x.__class__ in PYTHON_NUMBERS else x.shape for x in operands])
    for shape in shapes:
        if shape != shapes[0]:
            break
    else:
        return list(operands)
    ndim = len(_joint_shape(name, shapes))
    return [
        x if not own or len(own) == ndim else stretch(x, (1,) * (ndim - len(own)) + own)
        for x, own in zip(operands, shapes, strict=True)
    ]


def stretch(x: Any, shape: tuple[int, ...]) -> Array:
    """`x` repeated over `shape`; its axes are the last ones."""
    if current.trace is eager and math.prod(shape) <= config.host_size_limit:  # a copy costs less than a view
        value = x.peek() if x.__class__ is DeviceArray and x._placement is None else x
        if value.__class__ is np.ndarray:
            out = np.empty(shape, value.dtype)
            out[...] = value
            return DeviceArray(ShapedArray(shape, value.dtype, x is not value and x.aval.weak_type), out)
    first = len(shape) - len(shape_of(x))
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(range(first, len(shape))))


Fit = Callable[[str, Sequence[Any]], list[Any]]


def promote(name: str, *args: Any, fit: Fit = broadcast_operands) -> list[Any]:
    """Arguments as operands of one dtype, whose shapes are equal or (); or such as another `fit` makes them.

    >>> promote("add", np.arange(2), 1.5)
    [Array([0., 1.], dtype=float32, weak_type=True), 1.5]
    """
    quick = _alike(args)
    if quick is not None:
        return quick
    operands = [as_operand(x, name, i) for i, x in enumerate(args)]
    dtype, weak = common_dtype(operands)
    return fit(name, [convert(x, dtype, weak) for x in operands])


def promote_inexact(name: str, *args: Any, fit: Fit = broadcast_operands) -> list[Any]:
    """Like `promote`, and integers and booleans become floating point numbers.

    >>> promote_inexact("arctan2", np.arange(2), np.ones(2, int))
    [array([0., 1.], dtype=float32), array([1., 1.], dtype=float32)]
    """
    quick = _alike(args)
    if quick is not None and quick[0].aval.dtype in _INEXACT:
        return quick
    operands = [as_operand(x, name, i) for i, x in enumerate(args)]
    dtype, weak = common_dtype(operands)
    dtype = dtypes.to_inexact_dtype(dtype)
    return fit(name, [convert(x, dtype, weak) for x in operands])


def promote_strongly(name: str, *args: Any, fit: Fit = broadcast_operands) -> list[Any]:
    """Like `promote_inexact`, and what came from Python numbers is no longer weak."""
    return [strong(x) for x in promote_inexact(name, *args, fit=fit)]


def strong(x: Any) -> Any:
    """An operand whose dtype is not weak."""
    if x.__class__ in PYTHON_NUMBERS:
        return cast_number(x, dtypes.python_scalar_dtype(x))
    if isinstance(x, Array) and x.aval.weak_type:
        return convert_element_type_p.bind(x, new_dtype=x.aval.dtype, weak_type=False)
    return x


def strong_unless_scalar(x: Array) -> Array:
    """A result that is weak only if it has no axes, as that of JAX's functions that choose between arrays."""
    return strong(x) if x.aval.shape else x


def promote_numeric(name: str, *args: Any, fit: Fit = broadcast_operands) -> list[Any]:
    """Like `promote`, and booleans become integers."""
    quick = _alike(args)
    if quick is not None and quick[0].aval.dtype is not BOOL:
        return quick
    operands = [as_operand(x, name, i) for i, x in enumerate(args)]
    dtype, weak = common_dtype(operands)
    dtype = dtypes.to_numeric_dtype(dtype)
    return fit(name, [convert(x, dtype, weak) for x in operands])


# --- the frequent cases, fast

remembered_numbers: Memo[tuple, DeviceArray] = Memo()


def _alike(args: tuple) -> list[Any] | None:
    """The operands if all are concrete arrays of one type, or Python numbers that take it; None if not."""
    for x in args:
        if x.__class__ is DeviceArray:
            aval = x.aval
            break
    else:
        return None
    operands = []
    is_eager = None
    for x in args:
        cls = x.__class__
        if cls is DeviceArray:
            if x.aval is not aval:
                return None
        elif cls in PYTHON_NUMBERS:
            if is_eager is None:
                is_eager = current.trace is eager
            if not is_eager:
                return None
            number = remembered_numbers.get((cls, x, aval)) if x or cls is int else None
            x = eager_number(x, cls, aval) if number is None else number
            if x is None:
                return None
        else:
            return None
        operands.append(x)
    return operands


def binary(name: str, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """The dtype and the operands of an elementwise operation on two arguments: with as many axes, or none.

    `promote` with fast paths for frequent cases."""
    x_class, y_class = x.__class__, y.__class__
    if isinstance(x, Array) and isinstance(y, Array):
        first, second = x.aval, y.aval
        if first is second:
            return first.dtype, x, y
        if first.dtype is second.dtype:
            if first.shape and second.shape:
                x, y = align_operands(name, (x, y))
            return first.dtype, x, y
    elif x_class is DeviceArray:
        if y_class in PYTHON_NUMBERS and current.trace is eager:
            number = remembered_numbers.get((y_class, y, x.aval)) if y or y_class is int else None
            if number is None:
                number = eager_number(y, y_class, x.aval)
            if number is not None:
                return x.aval.dtype, x, number
    elif y_class is DeviceArray and x_class in PYTHON_NUMBERS and current.trace is eager:
        number = remembered_numbers.get((x_class, x, y.aval)) if x or x_class is int else None
        if number is None:
            number = eager_number(x, x_class, y.aval)
        if number is not None:
            return y.aval.dtype, number, y
    if y_class in _ABSORBED and isinstance(x, Array):
        aval = x.aval
        if aval.weak_type:
            if y_class is float and aval.dtype is dtypes.python_scalar_dtype(float):
                return aval.dtype, x, y  # both came from Python, and so does the result
        elif aval.dtype in _ABSORBED[y_class]:
            return aval.dtype, x, cast_number(y, aval.dtype)
    x, y = promote(name, x, y, fit=align_operands)
    return dtype_of(x), x, y


def binary_even(name: str, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """`binary` for functions of several operations: operands of one shape, or scalars."""
    dtype, x, y = binary(name, x, y)
    x, y = broadcast_operands(name, (x, y))
    return dtype, x, y


_zeros: Memo[tuple, DeviceArray] = Memo()


def eager_number(number: Any, cls: type, aval: ShapedArray) -> DeviceArray | None:
    """A Python number as an array of the dtype of `aval`, if it takes that dtype; remembered."""
    if cls is float and number == 0:  # 0.0 = −0.0, but they are not the same
        key: tuple[Any, ...] = (math.copysign(1.0, number), aval)
        cache: dict[Any, Any] = _zeros
        found = cache.get(key)
        if found is not None:
            return found
    elif cls is bool:
        return None
    else:
        cache, key = remembered_numbers, (cls, number, aval)
    if aval.weak_type or aval.dtype not in _ABSORBED[cls]:
        return None
    result = DeviceArray(ShapedArray((), aval.dtype), cast_number(number, aval.dtype))
    if cls is int or (cls is float and math.isfinite(number)):  # NaN would never be found again
        cache[key] = result
    return result


def dtype_of(x: Any) -> Any:
    """The dtype of an operand."""
    return dtypes.python_scalar_dtype(x) if x.__class__ in PYTHON_NUMBERS else x.dtype


def inexact(name: str, x: Any) -> Any:
    """One argument as an operand of a floating point dtype."""
    if isinstance(x, Array):
        dtype = x.aval.dtype
        if dtype is FLOAT32 or dtype in _INEXACT:
            return x
    return promote_inexact(name, x)[0]


def strong_inexact(name: str, x: Any) -> Any:
    """One argument as an operand of a floating point dtype that is not weak."""
    return strong(inexact(name, x))


def binary_inexact(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two arguments as operands of one floating point dtype, with as many axes or none."""
    if isinstance(x, Array) and x.aval.dtype in _INEXACT or isinstance(y, Array) and y.aval.dtype in _INEXACT:
        _, x, y = binary(name, x, y)
        return x, y
    # Each at once: unlike integers have no dtype that holds both.
    x, y = promote_inexact(name, x, y, fit=align_operands)
    return x, y


Function = TypeVar("Function", bound=Callable[..., Any])


def fused(host: Callable[..., Any] | None = None) -> Callable[[Function], Function]:
    """Runs a function made of several operations on elements as one, where it is called on concrete arrays.

    Large arrays go through one compiled program, since each step would read and write all of them. Small ones are
    computed by `host`, or step by step if there is none. Inside of transformations the steps are recorded one by one.

    Args:
        host: the same function on NumPy arrays; its results have the dtypes of those of the steps.

    Returns:
        A decorator for functions of operands, as `promote` gives them.
    """

    def decorate(function: Function) -> Function:
        compiled = jit(function)

        @functools.wraps(function)
        def call(*operands):
            if current.trace is not eager:
                return function(*map(_with_operators, operands))
            limit = config.host_size_limit
            values = []
            weak = True
            for x in operands:
                if x.__class__ is DeviceArray:
                    if x.aval.size > limit:
                        return compiled(*operands)
                    weak = weak and x.aval.weak_type
                    x = x._host if x._host is not None else x.peek()
                    if x is None:
                        return compiled(*operands)
                elif x.__class__ in PYTHON_NUMBERS:
                    x = np.asarray(x, dtypes.python_scalar_dtype(x))
                elif isinstance(x, Array):  # on another device, or of an extended dtype
                    return compiled(*operands)
                else:
                    weak = False
                values.append(x)
            if host is None:
                return function(*map(_with_operators, operands))
            result = quiet.run(host, *values)
            dtype = values[0].dtype if weak else None
            if result.__class__ is tuple:
                return tuple([_host_array(part, dtype) for part in result])
            return _host_array(result, dtype)

        return call  # type: ignore[return-value]

    return decorate


def _with_operators(x: Any) -> Any:
    """An operand with the operators of arrays, since those of NumPy's promote otherwise; numbers stay literals."""
    if isinstance(x, np.ndarray) and x.ndim:
        return DeviceArray(ShapedArray(x.shape, x.dtype), x)
    return x


def _host_array(value: Any, weak_dtype: Any) -> DeviceArray:
    """A result on the host, weak if it has the dtype of operands that all are."""
    value = np.asarray(value)
    weak = weak_dtype is not None and value.dtype == weak_dtype
    return DeviceArray(ShapedArray(value.shape, value.dtype, weak), value)
