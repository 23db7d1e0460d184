"""Choosing between several arrays or functions on each element: `select`, `choose`, `piecewise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite, numpy_value
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import shown
from purax.numpy._indexing.selection import where
from purax.numpy._programs import concrete_value
from purax.numpy._promotion import BOOL, as_array, broadcast_operands, common_dtype, convert, refuse_out
from purax.numpy._reductions.reductions import as_truth
from purax.numpy._shape.axes import items
from purax.numpy._shape.shaping import broadcast_to
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import clamp
from purax.primitives.shape.dimension_value import number_as
from purax.typing import ArrayLike


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """On each element, the choice that belongs to the first condition that holds.

    Args:
        condlist: the conditions.
        choicelist: a choice for each of them.
        default: what to choose where no condition holds.

    Returns:
        The choices; all arrays are broadcast against each other.

    >>> import purax.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x < 3], [x - 10, x * 10], default=7)
    Array([-10,  10,  20,   7], dtype=int32)
    """
    condlist = items("select", "condlist", condlist, "a list of arrays")
    choicelist = items("select", "choicelist", choicelist, "a list of arrays")
    if len(condlist) != len(choicelist):
        raise located(
            ValueError,
            f"select: condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})",
        )
    if not len(condlist):
        raise located(ValueError, "select: condlist must be non-empty")
    conditions = [as_truth(as_array(c, "select(condlist)", i), "select") for i, c in enumerate(condlist)]
    choices = [as_array(c, "select(choicelist)", i) for i, c in enumerate([*choicelist, default])]
    dtype, weak = common_dtype(choices)
    choices = [convert(choice, dtype, weak) for choice in choices]
    result = choices[-1]
    for condition, choice in zip(reversed(conditions), reversed(choices[:-1]), strict=True):
        result = where(condition, choice, result)
    return result


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """On each element, the choice whose number stands there.

    Args:
        a: the numbers, integers.
        choices: a sequence of arrays, or an array whose first axis numbers the choices.
        out: not supported.
        mode: what to do with numbers that no choice has: "raise" an error (for known arrays), "clip" to the nearest, or
            "wrap" around.

    Returns:
        The choices; all arrays are broadcast against each other.

    >>> import purax.numpy as jnp
    >>> jnp.choose(jnp.array([0, 1, 0]), [jnp.array([1, 2, 3]), 10])
    Array([ 1, 10,  3], dtype=int32)
    """
    refuse_out("choose", out)
    numbers = as_array(a, "choose")
    if not dtypes.is_integer(numbers.dtype):
        raise located(
            ValueError, f"choose: the array `a` must be integer typed, got {dtypes.dtype_name(numbers.dtype)}"
        )
    if isinstance(choices, (list, tuple)):
        arrays = [as_array(choice, "choose(choices)", i) for i, choice in enumerate(finite(choices))]
    else:
        arrays = list(as_array(choices, "choose", 1))
    if not arrays:
        raise located(ValueError, "choose: choices must be non-empty")
    count = len(arrays)
    if mode == "raise":
        known = concrete_value(a)
        if known is None:
            assert isinstance(numbers, Tracer)
            numbers.refuse(
                errors.ConcretizationTypeError,
                "choose with mode='raise'",
                "Use mode='wrap' or mode='clip' instead.",
            )
        if known.size and (known.min() < 0 or known.max() >= count):
            raise located(
                ValueError,
                f"choose: invalid entry in choice array: numbers between {known.min()} and {known.max()}, but "
                f"there are {count} choices. Use mode='clip' or mode='wrap'.",
            )
    elif mode == "clip":
        numbers = clamp(np.array(0, numbers.dtype), numbers, number_as(count - 1, numbers.dtype))
    elif mode == "wrap":
        numbers = numbers % count
    else:
        raise located(
            ValueError, f"choose: mode={shown(mode)} not understood. Must be 'raise', 'wrap', or 'clip'"
        )
    dtype, _ = common_dtype(arrays)
    arrays = [convert_element_type(x, dtype) for x in arrays]
    numbers, *arrays = broadcast_operands("choose", [numbers, *arrays], scalars=True)
    result = arrays[-1]
    for number in reversed(range(count - 1)):
        result = where(numbers == number, arrays[number], result)
    return result


def piecewise(
    x: ArrayLike,
    condlist: Any,
    funclist: Sequence[ArrayLike | Callable[..., Array]],
    *args: Any,
    **kw: Any,
) -> Array:
    """On each element, the function that belongs to the last condition that holds.

    All functions are computed on the whole of `x`, unlike in NumPy, so that they can be compiled.

    Args:
        x: where to compute the functions.
        condlist: conditions in the shape of `x`; a sequence of them, or one array.
        funclist: for each condition a function, or a number; and one more, where no condition holds, which is 0 if it
            is left out.
        args, kw: further arguments of the functions.

    Returns:
        An array of the shape and the dtype of `x`.

    >>> import purax.numpy as jnp
    >>> x = jnp.array([-2.0, 0.5, 3.0])
    >>> jnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, 1.0, lambda v: v])
    Array([2. , 0.5, 1. ], dtype=float32)
    """
    array = as_array(x, "piecewise")
    array = convert_element_type(array, array.dtype)
    if isinstance(condlist, (list, tuple)):
        listed = list(condlist)
        if listed and not isinstance(listed[0], (list, tuple)) and array.ndim and not _rank(listed[0]):
            listed = [numpy_value(listed)]  # a single condition, as a list of booleans
        conditions = [
            as_array(numpy_value(c) if isinstance(c, (list, tuple)) else c, "piecewise", 1) for c in listed
        ]
    else:
        table = as_array(condlist, "piecewise", 1)
        conditions = [table] if table.ndim == 0 else list(table)
    count = len(conditions)
    functions = list(finite(funclist))
    if len(functions) == count:
        functions.append(0)
    elif len(functions) != count + 1:
        raise located(
            ValueError,
            f"piecewise: with {count} condition(s), either {count} or {count + 1} functions are expected; got "
            f"{len(functions)}",
        )
    result = _value_of(functions[-1], array, args, kw)
    for condition, function in zip(conditions, functions, strict=False):
        mask = as_truth(condition, "piecewise") if condition.dtype != BOOL else condition
        result = where(mask, _value_of(function, array, args, kw), result)
    return result


def _value_of(function: Any, x: Array, args: tuple, kw: dict) -> Array:
    value = function(x, *args, **kw) if callable(function) else function
    return broadcast_to(convert_element_type(as_array(value, "piecewise"), x.dtype), x.shape)


def _rank(x: Any) -> int:
    return np.ndim(x if hasattr(x, "ndim") else numpy_value(x))
