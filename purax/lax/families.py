"""The families of the functions of `purax.lax` on elements, whose members are rows of tables (`core.definitions`)."""

from __future__ import annotations

from typing import Any, Protocol

from purax.core.array import Array
from purax.core.definitions import define, with_example
from purax.core.primitive import Primitive
from purax.lax import operands
from purax.lax.accuracy import check_accuracy
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


class Unary(Protocol):
    """A function of one array."""

    __name__: str

    def __call__(self, x: ArrayLike) -> Array: ...


class UnaryWithAccuracy(Protocol):
    """A function of one array, computed as accurately as is asked for."""

    __name__: str

    def __call__(self, x: ArrayLike, *, accuracy: Any = None) -> Array: ...


class Binary(Protocol):
    """A function of two arrays."""

    __name__: str

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...


def unary(name: str, primitive: Primitive, summary: str, call: str, result: str) -> Unary:
    """The function of one array that a primitive is, from what is said of it: words, and a call with its result."""
    bind, operand, concrete = primitive.bind, operands.operand, DeviceArray

    def function(x: ArrayLike) -> Array:
        return bind(x if type(x) is concrete else operand(name, x))

    return define(function, name, _doc(summary, call, result))


def unary_with_accuracy(
    name: str, primitive: Primitive, summary: str, call: str, result: str
) -> UnaryWithAccuracy:
    """`unary` for functions that take `accuracy`."""
    bind, operand, concrete, check = primitive.bind, operands.operand, DeviceArray, check_accuracy

    def function(x: ArrayLike, *, accuracy: Any = None) -> Array:
        if accuracy is not None:
            check(accuracy)
        return bind(x if type(x) is concrete else operand(name, x))

    return define(function, name, _doc(summary, call, result))


def binary(
    name: str, primitive: Primitive, summary: str, call: str, result: str, parameters: str = ""
) -> Binary:
    """The function of two arrays of one dtype that a primitive is."""
    bind, pair = primitive.bind, operands.pair

    def function(x: ArrayLike, y: ArrayLike) -> Array:
        return bind(*pair(name, x, y))

    return define(function, name, _doc(summary, call, result), parameters)


def _doc(summary: str, call: str, result: str) -> str:
    imports = "from purax import lax, numpy as jnp" if "jnp." in call else "from purax import lax"
    return with_example(summary, imports, call, result)
