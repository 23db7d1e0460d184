"""What every transformation does with the arguments of a call: check leaves, name them, split off static ones."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of, refuse_mask
from purax.core.dimensions import SymbolicDimension
from purax.core.limits import finite
from purax.core.memo import Memo
from purax.core.trace import Tracer
from purax.errors import shown
from purax.references import cells
from purax.tree.registry import keystr, tree_flatten_with_path
from purax.xla.array import DeviceArray, constant


def name_of(function: Callable) -> str:
    """What to call a function in messages and printed programs."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def wraps(function: Callable) -> Callable[[Callable], Callable]:
    """`functools.wraps` for what users transform: an object's `__name__` need not be one that functions can have."""

    def decorate(wrapper: Callable) -> Callable:
        for name in functools.WRAPPER_ASSIGNMENTS:
            with contextlib.suppress(AttributeError, TypeError):
                setattr(wrapper, name, getattr(function, name))
        return functools.update_wrapper(wrapper, function, assigned=())

    return decorate


def require_function(function: Any, caller: str) -> None:
    """Raises unless `function` can be called."""
    if not callable(function):
        raise source.located(
            TypeError,
            f"{caller} needs a function: Expected a callable value, got {shown(function)} of type "
            f"{type(function).__name__}",
        )


def aval_of_argument(x: Any) -> ShapedArray:
    """The type an argument gets: NumPy's 64-bit values become the default width, Python numbers are weak."""
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, (np.ndarray, np.generic)):
        refuse_mask(x)
        return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))
    if type(x) is SymbolicDimension:
        return aval_of(0)
    if cells.kind_of(x) is not None:
        raise TypeError(f"{shown(x)} is a reference; here its value is needed, `ref[...]`")
    if hasattr(x, "__array__") and hasattr(x, "dtype"):
        return ShapedArray(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype))
    if isinstance(x, ShapedArray):  # a type stands for an array of it, as does what has a shape and a dtype
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "aval"):
        return ShapedArray(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype))
    aval = aval_of(x)
    available = dtypes.as_available_dtype(aval.dtype)
    return aval if available is aval.dtype else aval.with_dtype(available, aval.weak_type)


def to_array(x: Any) -> Array:
    """An argument as an array: tracers and arrays as they are, NumPy values copied, Python numbers weakly typed."""
    if isinstance(x, Array):
        return x
    aval = aval_of_argument(x)
    if type(x) is SymbolicDimension:
        return x.__jax_array__()
    if not isinstance(x, _NUMBERS) and not hasattr(x, "__array__"):
        raise TypeError(f"{shown(x)} stands for an array and has no value")
    return DeviceArray(aval, np.array(x, aval.dtype))


_NUMBERS = (bool, int, float, complex)


def exact_array(x: Any, aval: ShapedArray) -> Any:
    """A value that is known to have type `aval` as an array of that type; NumPy's 64-bit values keep their width."""
    return x if isinstance(x, Array) else DeviceArray(aval, np.array(x, aval.dtype))


def arrays_of(
    function: Callable, leaves: Sequence[Any], arguments: tuple[Any, Any], way_out: str = ""
) -> list[Any]:
    """The leaves of (args, kwargs) of a call as arrays; the error for one that is none names it."""
    try:
        return [to_array(x) for x in leaves]
    except (TypeError, OverflowError) as error:
        raise leaf_error(function, arguments, error, to_array, way_out) from None


def operands_of(function: Callable, leaves: Sequence[Any], arguments: tuple[Any, Any]) -> list[Any]:
    """`arrays_of` for operands of a primitive: numbers are literals of the program that is being recorded."""
    arrays = arrays_of(function, leaves, arguments)
    if not any(isinstance(x, Tracer) for x in arrays):
        return arrays
    scalars = [x[()] if isinstance(x, np.ndarray) and not x.ndim else x for x in leaves]
    return [
        constant(x, array.dtype, array.weak_type) if isinstance(x, (*_NUMBERS, np.generic)) else array
        for x, array in zip(scalars, arrays, strict=True)
    ]


_numbers: Memo[Any, DeviceArray] = Memo(1024)


def array_of_leaf(x: Any) -> Any:
    """`to_array`, which for the Python numbers of recent calls gives the same array, at home on the device already."""
    kind = type(x)
    if kind is np.ndarray:
        aval = ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))
        return DeviceArray(aval, np.array(x, aval.dtype))
    if kind is int or (kind is float and x):  # a float zero has a sign that a dictionary does not see
        key = (x, kind, config.trace_key)
        array = _numbers.get(key)
        if array is None:
            array = _numbers[key] = to_array(x)
        return array
    return to_array(x)


