"""What every transformation does with the arguments of a call: check leaves, name them, split off static ones."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.tree_registry import keystr, tree_flatten_with_path
from purax.xla.array import DeviceArray


def name_of(function: Callable) -> str:
    """What to call a function in messages and printed programs."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def aval_of_argument(x: Any) -> ShapedArray:
    """The type an argument gets: NumPy's 64-bit values become the default width, Python numbers are weak."""
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, (np.ndarray, np.generic)):
        return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))
    if hasattr(x, "__array__") and hasattr(x, "dtype"):
        return ShapedArray(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype))
    return aval_of(x)


def to_array(x: Any) -> Any:
    """An argument as an array: tracers and arrays as they are, NumPy values copied, Python numbers weakly typed."""
    if isinstance(x, Array):
        return x
    aval = aval_of_argument(x)
    return DeviceArray(aval, np.array(x, aval.dtype))


def leaf_error(function: str, tree: Any, error: Exception) -> Exception:
    """The error for the first leaf of (args, kwargs) that is no array, naming where it stands."""
    args, kwargs = tree
    leaves, _ = tree_flatten_with_path((args, kwargs))
    for path, leaf in leaves:
        try:
            aval_of_argument(leaf)
        except TypeError:
            return TypeError(
                f"argument {argument_name(path)} of `{function}` is {leaf!r} of type {type(leaf).__name__}, which is "
                "not an array or a number. Make it static (`static_argnums`/`static_argnames`) if the function should "
                "see it as it is, or register its type as a pytree (`purax.tree_util.register_dataclass`)."
            )
    return error


def argument_name(path: Sequence[Any], names: Sequence[str] = ()) -> str:
    """How a message calls a leaf of (args, kwargs): `x['w'][0]`, `args[2]`, `scale`."""
    kind, first, *rest = path
    if kind.idx == 0:
        position = first.idx
        head = names[position] if position < len(names) else f"args[{position}]"
    else:
        head = first.key
    return f"{head}{keystr(tuple(rest))}"


def parameter_names(function: Callable) -> tuple[str, ...]:
    """The names of the positional parameters, or () where they cannot be found out."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in parameters if p.kind in kinds)


def as_positions(value: Any, name: str) -> tuple[int, ...]:
    """`argnums` given as an integer or integers."""
    if value is None:
        return ()
    try:
        return tuple(operator.index(i) for i in (value if isinstance(value, Iterable) else (value,)))
    except TypeError:
        raise TypeError(f"{name} must be an integer or integers, got {value!r}") from None


def as_names(value: Any, name: str) -> tuple[str, ...]:
    """`argnames` given as a string or strings."""
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else tuple(value)
    for item in names:
        if not isinstance(item, str):
            raise TypeError(f"{name} must be a string or strings, got {value!r}")
    return names


def numbers_and_names(
    function: Callable, numbers: Any, names: Any, what: str
) -> tuple[frozenset[int], frozenset[str]]:
    """Argument numbers and names that say the same: whichever was given is completed from the signature."""
    positions = as_positions(numbers, f"{what}_argnums")
    words = as_names(names, f"{what}_argnames")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return frozenset(positions), frozenset(words)
    kinds = inspect.Parameter
    positional = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    takes_more = any(p.kind is kinds.VAR_POSITIONAL for p in parameters)
    takes_any_name = any(p.kind is kinds.VAR_KEYWORD for p in parameters)
    count = len(positional)
    for i in positions:
        if not takes_more and not -count <= i < count:
            raise ValueError(
                f"{what}_argnums={numbers} does not fit `{name_of(function)}`, which takes {count} positional arguments"
            )
    positions = tuple(i + count if i < 0 else i for i in positions)
    known = {p.name for p in parameters}
    for word in words:
        if word not in known and not takes_any_name:
            raise ValueError(
                f"{what}_argnames names {word!r}, but the arguments of `{name_of(function)}` are {', '.join(known)}"
            )
    if names is None:
        words = tuple(positional[i] for i in positions if i < count)
    if numbers is None:
        positions = tuple(positional.index(word) for word in words if word in positional)
    return frozenset(positions), frozenset(words)

