"""Choosing between arrays element by element: `where`."""

from __future__ import annotations

from typing import Any, overload

from purax.core.array import Array
from purax.numpy._indexing.nonzero import nonzero
from purax.numpy._promotion import (
    BOOL,
    as_operand,
    binary_even,
    broadcast_operands,
    convert,
    dtype_of,
    shape_of,
)
from purax.primitives.elementwise.logic import ne, select_n_p
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


@overload
def where(condition: Any, /, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]: ...
@overload
def where(
    condition: Any, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> Array: ...
def where(
    condition: Any,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array | tuple[Array, ...]:
    """`x` where `condition` holds, else `y`, on each element.

    Args:
        condition: booleans, or numbers that count as true unless zero.
        x: the values where it holds; broadcast against the others.
        y: the values where it does not. Without `x` and `y`, the result is `jnp.nonzero(condition)`.
        size: without `x` and `y`, how many indices to return, which makes it work under `jit`.
        fill_value: without `x` and `y`, the indices beyond those that there are.

    Returns:
        An array, or a tuple of arrays of indices.

    >>> import purax.numpy as jnp
    >>> jnp.where(jnp.array([True, False]), jnp.array([1, 2]), 10)
    Array([ 1, 10], dtype=int32)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if condition.__class__ is x.__class__ is y.__class__ is DeviceArray and x.aval is y.aval:
        aval = condition.aval
        if aval.dtype is BOOL and aval.shape == x.aval.shape:
            return select_n_p.bind(condition, y, x)
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value belong to where(condition), without x and y")
    if condition.__class__ is not DeviceArray:
        condition = as_operand(condition, "where", 0)
    dtype = dtype_of(condition)
    if dtype is not BOOL:
        condition = ne(condition, convert(0, dtype))
    x, y = as_operand(x, "where", 1), as_operand(y, "where", 2)
    _, x, y = binary_even("where", x, y)
    shape, other = shape_of(condition), shape_of(x) or shape_of(y)
    if shape != other and shape and other:
        condition, x, y = broadcast_operands("where", [condition, x, y])
    return select_n_p.bind(condition, y, x)
