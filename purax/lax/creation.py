"""Arrays made of nothing but a shape: filled with a value, or counting; and the dtype of a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import aval_of_argument, to_array
from purax.lax.operands import array, refuse_complex, sizes_of
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.broadcasting import broadcast_in_dim_p, zeros
from purax.primitives.shape.reshaping import iota_p
from purax.sharding.constraints import beside, put_at
from purax.typing import ArrayLike


def full(shape: Any, fill_value: ArrayLike, dtype: Any = None, *, sharding: Any = None) -> Array:
    """An array filled with a scalar.

    Args:
        shape: an integer or integers.
        fill_value: a scalar.
        dtype: of the result; that of the value if it is None.
        sharding: where the result is put, as in `purax.device_put`.

    >>> from purax import lax
    >>> lax.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32, weak_type=True)
    """
    value = array("full", fill_value, 1)
    if value.aval.shape:
        raise located(
            TypeError, f"lax.full needs a scalar fill_value, got {value.aval.str_short()}; see jnp.full"
        )
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype)
        refuse_complex(fill_value, wanted)
        value = convert_element_type(value, wanted)
    return _filled(shape, value, sharding)


def full_like(
    x: Any, fill_value: ArrayLike, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Array:
    """An array of the shape and dtype of another, filled with a scalar.

    Args:
        x: an array, or anything with a shape and a dtype.
        fill_value: a scalar.
        dtype, shape: of the result, where they should differ from those of `x`.
        sharding: where the result is put, as in `purax.device_put`.

    >>> from purax import lax, numpy as jnp
    >>> lax.full_like(jnp.arange(3.0), 7)
    Array([7., 7., 7.], dtype=float32)
    """
    like = _type_of(x)
    value = array("full_like", fill_value, 1)
    if value.aval.shape:
        raise located(TypeError, f"lax.full_like needs a scalar fill_value, got {value.aval.str_short()}")
    wanted = like.dtype if dtype is None else dtypes.as_dtype(dtype)
    refuse_complex(fill_value, wanted)
    value = convert_element_type(value, wanted, like.weak_type and dtype is None)
    result = _filled(like.shape if shape is None else shape, value, sharding)
    return result if sharding is not None else beside(x, result)


def _filled(shape: Any, value: Any, sharding: Any) -> Array:
    result = broadcast_in_dim_p.bind(value, shape=sizes_of(shape), broadcast_dimensions=())
    return put_at(result, sharding)


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array whose elements do not matter; they are zeros.

    >>> from purax import lax
    >>> lax.empty(3, int).shape
    (3,)
    """
    return put_at(zeros(ShapedArray(sizes_of(shape), dtypes.as_dtype(dtype))), out_sharding)


def iota(dtype: Any, size: int) -> Array:
    """0, 1, …, size − 1.

    >>> from purax import lax
    >>> lax.iota(float, 4)
    Array([0., 1., 2., 3.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Array:
    """0, 1, 2, … along one axis, the same along all others.

    Args:
        dtype: of the result.
        shape: of the result.
        dimension: the axis to count along.

    >>> from purax import lax
    >>> lax.broadcasted_iota(int, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    sizes = sizes_of(shape)
    if any(n < 0 for n in sizes):
        raise located(TypeError, f"lax.iota: sizes must not be negative, got {sizes}")
    count = iota_p.bind(dtype=dtypes.as_dtype(dtype), shape=sizes, dimension=int(dimension))
    return put_at(count, out_sharding)


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an array of integers.

    >>> from purax import lax
    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return to_array(np.array(sizes_of(shape), np.int32))


def dtype(x: Any) -> Any:
    """The dtype of an array, or the one that a number or NumPy array has as an array; a dtype is its own.

    >>> from purax import lax
    >>> lax.dtype(1.0)
    dtype('float32')
    """
    if isinstance(x, type | str | np.dtype | dtypes.ExtendedDtype):
        return dtypes.as_dtype(x)
    return _type_of(x).dtype


def _type_of(x: Any) -> ShapedArray:
    try:
        return aval_of_argument(x)
    except TypeError:
        if hasattr(x, "shape") and hasattr(x, "dtype"):
            return ShapedArray(
                tuple(x.shape), dtypes.as_exact_dtype(x.dtype), bool(getattr(x, "weak_type", False))
            )
        raise located(
            TypeError,
            f"{shown(x):.60} of type {type(x).__name__} is not an array or a number, and has no dtype",
        ) from None
