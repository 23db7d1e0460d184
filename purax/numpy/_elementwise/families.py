"""The families of elementwise functions whose members are rows of tables (`core.definitions`): a name, a primitive,
words, and a call with its result. Also those of `purax.scipy.special`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from purax.core.array import Array
from purax.core.definitions import define, with_example
from purax.core.primitive import Primitive
from purax.numpy import _promotion
from purax.typing import ArrayLike

ONE = "Args:\n    x: an array or a number."
TWO = "Args:\n    x: an array or a number.\n    y: another, broadcast against it."
BITS = "Args:\n    x: an array of integers or booleans.\n    y: another, broadcast against it."
UNSUPPORTED = "    out: not supported: arrays are immutable.\n    where: not supported; use `jnp.where`."


class Unary(Protocol):
    """A function of one array."""

    __name__: str

    def __call__(self, x: ArrayLike, /) -> Array: ...


class Binary(Protocol):
    """A function of two arrays."""

    __name__: str

    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array: ...


class BinaryWithOut(Protocol):
    """A function of two arrays that refuses `out` and `where`."""

    __name__: str

    def __call__(self, x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array: ...


def unary(name: str, primitive: Primitive, summary: str, call: str, result: str) -> Unary:
    """The function of one array of floating point numbers that a primitive is."""
    bind, inexact = primitive.bind, _promotion.inexact

    def function(x: ArrayLike, /) -> Array:
        return bind(inexact(name, x))

    return define(function, name, _doc(f"{summary}\n\n{ONE}", call, result))


def alias(name: str, named: Unary, summary: str, call: str, result: str) -> Unary:
    """Another name of a function of one array."""

    def function(x: ArrayLike, /) -> Array:
        return named(x)

    return define(function, name, _doc(summary, call, result))


def alias_of_two(
    name: str, named: Binary, summary: str, call: str, result: str, parameters: str = "x1 x2"
) -> Binary:
    """Another name of a function of two arrays."""

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        return named(x, y)

    return define(function, name, _doc(summary, call, result), parameters)


def comparison(
    name: str, primitive: Primitive, of_complex: Callable[..., Any], summary: str, call: str, result: str
) -> Binary:
    """A comparison by size; `of_complex` is the comparison of complex numbers by a primitive."""
    bind, binary = primitive.bind, _promotion.binary

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        dtype, x, y = binary(name, x, y)
        return of_complex(primitive, x, y) if dtype.kind == "c" else bind(x, y)

    return define(function, name, _doc(f"{summary}\n\n{TWO}", call, result))


def logical(
    name: str, primitive: Primitive, truth: Callable[..., Any], summary: str, call: str, result: str
) -> BinaryWithOut:
    """An operation on what `truth` gives for two arrays."""
    bind, refuse_out, align_operands = primitive.bind, _promotion.refuse_out, _promotion.align_operands

    def function(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        refuse_out(name, out, where)
        return bind(*align_operands(name, [truth(x, name), truth(y, name, 1)]))

    return define(function, name, _doc(f"{summary}\n\n{TWO}\n{UNSUPPORTED}", call, result))


def promoted(
    name: str, primitive: Primitive, summary: str, call: str, result: str, arguments: str = TWO
) -> BinaryWithOut:
    """The function of two arrays, of the dtype that both are promoted to, that a primitive is."""
    bind, refuse_out, binary = primitive.bind, _promotion.refuse_out, _promotion.binary

    def function(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        if out is not None or where is not None:
            refuse_out(name, out, where)
        _, x, y = binary(name, x, y)
        return bind(x, y)

    return define(function, name, _doc(f"{summary}\n\n{arguments}\n{UNSUPPORTED}", call, result))


def _doc(words: str, call: str, result: str) -> str:
    return with_example(words, "import purax.numpy as jnp", call, result)
