"""What the distributions share: functions of numbers and parameters that run as one program, and shifting and scaling.

Parameters outside of their domain give NaN; so does a scale that is not positive.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from purax import numpy as jnp
from purax.config import config
from purax.core import dtypes
from purax.numpy._promotion import dtype_of, fused, promote_inexact, strong, strong_unless_scalar
from purax.primitives.elementwise.conversion import convert_element_type

Function = TypeVar("Function", bound=Callable[..., Any])


def of_numbers(function: Function, strongly: bool = False) -> Function:
    """Gives the arguments of a function one floating point dtype and, where they are large, runs it as one program.

    The result is weak where all arguments are and it has no axes; with `strongly` it never is.
    """
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    parameters = list(inspect.signature(function).parameters.values())
    names = [parameter.name for parameter in parameters]
    defaults = [parameter.default for parameter in parameters]
    run = fused()(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        if kwargs or len(args) > len(names):
            args = inspect.signature(function).bind(*args, **kwargs)
            args.apply_defaults()
            args = args.args
        elif len(args) < len(names):
            rest = defaults[len(args) :]
            if inspect.Parameter.empty in rest:
                inspect.signature(function).bind(*args)  # raises and names what is missing
            args = (*args, *rest)
        result = run(*promote_inexact(name, *args))
        return strong(result) if strongly else strong_unless_scalar(result)

    return call  # type: ignore[return-value]


def positive(x: Any) -> Any:
    """`x` where it is positive, else NaN."""
    return jnp.where(x > 0, x, jnp.nan)


def standardized(x: Any, loc: Any, scale: Any) -> Any:
    """(x − loc)/scale, NaN unless the scale is positive."""
    return (x - loc) / positive(scale)


def whole(k: Any) -> Any:
    """Whether a number is whole."""
    return k == jnp.floor(k)


def quantile(p: Any, value: Any) -> Any:
    """`value` for probabilities, NaN for other numbers."""
    return jnp.where((p >= 0) & (p <= 1), value, jnp.nan)


def log_in_double(function: Callable[..., Any], *operands: Any) -> Any:
    """log f(…), with f computed in float64, where probabilities that float32 does not hold have logarithms."""
    dtype, weak = dtype_of(operands[0]), all(dtypes.is_weakly_typed(x) for x in operands)
    with config.override(explicit_x64_dtypes="allow"):
        result = jnp.log(function(*(jnp.asarray(x).astype(jnp.float64) for x in operands)))
        return convert_element_type(result, dtype, weak)