def leaf_error(
    function: Callable, arguments: tuple[Any, Any], error: Exception, convert: Callable, way_out: str = ""
) -> BaseException:
    """The error for the first leaf of (args, kwargs) that `convert` refuses, naming where it stands."""
    names = parameter_names(function)
    for path, leaf in tree_flatten_with_path(arguments)[0]:
        try:
            convert(leaf)
        except OverflowError:
            return source.located(
                OverflowError,
                f"argument {argument_name(path, names)} of `{name_of(function)}` is {shown(leaf)}, which does not "
                f"fit into {dtypes.dtype_name(aval_of_argument(leaf).dtype)}; pass a float, or an array of a "
                f"wider dtype: `jnp.asarray({shown(leaf)}, jnp.int64)`",
            )
        except TypeError:
            return source.located(
                TypeError,
                f"argument {argument_name(path, names)} of `{name_of(function)}` is {shown(leaf)} of type "
                f"{type(leaf).__name__}, which is not an array or a number. {way_out or _BY_CLOSURE}, or "
                "register its type as a pytree (`purax.tree_util.register_dataclass`).",
            )
    return source.with_location(error)


_BY_CLOSURE = "If the function should see it as it is, capture it: `lambda x: f(x, option)`"


def argument_name(path: Sequence[Any], names: Sequence[str] = ()) -> str:
    """How a message calls a leaf of (args, kwargs): `x['w'][0]`, `args[2]`, `scale`."""
    kind, first, *rest = path
    if kind.idx == 0:
        position = first.idx
        head = names[position] if position < len(names) else f"args[{position}]"
    else:
        head = first.key
    return f"{head}{keystr(tuple(rest))}"


class _Parameters(NamedTuple):
    """What a function takes: names of positional parameters and of others, and whether any number, any name."""

    positional: tuple[str, ...]
    keyword_only: tuple[str, ...]
    takes_more: bool
    takes_any_name: bool


def _parameters(function: Callable) -> _Parameters:
    """The parameters of a function; TypeError or ValueError where they cannot be found out."""
    if type(function) is FunctionType and not function.__dict__.keys() & {"__wrapped__", "__signature__"}:
        code = function.__code__  # says the same as `inspect.signature`, which takes 0.1 ms
        count, flags = code.co_argcount, code.co_flags
        names = code.co_varnames[: count + code.co_kwonlyargcount]
        takes = (bool(flags & inspect.CO_VARARGS), bool(flags & inspect.CO_VARKEYWORDS))
        return _Parameters(names[:count], names[count:], *takes)
    parameters = inspect.signature(function).parameters.values()
    kinds = inspect.Parameter
    by_place = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    return _Parameters(
        tuple(p.name for p in parameters if p.kind in by_place),
        tuple(p.name for p in parameters if p.kind is kinds.KEYWORD_ONLY),
        any(p.kind is kinds.VAR_POSITIONAL for p in parameters),
        any(p.kind is kinds.VAR_KEYWORD for p in parameters),
    )


def parameter_names(function: Callable) -> tuple[str, ...]:
    """The names of the positional parameters, or () where they cannot be found out."""
    try:
        return _parameters(function).positional
    except (TypeError, ValueError):
        return ()


def keyword_only_names(function: Callable) -> tuple[str, ...]:
    """The names of the parameters that can only be given by name."""
    return _parameters(function).keyword_only


def from_front(positions: Iterable[int], count: int) -> set[int]:
    """Positions among `count` arguments, with negative ones counted from the end."""
    return {i + count if i < 0 else i for i in positions}


def as_positions(value: Any, name: str) -> tuple[int, ...]:
    """`argnums` given as an integer or integers."""
    if type(value) is int:
        return (value,)
    if value is None:
        return ()
    try:
        return tuple(operator.index(i) for i in (finite(value) if isinstance(value, Iterable) else (value,)))
    except TypeError:
        raise source.located(
            TypeError, f"{name} must be an integer or integers, got {shown(value)}"
        ) from None


def as_names(value: Any, name: str) -> tuple[str, ...]:
    """`argnames` given as a string or strings."""
    if value is None:
        return ()
    names = tuple(finite(value)) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    for item in names:
        if not isinstance(item, str):
            raise source.located(TypeError, f"{name} must be a string or strings, got {shown(value)}")
    return names


def numbers_and_names(
    function: Callable, numbers: Any, names: Any, what: str
) -> tuple[frozenset[int], frozenset[str]]:
    """Argument numbers and names that say the same: whichever was given is completed from the signature."""
    if numbers is None and names is None:
        return frozenset(), frozenset()
    positions = as_positions(numbers, f"{what}_argnums")
    words = as_names(names, f"{what}_argnames")
    try:
        positional, keyword_only, takes_more, takes_any_name = _parameters(function)
    except (TypeError, ValueError):
        return frozenset(positions), frozenset(words)
    count = len(positional)
    for i in positions:
        if not takes_more and not -count <= i < count:
            message = (
                f"{what}_argnums={numbers} does not fit `{name_of(function)}`, which takes {count} positional "
                "arguments"
            )
            raise source.located(ValueError, message)
    if not takes_more:  # with *args, negative numbers count from the end of each call
        positions = tuple(i + count if i < 0 else i for i in positions)
    known = [*positional, *keyword_only]
    for word in words:
        if word not in known and not takes_any_name:
            message = (
                f"{what}_argnames names {word!r}, but the arguments of `{name_of(function)}` are "
                f"{', '.join(known)}"
            )
            raise source.located(ValueError, message)
    if names is None:
        words = tuple(positional[i] for i in positions if 0 <= i < count)
    if numbers is None:
        positions = tuple(positional.index(word) for word in words if word in positional)
    return frozenset(positions), frozenset(words)
