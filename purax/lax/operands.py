"""What the functions of `purax.lax` do with their arguments: nearly nothing, and quickly.

Operations are strict: operands have one dtype, and one shape up to axes of size 1 and scalars. Arrays, tracers and
Python numbers are passed on as they are; NumPy values get the dtypes in use; what does not fit raises a TypeError that
names all shapes and dtypes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.core.dimensions import as_size
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import ShapeError, shown
from purax.interpreters.arguments import to_array
from purax.interpreters.plain_numbers import settled
from purax.primitives.elementwise.elementwise import common_shape, number_like

NUMBERS = frozenset((bool, int, float, complex))


def operand(name: str, x: Any, position: int = 0) -> Any:
    """An argument as something that operations take: an array, a tracer or a Python number."""
    if isinstance(x, Array) or type(x) in NUMBERS:
        return x
    return array(name, x, position)


def array(name: str, x: Any, position: int = 0) -> Array:
    """An argument as an array or a tracer."""
    if isinstance(x, Array):
        return settled(x)
    convert = getattr(x, "__jax_array__", None)
    if convert is not None and not isinstance(x, type):
        return array(name, convert(), position)
    if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        return to_array(x)
    hint = " Write jnp.asarray(x)." if isinstance(x, (list, tuple)) or hasattr(x, "__array__") else ""
    raise located(
        TypeError,
        f"lax.{name} takes arrays and numbers, got {shown(x):.60} of type {type(x).__name__} at "
        f"position {position}.{hint}",
    )


def refuse_complex(number: Any, dtype: Any) -> None:
    """Raises if a Python number would lose its imaginary part. Booleans do not: 1j is True."""
    if type(number) is complex and not dtypes.is_complex(dtype) and dtype != np.bool_:
        raise located(
            TypeError,
            f"the complex number {number} cannot become {dtypes.dtype_name(dtype)}; take x.real or abs(x)",
        )


def pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of one dtype that meet element by element."""
    try:
        a, b = x.aval, y.aval
        fits = a.dtype is b.dtype and (a.shape == b.shape or not a.shape or not b.shape)
    except AttributeError:
        if type(y) in NUMBERS and isinstance(x, Array):
            if dtypes.python_scalar_dtype(type(y)) == x.aval.dtype:
                return x, number_like(y, x)
        elif type(x) in NUMBERS and isinstance(y, Array):
            if dtypes.python_scalar_dtype(type(x)) == y.aval.dtype:
                return number_like(x, y), y
        return together(name, x, y)
    return (x, y) if fits else together(name, x, y)


def together(name: str, *operands: Any) -> tuple[Any, ...]:
    """Operands of one dtype that meet element by element: arrays of one shape up to axes of size 1, and scalars."""
    values = [operand(name, x, i) for i, x in enumerate(operands)]
    avals = [aval_of(x) for x in values]
    same_dtypes(name, avals)
    shapes = {aval.shape for aval in avals if aval.shape}
    if len(shapes) < 2:
        return tuple(values)
    if len({len(shape) for shape in shapes}) > 1:
        raise located(
            TypeError,
            f"lax.{name} needs arrays with the same number of axes, or scalars; got {listed(avals)}. "
            "Add axes with lax.expand_dims or lax.broadcast_in_dim.",
        )
    try:
        common_shape([aval.shape for aval in avals])
    except ValueError:
        raise located(
            TypeError, f"lax.{name} got incompatible shapes for broadcasting: {listed(avals)}"
        ) from None
    return tuple(values)


def same_dtypes(name: str, avals: Sequence[ShapedArray]) -> None:
    """Raises unless all dtypes are equal."""
    if any(aval.dtype != avals[0].dtype for aval in avals):
        raise located(
            TypeError,
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{', '.join(aval.dtype.name for aval in avals)}. They are {listed(avals)}: convert one of them with "
            "lax.convert_element_type, or use the function of purax.numpy, which promotes dtypes.",
        )


def listed(avals: Sequence[ShapedArray]) -> str:
    """Types as messages name them: `float32[3], int32[]`."""
    return ", ".join(aval.str_short(short_dtypes=False) for aval in avals)


def integer(name: str, what: str, value: Any) -> int:
    """An integer argument; a number with a fraction is none, nor is NaN."""
    try:
        return as_size(value)
    except TypeError:
        raise located(TypeError, f"lax.{name}: {what} is an integer, got {shown(value)}") from None


def axis_in(name: str, axis: Any, ndim: int) -> int:
    """An axis counted from either end, as one from the front."""
    given = integer(name, "axis", axis)
    if not -ndim <= given < ndim:
        raise located(ShapeError, f"lax.{name}: axis {given} is out of bounds for an array with {ndim} axes")
    return given + ndim if given < 0 else given


def axes_in(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Distinct axes counted from either end, as ones from the front."""
    if not isinstance(axes, Iterable):
        raise located(TypeError, f"lax.{name}: axes are a sequence of integers, got {shown(axes)}")
    found = tuple(axis_in(name, axis, ndim) for axis in finite(axes))
    if len(set(found)) != len(found):
        raise located(ValueError, f"lax.{name}: repeated axis in lax.{name}: {tuple(axes)}")
    return found


def sizes_of(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """A shape as a tuple of Python integers."""
    if type(shape) is tuple:
        for n in shape:
            if type(n) is not int:
                break
        else:
            return shape
    try:
        return (
            (as_size(shape),)
            if hasattr(shape, "__index__")
            else tuple(map(as_size, finite(shape)))
        )
    except TypeError:
        raise located(
            TypeError,
            f"{name} must be integers that are known when the program is traced, got {shown(shape)}",
        ) from None


def pairs_of(padding: Any, name: str = "padding") -> tuple[tuple[int, int], ...]:
    """Padding as pairs of Python integers (before, after)."""
    try:
        return tuple((as_size(low), as_size(high)) for low, high in finite(padding))
    except (TypeError, ValueError):
        raise located(
            TypeError,
            f"{name} must be a name such as 'SAME', or a pair of integers for each axis; got {shown(padding)}",
        ) from None


__all__ = [
    "NUMBERS", "array", "axes_in", "axis_in", "listed", "operand", "pair", "pairs_of", "same_dtypes",
    "sizes_of", "together",
]  # fmt: skip
