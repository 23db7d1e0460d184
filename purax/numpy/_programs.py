"""Functions made of several operations, run as one where they are called on concrete arrays.

`fused` in `promotion` does this for functions of elements. Here are functions with parameters that are part of the
program (axes, dtypes, flags). Operands are arrays that are not weak, and so are the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from purax.api.jit import jit
from purax.config import config
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.limits import numpy_value
from purax.core.trace import Tracer, current
from purax.execution.eager import _Quiet, eager
from purax.interpreters.arguments import keyword_only_names
from purax.numpy._promotion import as_array, promotes_freely
from purax.primitives.elementwise.conversion import convert_element_type_p
from purax.xla.array import DeviceArray, from_numpy
from purax.xla.capacity import refuse_to_read

_quiet = _Quiet()
Function = TypeVar("Function", bound=Callable[..., Any])


def as_one_program(host: Callable[..., Any] | None = None, weak: str = "") -> Callable[[Function], Function]:
    """Runs a function of several operations as one compiled program on large concrete arrays, and on the host on small.

    Args:
        host: the same function on NumPy arrays; its results have the dtypes of those of the operations. Without it,
            small arrays take the operations one by one.
        weak: "first" if the result is weak where the first operand is, "all" if it is where all operands are; else no
            result is.

    Returns:
        A decorator for functions of positional arrays and keyword-only parameters, which are hashable.
    """

    def decorate(function: Function) -> Function:
        static_names = keyword_only_names(function)
        function = promotes_freely(function)
        compiled = jit(function, static_argnames=static_names or None)

        @functools.wraps(function)
        def call(*operands, **params):
            if current.trace is not eager:
                return function(*operands, **params)
            limit = config.host_size_limit
            values = []
            for x in operands:
                if x.__class__ is DeviceArray:
                    if x.aval.size > limit:
                        return compiled(*operands, **params)
                    x = x._host if x._host is not None else x.peek()
                    if x is None:
                        return compiled(*operands, **params)
                elif isinstance(x, Array):  # on another device, or of an extended dtype
                    return compiled(*operands, **params)
                values.append(x)
            if host is None:
                return function(*operands, **params)
            result = _quiet.run(host, *values, **params)
            if result.__class__ is tuple:
                return tuple([host_array(part) for part in result])
            if weak and operands[0].aval.weak_type:
                if weak == "first" or all([x.aval.weak_type for x in operands]):
                    return from_numpy(np.asarray(result), True)
            return host_array(result)

        return call  # type: ignore[return-value]

    return decorate


def small_host_value(x: DeviceArray) -> np.ndarray | None:
    """The value of an array that is small and on the host already, so that NumPy is the fastest way; else None."""
    if x._placement is not None or x.aval.size > config.host_size_limit:
        return None
    return x._host if x._host is not None else x.peek()


def host_array(value: Any) -> DeviceArray:
    """A NumPy value that nobody writes to, as an array."""
    if value.__class__ is not np.ndarray:
        value = np.asarray(value)
    return DeviceArray(ShapedArray(value.shape, value.dtype), value)


def strong_array(x: Any, name: str, position: int = 0) -> Array:
    """An argument as an array whose dtype is not weak."""
    x = as_array(x, name, position)
    if x.aval.weak_type:
        return convert_element_type_p.bind(x, new_dtype=x.aval.dtype, weak_type=False)
    return x


def concrete_value(x: Any) -> Any:
    """The value of an array, as a NumPy array, if it is known, be it behind a transformation; else None.

    It is for decisions and checks only: results that are computed from it have no derivative (see `constant_value`).
    Ask for numbers before `as_array` makes them arrays of the program.
    """
    if x.__class__ is DeviceArray:
        return refuse_to_read(x.host_value())
    if isinstance(x, Tracer):
        known = x.concrete_or_none()
        return None if known is None else np.asarray(known)
    return numpy_value(x)


def constant_value(x: Any) -> Any:
    """The value of an array, as a NumPy array, if it is known and has no derivative; else None."""
    if isinstance(x, Tracer) and x.constant_or_none() is None:
        return None
    return concrete_value(x)
