"""The infix operators of arrays, concrete and traced: `install` puts them on `purax.core.array.Array`.

An operand that is neither an array nor a number gives `NotImplemented`, so that its own class can answer. There are no
in-place operators: `x += y` binds `x` to a new array. Assigning to an element raises an error that shows `x.at`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from purax.config import config
from purax.core import avals, dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.primitive import Primitive, native
from purax.core.source import located
from purax.core.trace import Tracer
from purax.execution.eager import eager
from purax.numpy._elementwise import arithmetic, comparison, rounding
from purax.numpy._promotion import BOOL, PYTHON_NUMBERS, remembered_numbers
from purax.primitives.elementwise.arithmetic import div_p, sub_p
from purax.primitives.elementwise.elementwise import add_p, mul_p
from purax.primitives.elementwise.logic import and_p, eq_p, ge_p, gt_p, le_p, lt_p, ne_p, or_p
from purax.xla.array import DeviceArray

_OPERANDS = frozenset((DeviceArray, np.ndarray, *PYTHON_NUMBERS))
_KINDS = (Array, np.ndarray, np.generic, bool, int, float, complex)


def _is_operand(other: Any) -> bool:
    return isinstance(other, _KINDS) or hasattr(other, "__jax_array__")


def _refuse_sequence(symbol: str, number: Any, other: Any) -> None:
    if (
        symbol == "*"
        and isinstance(number, Tracer)
        and isinstance(other, (list, tuple, str, bytes, bytearray))
    ):
        if not number.aval.shape and number.aval.dtype.kind in "biu":
            number.__index__()  # how often the sequence is to be repeated: it says that it must be known
    if isinstance(other, (list, tuple)):
        kind = type(other).__name__
        raise located(
            TypeError,
            f"unsupported operand type(s) for {symbol}: 'Array' and '{kind}'. Convert the {kind}: jnp.array(...)",
        )


def _binary(function: Callable, symbol: str) -> Callable:
    def operator(self, other):
        if other.__class__ in _OPERANDS or _is_operand(other):
            return function(self, other)
        _refuse_sequence(symbol, self, other)
        return NotImplemented

    return operator


def _reflected(function: Callable, symbol: str) -> Callable:
    def operator(self, other):
        if other.__class__ in _OPERANDS or _is_operand(other):
            return function(other, self)
        _refuse_sequence(symbol, self, other)
        return NotImplemented

    return operator


_BINARY: dict[str, tuple[Callable[..., Any], str]] = {
    "add": (arithmetic.add, "+"),
    "sub": (arithmetic.subtract, "-"),
    "mul": (arithmetic.multiply, "*"),
    "truediv": (arithmetic.divide, "/"),
    "floordiv": (arithmetic.floor_divide, "//"),
    "mod": (arithmetic.remainder, "%"),
    "divmod": (arithmetic.divmod, "divmod()"),
    "pow": (arithmetic.power, "**"),
    "and": (comparison.bitwise_and, "&"),
    "or": (comparison.bitwise_or, "|"),
    "xor": (comparison.bitwise_xor, "^"),
    "lshift": (comparison.left_shift, "<<"),
    "rshift": (comparison.right_shift, ">>"),
}
_COMPARISONS: dict[str, tuple[Callable[..., Any], str]] = {
    "eq": (comparison.equal, "=="),
    "ne": (comparison.not_equal, "!="),
    "lt": (comparison.less, "<"),
    "le": (comparison.less_equal, "<="),
    "gt": (comparison.greater, ">"),
    "ge": (comparison.greater_equal, ">="),
}
_UNARY = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "invert": comparison.invert,
}


def _round(self, ndigits: int | None = None):
    rounded = rounding.round(self, 0 if ndigits is None else ndigits)
    return rounded if ndigits is not None else rounded.astype(int)


def _set_item(self, index, value):
    raise located(
        TypeError,
        "arrays are immutable and do not support item assignment. Instead of `x[idx] = y`, write "
        "`x = x.at[idx].set(y)` (or .add, .multiply, .min, .max, .apply).",
    )


def _length(self) -> int:
    shape = self.aval.shape
    if not shape:
        raise TypeError("len() of unsized object: the array has shape ()")
    return shape[0]


def _contains(self, element) -> bool:
    return bool(comparison.equal(self, element).any())


def install() -> None:
    """Gives arrays their operators."""
    for name, (function, symbol) in _BINARY.items():
        setattr(Array, f"__{name}__", _named(_binary(function, symbol), f"__{name}__"))
        setattr(Array, f"__r{name}__", _named(_reflected(function, symbol), f"__r{name}__"))
    for name, (function, symbol) in _COMPARISONS.items():
        setattr(Array, f"__{name}__", _named(_binary(function, symbol), f"__{name}__"))
    for name, unary in _UNARY.items():
        setattr(Array, f"__{name}__", unary)
    Array.__round__ = _round  # type: ignore[method-assign]
    Array.__setitem__ = _set_item  # type: ignore[index]
    Array.__len__ = _length  # type: ignore[method-assign]
    Array.__contains__ = _contains  # type: ignore[method-assign]
    install_short_ways()


def _primitives() -> dict[str, dict[Any, Primitive]]:
    """Which primitive an operator is on operands of one dtype, as arrays or beside a number, where it is just one."""
    plain = [dtype for dtype in dtypes.ALL_DTYPES if dtype != BOOL]
    ordered = dict.fromkeys(dtype for dtype in dtypes.ALL_DTYPES if not dtypes.is_complex(dtype))
    return {
        "__add__": dict.fromkeys(plain, add_p) | {BOOL: or_p},
        "__sub__": dict.fromkeys(plain, sub_p),
        "__mul__": dict.fromkeys(plain, mul_p) | {BOOL: and_p},
        "__truediv__": {dtype: div_p for dtype in plain if dtypes.is_inexact(dtype)},
        "__eq__": dict.fromkeys(dtypes.ALL_DTYPES, eq_p),
        "__ne__": dict.fromkeys(dtypes.ALL_DTYPES, ne_p),
        "__lt__": dict.fromkeys(ordered, lt_p),
        "__le__": dict.fromkeys(ordered, le_p),
        "__gt__": dict.fromkeys(ordered, gt_p),
        "__ge__": dict.fromkeys(ordered, ge_p),
    }


def install_short_ways() -> None:
    """Tells the part in C (`core/_operators.h`), if there is one, what it needs to know of operators."""
    if native is not None:
        native.set_operators(
            Array, eager, config, ShapedArray, avals.interned, np.dtype, remembered_numbers, _primitives()
        )


def install_matmul(function: Callable) -> None:
    """Gives arrays the operator `@`."""
    Array.__matmul__ = _named(_binary(function, "@"), "__matmul__")  # type: ignore[method-assign]
    Array.__rmatmul__ = _named(_reflected(function, "@"), "__rmatmul__")  # type: ignore[method-assign]


def _named(function: Callable, name: str) -> Callable:
    function.__name__ = name
    function.__qualname__ = f"Array.{name}"
    return function
