"""The families of the functions of `purax.lax` on elements, whose members are rows of tables (`core.definitions`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from purax.core.array import Array
from purax.core.definitions import define, with_example
from purax.core.primitive import Primitive
from purax.lax import operands
from purax.lax.accuracy import check_accuracy
from purax.primitives.shape.gather_scatter import GatherScatterMode, ScatterDimensionNumbers
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


class Reduction(Protocol):
    """A function that reduces an array over axes."""

    __name__: str

    def __call__(self, operand: ArrayLike, axes: Sequence[int]) -> Array: ...


class Running(Protocol):
    """A function that gives what a reduction has so far along an axis."""

    __name__: str

    def __call__(self, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...


class Scattering(Protocol):
    """A function that changes windows of an array."""

    __name__: str

    def __call__(
        self,
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array: ...


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


def reduction(name: str, primitive: Primitive, summary: str, call: str, result: str) -> Reduction:
    """The reduction over axes that a primitive is."""
    bind, array, sizes_of = primitive.bind, operands.array, operands.sizes_of

    def function(operand: ArrayLike, axes: Sequence[int]) -> Array:
        return bind(array(name, operand), axes=sizes_of(axes, "axes"))

    return define(function, name, _doc(summary, call, result))


def running(name: str, primitive: Primitive, summary: str, call: str, result: str) -> Running:
    """The running reduction along an axis that a primitive is."""
    bind, array, integer = primitive.bind, operands.array, operands.integer

    def function(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        return bind(array(name, operand), axis=integer(name, "axis", axis), reverse=bool(reverse))

    return define(function, name, _doc(f"{summary} along an axis; from the end if `reverse`.", call, result))


def scattering(name: str, scatter: Callable[..., Array], summary: str, result: str) -> Scattering:
    """A function by which updates meet windows of an array: `scatter` of its arguments, all positional."""

    def function(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        return scatter(
            operand, scatter_indices, updates, dimension_numbers, indices_are_sorted, unique_indices, mode
        )

    words = f"{summary} Arguments are those of `scatter`."
    imports = "from purax import lax, numpy as jnp\n>>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))"
    call = f"lax.{name}(jnp.full(3, 5), jnp.array([[0], [2]]), jnp.array([2, 8]), numbers)"
    return define(function, name, with_example(words, imports, call, result))


def _doc(summary: str, call: str, result: str) -> str:
    imports = "from purax import lax, numpy as jnp" if "jnp." in call else "from purax import lax"
    return with_example(summary, imports, call, result)
