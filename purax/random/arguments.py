"""Reading the arguments of distributions: shapes, dtypes and parameters, with errors that name the argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.dimensions import as_size
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.numpy._promotion import broadcast_shapes
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.sharding.constraints import put_at
from purax.xla.array import from_numpy


def as_shape(shape: Any, name: str, argument: str = "shape") -> tuple[int, ...]:
    """A shape of the user's: an integer or a sequence of integers, none negative."""
    try:
        sizes = tuple([as_size(size) for size in finite(shape)])
    except TypeError:
        try:
            sizes = (as_size(shape),)
        except TypeError:
            raise located(
                TypeError,
                f"{name}: {argument} must be an integer or a tuple of integers, got {shown(shape):.60}",
            ) from None
    for size in sizes:
        if size < 0:
            raise located(ValueError, f"{name}: {argument} must not be negative, got {shown(shape):.60}")
    return sizes


def float_dtype(dtype: Any, name: str, or_complex: bool = False) -> Any:
    """The dtype of a distribution over real numbers: the user's choice, or the default float."""
    if dtype is None:
        return dtypes.default_float()
    chosen = dtypes.as_dtype(dtype)
    if dtypes.is_floating(chosen) or or_complex and dtypes.is_complex(chosen):
        return chosen
    kinds = "a float or complex dtype" if or_complex else "a float dtype"
    raise located(ValueError, f"dtype argument to `{name}` must be {kinds}, got {dtypes.dtype_name(chosen)}")


def integer_dtype(dtype: Any, name: str) -> Any:
    """The dtype of a distribution over integers: the user's choice, or the default integer."""
    if dtype is None:
        return dtypes.default_int()
    chosen = dtypes.as_dtype(dtype)
    if dtypes.is_integer(chosen):
        return chosen
    raise located(
        TypeError, f"dtype argument to `{name}` must be an integer dtype, got {dtypes.dtype_name(chosen)}"
    )


def as_operand(x: Any, dtype: Any, name: str, argument: str) -> Array | np.ndarray:
    """A parameter of a distribution as an array of real numbers of `dtype`; a number as a NumPy scalar."""
    if type(x) is float or type(x) is int:
        return np.array(x, dtype)
    if isinstance(x, Array):
        aval = x.aval
    else:
        if not isinstance(x, (np.ndarray, np.generic, bool, int, float)):
            what = f"{shown(x):.60} of type {type(x).__name__}"
            raise located(TypeError, f"{name}: {argument} must be an array or a number, got {what}")
        aval = aval_of(x)
    if dtypes.kind(aval.dtype) not in ("float", "integer", "bool"):
        raise located(TypeError, f"{name}: {argument} must be real, got {aval.str_short()}")
    if not isinstance(x, Array):
        return np.array(x, dtype) if np.ndim(x) == 0 else from_numpy(np.array(x, dtype))
    return x if aval.dtype == dtype and not aval.weak_type else convert_element_type(x, dtype)


def result_shape(shape: Any, name: str, **operands: Any) -> tuple[int, ...]:
    """The shape of the result: `shape`, which the operands must broadcast to; the operands' own if it is None."""
    shapes = {argument: aval_of(x).shape for argument, x in operands.items()}
    try:
        together = broadcast_shapes(*shapes.values())
    except ValueError:
        together = None
    if together is not None and shape is None:
        return together
    chosen: Any = None if shape is None else as_shape(shape, name)
    if together is None or not is_broadcastable(together, chosen):
        given = ", ".join(f"{argument} of shape {each}" for argument, each in shapes.items())
        target = "each other" if chosen is None else f"shape={chosen}"
        raise located(ValueError, f"{name}: {given} cannot be broadcast to {target}")
    return chosen


def is_broadcastable(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether `shape` can be broadcast to `target`."""
    offset = len(target) - len(shape)
    return offset >= 0 and all(n in (1, target[offset + axis]) for axis, n in enumerate(shape))


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` repeated over `shape` by NumPy's rules; a scalar stays one, which operations repeat themselves."""
    ndim = aval_of(x).ndim
    return broadcast_in_dim(x, shape, range(len(shape) - ndim, len(shape))) if ndim else x


def placed(x: Array, out_sharding: Any) -> Array:
    """A result laid out as the user asked."""
    return put_at(x, out_sharding)
