"""Running sums and products along an axis.

`cumsum` and `cumprod` keep narrow integers as they are, as in JAX; `cumulative_sum`, of the array API standard, sums
them in the default integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._programs import strong_array
from purax.numpy._promotion import BOOL, convert, refuse_out
from purax.numpy._reductions.nan_reductions import without_nan
from purax.numpy._reductions.reductions import requested_dtype, summed_dtype
from purax.numpy._shape.axes import canonical_axis
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.reductions.cumulative import cumprod_p, cumsum_p
from purax.primitives.shape.broadcasting import full
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.typing import ArrayLike, DTypeLike


def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running sums of elements along an axis.

    Args:
        a: the array.
        axis: the axis; None to flatten the array first.
        dtype: of the result; the elements are converted first.
        out: not supported.

    Returns:
        An array of the same shape, element i of which is the sum up to and with element i.

    >>> import purax.numpy as jnp
    >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([[1, 2],
           [4, 6]], dtype=int32)
    """
    return _running("cumsum", cumsum_p, a, axis, dtype, out)


def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """The running products of elements along an axis.

    Args:
        a: the array.
        axis: the axis; None to flatten the array first.
        dtype: of the result; the elements are converted first.
        out: not supported.

    Returns:
        An array of the same shape, element i of which is the product up to and with element i.

    >>> import purax.numpy as jnp
    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _running("cumprod", cumprod_p, a, axis, dtype, out)


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The running sums of elements along an axis; NaN counts as 0. Arguments as those of `cumsum`.

    >>> import purax.numpy as jnp
    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    return _running("nancumsum", cumsum_p, without_nan(strong_array(a, "nancumsum"), 0), axis, dtype, out)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The running products of elements along an axis; NaN counts as 1. Arguments as those of `cumprod`.

    >>> import purax.numpy as jnp
    >>> jnp.nancumprod(jnp.array([3.0, jnp.nan, 2.0]))
    Array([3., 3., 6.], dtype=float32)
    """
    return _running("nancumprod", cumprod_p, without_nan(strong_array(a, "nancumprod"), 1), axis, dtype, out)


def _running(name: str, primitive: Any, a: Any, axis: Any, dtype: Any, out: Any) -> Array:
    refuse_out(name, out)
    x = strong_array(a, name)
    if axis is None or not x.ndim:
        if axis is not None:
            canonical_axis(name, axis, 1)  # a scalar counts as a vector, as in NumPy
        x, axis = reshape(x, (x.size,)), 0
    else:
        axis = canonical_axis(name, axis, x.ndim)
    own = x.dtype
    if dtype is None:
        result = dtypes.default_int() if own == BOOL else own
    else:
        result = requested_dtype(name, dtype)
    x = convert(x, result)  # to booleans first: a sum of them is True where one of them is
    if result == BOOL:
        x = convert(x, dtypes.default_int())
    return convert_element_type(primitive.bind(x, axis=axis, reverse=False), result)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """The running sums of elements along an axis.

    Args:
        x: an array with at least one axis.
        axis: the axis; may be left out for a vector.
        dtype: of the result; the elements are converted first. Narrow integers are summed in the default integers.
        include_initial: whether to put the empty sum, 0, in front.

    Returns:
        An array of the same shape, or one longer along the axis.

    >>> import purax.numpy as jnp
    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    array, position = _vector_axis("cumulative_sum", x, axis)
    if dtype is None:
        dtype = summed_dtype(array.dtype)
    sums = _running("cumulative_sum", cumsum_p, array, position, dtype, None)
    return _with_initial(sums, position, 0, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """The running products of elements along an axis.

    Args:
        x: an array with at least one axis.
        axis: the axis; may be left out for a vector.
        dtype: of the result; the elements are converted first. Narrow integers are multiplied in the default integers.
        include_initial: whether to put the empty product, 1, in front.

    Returns:
        An array of the same shape, or one longer along the axis.

    >>> import purax.numpy as jnp
    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    array, position = _vector_axis("cumulative_prod", x, axis)
    if dtype is None:
        dtype = summed_dtype(array.dtype)
    products = _running("cumulative_prod", cumprod_p, array, position, dtype, None)
    return _with_initial(products, position, 1, include_initial)


def _vector_axis(name: str, x: Any, axis: int | None) -> tuple[Array, int]:
    x = strong_array(x, name)
    if not x.ndim:
        raise located(
            ValueError,
            f"{name}: the input must be non-scalar to take a cumulative sum or product, got a scalar",
        )
    if axis is None:
        if x.ndim > 1:
            raise located(
                ValueError,
                f"{name}: the input array has rank {x.ndim}, shape {x.shape}, and axis was not set. It may be left "
                "out for one-dimensional arrays only.",
            )
        axis = 0
    return x, canonical_axis(name, axis, x.ndim)


def _with_initial(x: Array, axis: int, value: int, include_initial: bool) -> Array:
    if not include_initial:
        return x
    shape = tuple([1 if i == axis else n for i, n in enumerate(x.shape)])
    return concatenate([full(shape, np.array(value, x.dtype), x.dtype), x], axis)
