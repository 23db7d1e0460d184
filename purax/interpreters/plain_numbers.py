"""Python's numbers where no operation touches them: purax makes arrays of them, JAX hands them on as they are.

Programs written for JAX may tell the two apart, so that the mode in which `import jax` gives purax sets `stay`. Inside,
a number is an array as ever, of which is known what it was made of. What hands values to the user's functions and
rules, or returns them, gives the number for it; the result of an operation is an array like all others.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.core.trace import Tracer, current, eager_trace
from purax.interpreters.arguments import arrays_of, operands_of, to_array
from purax.xla.array import DeviceArray

stay = False
_KINDS = (bool, int, float, complex, np.generic)
_made: dict[int, tuple[Any, Any]] = {}  # by id of an array: a weak reference to it, and the number


def may_result(leaves: Iterable[Any]) -> bool:
    """Whether a function of these arguments, which nothing transforms, may return plain numbers."""
    return (
        stay
        and current.trace is eager_trace()
        and all([isinstance(x, Array) and not isinstance(x, Tracer) or isinstance(x, _KINDS) for x in leaves])
    )


def array_from(x: Any) -> Any:
    """`to_array`; of an array that was made of a number it is known."""
    array = to_array(x)
    return array if array is x else made_of(array, x)


def made_of(array: Any, x: Any) -> Any:
    """`array`, a new one, which stands for `x` if that is a number."""
    if stay and type(array) is DeviceArray and isinstance(x, _KINDS) and not array.shape:
        key = id(array)
        _made[key] = (weakref.ref(array, lambda _: _made.pop(key, None)), x)
    return array


def primals_of(function: Callable, leaves: list[Any], arguments: tuple[Any, Any]) -> list[Any]:
    """`arrays_of`; of arrays that were made of numbers it is known."""
    arrays = arrays_of(function, leaves, arguments)
    if stay:
        for array, x in zip(arrays, leaves, strict=True):
            if array is not x:
                made_of(array, x)
    return arrays


def operands_for(function: Callable, leaves: list[Any], arguments: tuple[Any, Any]) -> list[Any]:
    """`operands_of` for a function with rules, which see the numbers where no program is recorded."""
    if stay and current.trace.ends_eager:
        return primals_of(function, leaves, arguments)
    return operands_of(function, leaves, arguments)


def plain(x: Any) -> Any:
    """The number that an array stands for, or what is given."""
    if _made and type(x) is DeviceArray:
        found = _made.get(id(x))
        if found is not None and found[0]() is x:
            return found[1]
    return x


def all_plain(values: Iterable[Any]) -> list[Any]:
    """`plain` of each value."""
    return list(map(plain, values)) if _made else list(values)


def settled_all(values: Any) -> Any:
    """`settled` of what the rule of an operation gave, one value or several."""
    if not _made:
        return values
    return [settled(x) for x in values] if isinstance(values, (list, tuple)) else settled(values)


def settled(x: Any) -> Any:
    """`x` as an array in its own right, which stands for no number."""
    if not _made:
        return x
    if isinstance(x, Tracer):
        return x.settled(settled)
    return x if plain(x) is x else DeviceArray(x.aval, x.host_value())
