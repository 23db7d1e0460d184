"""Arrays as sets: unions, intersections, differences, membership.

The results are sorted vectors of distinct elements. How many there are depends on the values; while a function is being
compiled or vectorized, `size` says how many to return.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._indexing.nonzero import checked_size, indices_of_mask, refuse_unknown_size
from purax.numpy._programs import as_one_program, concrete_value
from purax.numpy._promotion import as_array, common_dtype
from purax.numpy._shape.joining import concatenate
from purax.numpy._sorting.searching import search
from purax.numpy._sorting.unique import sorted_rows, starts_of_runs, unique
from purax.primitives.elementwise.arithmetic import min_
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import and_, eq, gt, lt, ne, not_, select
from purax.primitives.reductions.reduction import reduce_or
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, reduce_sum
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.gather_scatter import take
from purax.primitives.shape.reshaping import iota, reshape
from purax.primitives.sorting import sort
from purax.typing import ArrayLike

_FEW = 16  # as many elements are found faster by comparing all of them than by bisection


def _pair(name: str, a: Any, b: Any, flat: bool = True) -> tuple[Array, Array]:
    """Two arguments as arrays of one dtype, flattened."""
    x, y = as_array(a, name, 0), as_array(b, name, 1)
    dtype, weak = common_dtype((x, y))
    x, y = convert_element_type(x, dtype, weak), convert_element_type(y, dtype, weak)
    return (reshape(x, (x.size,)) if flat else x), reshape(y, (y.size,))


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Which elements of an array occur in another one.

    Args:
        element: the elements to look for.
        test_elements: the array to look in.
        assume_unique: not used.
        invert: whether to say which do not occur instead.
        method: "auto", "compare_all", "binary_search" or "sort": how to search in a compiled program.

    Returns:
        Truth values in the shape of `element`. NaN does not occur anywhere.

    >>> import purax.numpy as jnp
    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    methods = ("auto", "compare_all", "binary_search", "sort")
    if method not in methods:
        raise located(
            ValueError, f"isin: method must be one of {', '.join(map(repr, methods))}, got {shown(method)}"
        )
    x, y = _pair("isin", element, test_elements, flat=False)
    found = _isin(x, y, method=method)
    return not_(found) if invert else found


def _isin_on_host(x, y, *, method):
    if dtypes.is_floating(x.dtype) and x.dtype.itemsize < 4:
        x, y = x.astype(np.float32), y.astype(np.float32)
    return np.isin(x, y)


@as_one_program(_isin_on_host)
def _isin(x, y, *, method):
    if not x.size or not y.size:
        return full(x.shape, False, np.bool_)
    if method == "compare_all" or (method == "auto" and y.size.__class__ is int and y.size <= _FEW):
        shape = (*x.shape, y.size)
        same = eq(broadcast_in_dim(x, shape, range(x.ndim)), broadcast_in_dim(y, shape, (x.ndim,)))
        return reduce_or(same, (x.ndim,))
    (ordered,) = sort((y,), 0)
    place = search(ordered, x, side="left", method="sort" if method == "sort" else "scan")
    return eq(take(ordered, min_(place, number_as(y.size - 1, place.dtype)), 0), x)


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The distinct elements that occur in either of two arrays.

    Args:
        ar1, ar2: the arrays, flattened.
        size: how many to return; needed under `jit`. Surplus ones are left out, missing ones filled in.
        fill_value: what is filled in, the smallest element if not given.

    Returns:
        A sorted vector.

    >>> import purax.numpy as jnp
    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    x, y = _pair("union1d", ar1, ar2)
    if size is None:
        _check_known("union1d", x, y)
    return unique(concatenate([x, y]), size=size, fill_value=fill_value)


def _check_known(name: str, x: Array, y: Array) -> None:
    for one in (x, y):
        if concrete_value(one) is None:
            refuse_unknown_size(name, one, f"jnp.{name}(x, y, size=n)")


def _size(name: str, size: int | None, x: Array, y: Array, count: Any) -> int:
    """The number of results: the one that is asked for, or that of known arrays."""
    if size is not None:
        return checked_size(name, size)
    _check_known(name, x, y)
    known = []
    for one in (x, y):
        value = concrete_value(one)
        is_narrow = dtypes.is_floating(value.dtype) and value.dtype.itemsize < 4
        known.append(value.astype(np.float32) if is_narrow else value)
    return len(count(*known))


def _promoted_fill(name: str, fill_value: Any, x: Array) -> list[Array]:
    """The fill value, with the dtype of an array that holds it beside the elements of `x`."""
    if fill_value is None:
        return []
    fill = as_array(fill_value, name)
    return [reshape(convert_element_type(fill, *common_dtype((x, fill))), ())]


def _fill(name: str, fill_value: Any, x: Array) -> list[Array]:
    """The fill value with the dtype of `x`."""
    fill = as_array(fill_value, name)
    if dtypes.is_complex(fill.dtype) and not dtypes.is_complex(x.dtype):
        raise located(
            TypeError,
            f"{name}: the complex fill_value {fill_value} cannot become {dtypes.dtype_name(x.dtype)}",
        )
    return [reshape(convert_element_type(fill, x.dtype, x.weak_type), ())]


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The distinct elements that occur in both of two arrays.

    Args:
        ar1, ar2: the arrays, flattened.
        assume_unique: not used.
        return_indices: whether to return where each one occurs first in `ar1` and in `ar2`.
        size: how many to return; needed under `jit`. Surplus ones are left out, missing ones filled in.
        fill_value: what is filled in, the smallest of the elements if not given; elements are promoted with it. Missing
            indices are the sizes of `ar1` and `ar2`.

    Returns:
        A sorted vector, or a tuple of that and two vectors of indices.

    >>> import purax.numpy as jnp
    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3]))
    Array([2, 3], dtype=int32)
    """
    x, y = _pair("intersect1d", ar1, ar2)
    count = _size("intersect1d", size, x, y, np.intersect1d)
    results = _intersection(x, y, *_promoted_fill("intersect1d", fill_value, x), size=count)
    return results if return_indices else results[0]


