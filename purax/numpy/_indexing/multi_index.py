"""Positions in an array as one number, counted along all axes, and as one number per axis.

Needs integer arithmetic only, done in an integer dtype that holds the number of elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.limits import finite
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import ConcretizationTypeError, shown
from purax.numpy._creation.creation import asarray
from purax.numpy._elementwise.arithmetic import floor_divide, remainder
from purax.numpy._elementwise.extrema import maximum
from purax.numpy._elementwise.rounding import clip
from purax.numpy._indexing.selection import where
from purax.numpy._programs import concrete_value
from purax.numpy._promotion import as_array
from purax.numpy._shape.axes import items
from purax.numpy._shape.shaping import broadcast_arrays
from purax.typing import ArrayLike, DTypeLike


def unravel_index(indices: ArrayLike, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """Positions in a flattened array as positions along each axis of an array of `shape`.

    Unlike NumPy's, negative positions count from the end. Known positions out of bounds are an error; where they are
    not known, inside of `jit`, they are clipped.

    Args:
        indices: integers, the positions in the flattened array.
        shape: of the array; sizes may be traced.

    Returns:
        A tuple with one array of the shape of `indices` per axis, of its dtype if that holds all positions.

    Raises:
        ValueError: a position is out of bounds.

    >>> import purax.numpy as jnp
    >>> jnp.unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))
    """
    flat = _integers("unravel_index", "indices", asarray(indices))
    dtype, weak = flat.aval.dtype, flat.aval.weak_type
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(size, Tracer) for size in given):
        sizes: Any = [
            _integers("unravel_index", "shape", as_array(size, "unravel_index", 1)) for size in given
        ]
        total: Any = math.prod(sizes)
        work = flat
    else:
        sizes = _sizes("unravel_index", "shape", shape)
        total = math.prod(sizes)
        _refuse_out_of_bounds("unravel_index", "indices", flat, -total, total, f"an array of shape {sizes}")
        work = _in_wide_integers(flat, total)
        if max(sizes, default=1) - 1 > dtypes.iinfo(dtype).max:
            dtype = work.aval.dtype
    work = clip(where(work < 0, work + total, work), 0, maximum(total - 1, 0))
    parts = []
    for size in reversed(sizes):
        parts.append(remainder(work, maximum(size, 1)))
        work = floor_divide(work, maximum(size, 1))
    return tuple([part if weak else part.astype(dtype) for part in reversed(parts)])


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Positions along each axis of an array as positions in the flattened array.

    Args:
        multi_index: integer arrays, one per axis.
        dims: the sizes of the axes.
        mode: what happens to positions out of bounds: "raise" an error, which needs their values and so does not work
            inside of `jit`; "wrap" them around; "clip" them to the nearest; "ignore" them, with undefined results.
        order: "C" counts along the last axis first, "F" along the first.
        dtype: of the result; by default what the positions are promoted to, or a wider one if it holds not all of them.

    Returns:
        An integer array.

    Raises:
        ValueError: a position is out of bounds, or the number of arrays is not that of sizes.

    >>> import purax.numpy as jnp
    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3))
    Array([1, 5], dtype=int32)
    """
    name = "ravel_multi_index"
    sizes = _sizes(name, "dims", dims)
    multi_index = items(name, "multi_index", multi_index, "a sequence of integer arrays")
    if len(multi_index) != len(sizes):
        raise located(
            ValueError,
            f"{name}: multi_index has {len(multi_index)} arrays, dims={sizes} has {len(sizes)} sizes",
        )
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise located(
            ValueError, f"{name}: mode must be 'raise', 'wrap', 'clip' or 'ignore', got {shown(mode)}"
        )
    if order not in ("C", "F"):
        raise located(ValueError, f"{name}: order must be 'C' or 'F', got {shown(order)}")
    arrays = [_integers(name, f"multi_index[{i}]", as_array(x, name, i)) for i, x in enumerate(multi_index)]
    if arrays:
        arrays = [*broadcast_arrays(*arrays)]
    total = math.prod(sizes)
    result = (
        dtypes.as_dtype(dtype)
        if dtype is not None
        else dtypes.result_type(*arrays, *(() if arrays else (np.int32,)))
    )
    if total - 1 > dtypes.iinfo(result).max:
        if dtype is not None:
            raise located(
                ValueError,
                f"{name}: dtype {dtypes.dtype_name(result)} does not hold positions in {total} elements",
            )
        result = _wide_dtype(result, total)
    flat: Any = asarray(0, dtype=_wide_dtype(result, total))
    stride = 1
    axes = range(len(sizes))
    for axis in axes if order == "F" else reversed(axes):
        part, size = arrays[axis], sizes[axis]
        if mode == "raise":
            if isinstance(part, Tracer) and part.concrete_or_none() is None:
                raise located(
                    ConcretizationTypeError,
                    f"{name} with mode='raise' needs the values of multi_index[{axis}], which are not known "
                    "while the function is traced; use mode='wrap' or mode='clip'",
                )
            _refuse_out_of_bounds(name, f"multi_index[{axis}]", part, 0, size, f"an axis of size {size}")
        part = _in_wide_integers(part, total)
        if mode == "wrap":
            part = remainder(part, size)
        elif mode == "clip":
            part = clip(part, 0, size - 1)
        flat = flat + part * stride
        stride *= size
    return flat.astype(result)


def _sizes(name: str, argument: str, shape: Any) -> tuple[int, ...]:
    try:
        sizes = (
            tuple(map(as_size, finite(shape)))
            if hasattr(shape, "__iter__")
            else (as_size(shape),)
        )
    except TypeError:
        raise located(TypeError, f"{name}: {argument} must be integers, got {shown(shape)}") from None
    if any(size < 0 for size in sizes):
        raise located(ValueError, f"{name}: {argument}={sizes} has a negative size")
    return sizes


def _integers(name: str, argument: str, x: Array) -> Array:
    if dtypes.is_boolean(x.aval.dtype):
        return x.astype(int)
    if not dtypes.is_integer(x.aval.dtype):
        raise located(TypeError, f"{name}: {argument} must be integers, got {x.aval.str_short()}")
    return x


def _wide_dtype(dtype: Any, total: int) -> Any:
    """An integer dtype that holds positions in `total` elements, and those of `dtype`."""
    if dtypes.itemsize_bits(dtype) == 64 or total > np.iinfo(np.int32).max:
        return np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
    return np.dtype(np.uint32 if dtype == np.uint32 else np.int32)


def _in_wide_integers(x: Array, total: int) -> Array:
    wide = _wide_dtype(x.aval.dtype, total)
    return x if x.aval.dtype == wide else x.astype(wide)


def _refuse_out_of_bounds(name: str, argument: str, x: Array, low: int, high: int, what: str) -> None:
    value = concrete_value(x) if not isinstance(x, Tracer) or x.concrete_or_none() is not None else None
    if value is None or not value.size:
        return
    smallest, largest = int(value.min()), int(value.max())
    if low <= smallest and largest < high:
        return
    wrong = smallest if smallest < low else largest
    raise located(
        ValueError, f"{name}: {argument} has the position {wrong}, which is out of bounds for {what}"
    )
