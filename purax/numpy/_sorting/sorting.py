"""Sorting along an axis, and the order that sorts.

NaN comes last, -0 equals 0, complex numbers are ordered by real part, then by imaginary part. All sorts are stable.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import as_one_program
from purax.numpy._promotion import as_array
from purax.numpy._shape.axes import canonical_axis
from purax.primitives import sorting
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.reshaping import iota, reshape, rev, split
from purax.typing import ArrayLike, DTypeLike


def _array_and_axis(name: str, a: Any, axis: int | None) -> tuple[Array, int]:
    """The array to sort, flattened if there is no axis, and the axis."""
    x = as_array(a, name)
    if axis is None:
        return reshape(x, (x.size,)), 0
    return x, canonical_axis(name, axis, x.ndim)


def _refuse_kind_and_order(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise located(
            TypeError, f"'kind' argument to {name} is not supported. Use stable=True or stable=False."
        )
    if order is not None:
        raise located(
            TypeError, f"'order' argument to {name} is not supported: there are not arrays with named fields"
        )


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """The elements of an array in order, along an axis.

    Args:
        a: the array.
        axis: the axis to sort along; None to flatten the array first.
        kind, order: not supported.
        stable: whether equal elements keep their order; they always do.
        descending: whether the largest comes first.

    Returns:
        An array of the same shape.

    >>> import purax.numpy as jnp
    >>> jnp.sort(jnp.array([[3, 1, 2], [9, 8, 7]]))
    Array([[1, 2, 3],
           [7, 8, 9]], dtype=int32)
    """
    _refuse_kind_and_order("sort", kind, order)
    x, dimension = _array_and_axis("sort", a, axis)
    result = sorting.sort_p.bind(x, dimension=dimension, is_stable=bool(stable), num_keys=1)[0]
    return rev(result, (dimension,)) if descending else result


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The indices that put an array in order, along an axis.

    Args:
        a: the array.
        axis: the axis to sort along; None to flatten the array first.
        kind, order: not supported.
        stable: whether equal elements keep their order; they always do.
        descending: whether the largest comes first.
        dtype: of the indices, the default integers if it is not given.

    Returns:
        Indices `i` such that `jnp.take_along_axis(a, i, axis)` is sorted.

    >>> import purax.numpy as jnp
    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    _refuse_kind_and_order("argsort", kind, order)
    x, dimension = _array_and_axis("argsort", a, axis)
    index_dtype = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype, "argsort: dtype")
    return _argsort(x, dimension=dimension, descending=bool(descending), index_dtype=index_dtype)


def _argsort_on_host(x, *, dimension, descending, index_dtype):
    if dtypes.is_complex(x.dtype):
        reverse = np.flip(x, dimension) if descending else x
        order = np.lexsort((reverse.imag, reverse.real), dimension)
    else:
        if dtypes.is_floating(x.dtype) and x.dtype.itemsize < 4:
            x = x.astype(np.float32)
        order = np.argsort(np.flip(x, dimension) if descending else x, dimension, kind="stable")
    if descending:
        order = x.shape[dimension] - 1 - np.flip(order, dimension)
    return order.astype(index_dtype)


@as_one_program(_argsort_on_host)
def _argsort(x, *, dimension, descending, index_dtype):
    if not descending:
        return sorting.argsort(x, dimension, index_dtype)
    # Equal elements keep their order if the reversed array is sorted, and the result reversed again.
    places = rev(iota(index_dtype, x.shape, dimension), (dimension,))
    return rev(sorting.sort((rev(x, (dimension,)), places), dimension)[1], (dimension,))


def lexsort(keys: Array | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The indices that sort by several keys, the last of which counts most.

    Args:
        keys: a sequence of arrays of one shape, or an array whose rows are the keys.
        axis: the axis to sort along.

    Returns:
        The indices.

    >>> import purax.numpy as jnp
    >>> jnp.lexsort((jnp.array([2, 1, 3]), jnp.array([1, 1, 0])))
    Array([2, 1, 0], dtype=int32)
    """
    if isinstance(keys, (list, tuple)):
        arrays = [as_array(key, "lexsort", i) for i, key in enumerate(finite(keys))]
    else:
        table = as_array(keys, "lexsort")
        parts = split(table, (1,) * table.shape[0], 0) if table.ndim and table.shape[0] else []
        arrays = [reshape(part, table.shape[1:]) for part in parts]
    if not arrays:
        raise located(TypeError, "lexsort needs a sequence of keys with len > 0")
    if any(x.shape != arrays[0].shape for x in arrays):
        raise located(
            ValueError,
            f"lexsort: all keys need to be the same shape, got {', '.join(str(x.shape) for x in arrays)}",
        )
    if not arrays[0].ndim:
        return as_array(np.zeros((), dtypes.default_int()), "lexsort")
    dimension = canonical_axis("lexsort", axis, arrays[0].ndim)
    places = iota(dtypes.default_int(), arrays[0].shape, dimension)
    return sorting.sort((*arrays[::-1], places), dimension, num_keys=len(arrays))[-1]


def sort_complex(a: ArrayLike) -> Array:
    """The elements of an array as complex numbers, in order along the last axis.

    Args:
        a: an array.

    >>> import purax.numpy as jnp
    >>> jnp.sort_complex(jnp.array([2, 1]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x = sort(a)
    return convert_element_type(x, dtypes.to_complex_dtype(x.dtype))


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The elements of an array, the smaller ones first: element `kth` is the one that sorting would put there.

    Args:
        a: the array.
        kth: the position that divides smaller from larger elements.
        axis: the axis.

    Returns:
        An array of the same shape. Which order the parts have is not specified; in fact they are sorted.

    >>> import purax.numpy as jnp
    >>> jnp.partition(jnp.array([4, 1, 3, 2]), 1)[1]
    Array(2, dtype=int32)
    """
    x, dimension = _array_and_axis("partition", a, axis)
    _check_kth("partition", kth, x.shape[dimension])
    return sort(x, dimension)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that put the smaller elements of an array first; see `partition`.

    Args:
        a: an array.
        kth: the place whose element is in its place.
        axis: the axis.

    >>> import purax.numpy as jnp
    >>> jnp.argpartition(jnp.array([4, 1, 3, 2]), 1)[1]
    Array(3, dtype=int32)
    """
    x, dimension = _array_and_axis("argpartition", a, axis)
    _check_kth("argpartition", kth, x.shape[dimension])
    return convert_element_type(argsort(x, dimension), np.int32)


def _check_kth(name: str, kth: Any, size: int) -> None:
    try:
        place = operator.index(kth)
    except TypeError:
        raise located(TypeError, f"{name}: kth must be an integer, got {shown(kth)}") from None
    if not -size <= place < size:
        raise located(ValueError, f"{name}: kth={place} is out of bounds for an axis of size {size}")