@as_one_program()
def _intersection(x, y, *fill, size):
    index = dtypes.default_int()
    if not x.size or not y.size:
        values = broadcast_in_dim(fill[0], (size,), ()) if fill else full((size,), 0, x.dtype)
        return values, full((size,), x.size, index), full((size,), y.size, index)
    ordered, order = sorted_rows(x)
    others, other_order = sorted_rows(y)
    chosen = and_(starts_of_runs(ordered, True), _isin(ordered, y, method="auto"))
    total, places = _chosen_places(chosen, size)
    is_real = lt(iota(index, (size,)), total)
    values = take(x, take(order, places, 0), 0)
    second = search(others, values, side="left", method="scan")
    second = min_(second, np.array(y.size - 1, second.dtype))
    first_index = select(is_real, take(order, places, 0), np.array(x.size, index))
    second_index = select(is_real, take(other_order, second, 0), np.array(y.size, index))
    return _filled(values, is_real, total, fill), first_index, second_index


def _chosen_places(chosen, size):
    """How many are chosen, and the places of the first `size`; beyond the last one, the place of the first."""
    index = dtypes.default_int()
    total = reduce_sum(convert_element_type(chosen, index), (0,))
    (first,) = indices_of_mask(chosen, full((), 0, index), size=1)
    (places,) = indices_of_mask(chosen, reshape(first, ()), size=size)
    return total, places


def _filled(values, is_real, total, fill):
    """`values` where they are real; else the fill value, the smallest value, or 0 if there is none at all."""
    if fill:
        return select(is_real, convert_element_type(values, fill[0].dtype, fill[0].weak_type), fill[0])
    is_any = broadcast_in_dim(gt(total, 0), values.shape, ())
    nothing = convert_element_type(full(values.shape, 0, values.dtype), values.dtype, values.weak_type)
    return select(is_any, values, nothing)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of an array that do not occur in another one.

    Args:
        ar1, ar2: the arrays, flattened.
        assume_unique: whether the elements of `ar1` are distinct; then they keep their order.
        size: how many to return; needed under `jit`. Surplus ones are left out, missing ones filled in.
        fill_value: what is filled in, 0 if not given.

    Returns:
        A sorted vector of the dtype of `ar1`.

    >>> import purax.numpy as jnp
    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int32)
    """
    x, y = _pair("setdiff1d", ar1, ar2)
    count = _size("setdiff1d", size, x, y, lambda a, b: np.setdiff1d(a, b, assume_unique))
    own = as_array(ar1, "setdiff1d")
    own = reshape(own, (own.size,))
    fill = _fill("setdiff1d", 0 if fill_value is None else fill_value, own)
    return _difference(x, y, own, *fill, size=count, assume_unique=bool(assume_unique))


@as_one_program()
def _difference(x, y, own, fill, *, size, assume_unique):
    """The elements of `own`, which are those of x in their own dtype, that are not in y."""
    if not x.size:
        return broadcast_in_dim(fill, (size,), ())
    index = dtypes.default_int()
    order = None
    if assume_unique:
        chosen = not_(_isin(x, y, method="auto"))
    else:
        ordered, order = sorted_rows(x)
        chosen = and_(starts_of_runs(ordered, True), not_(_isin(ordered, y, method="auto")))
    total, places = _chosen_places(chosen, size)
    values = take(own, places if order is None else take(order, places, 0), 0)
    return select(lt(iota(index, (size,)), total), values, fill)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements that occur in one of two arrays but not in both.

    Args:
        ar1, ar2: the arrays, flattened.
        assume_unique: not used.
        size: how many to return; needed under `jit`. Surplus ones are left out, missing ones filled in.
        fill_value: what is filled in, the smallest of the elements if not given; elements are promoted with it.

    Returns:
        A sorted vector.

    >>> import purax.numpy as jnp
    >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([2, 3]))
    Array([1, 2], dtype=int32)
    """
    x, y = _pair("setxor1d", ar1, ar2)
    count = _size("setxor1d", size, x, y, lambda a, b: np.unique(np.setxor1d(a, b)))
    return _symmetric_difference(x, y, *_promoted_fill("setxor1d", fill_value, x), size=count)


@as_one_program()
def _symmetric_difference(x, y, *fill, size):
    both = concatenate([x, y])
    if not both.size:
        return broadcast_in_dim(fill[0], (size,), ()) if fill else full((size,), 0, x.dtype)
    index = dtypes.default_int()
    ordered, order = sorted_rows(both)
    in_one = ne(_isin(ordered, x, method="auto"), _isin(ordered, y, method="auto"))
    if dtypes.is_inexact(both.dtype):
        in_one = select(ne(ordered, ordered), full(in_one.shape, True, np.bool_), in_one)
    chosen = and_(starts_of_runs(ordered, True), in_one)
    total, places = _chosen_places(chosen, size)
    values = take(both, take(order, places, 0), 0)
    return _filled(values, lt(iota(index, (size,)), total), total, fill)
