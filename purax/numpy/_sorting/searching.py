"""Where values belong in a sorted vector: `searchsorted`, `digitize`; and how often integers occur: `bincount`."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax import errors
from purax.control_flow.while_loop import fori_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size, exceeds
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import shown
from purax.numpy._elementwise.comparison import less, less_equal
from purax.numpy._indexing.selection import where
from purax.numpy._programs import as_one_program, concrete_value, strong_array
from purax.numpy._promotion import BOOL, as_array, common_dtype
from purax.numpy._reductions.nan_reductions import is_nan
from purax.primitives.elementwise.arithmetic import max_, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import and_, gt, not_, or_, select, shift_right_logical
from purax.primitives.reductions.cumulative import cumsum
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, reduce_sum
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.gather_scatter import ScatterDimensionNumbers, scatter_add, take
from purax.primitives.shape.reshaping import concatenate, expand_dims, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.sorting import argsort
from purax.sharding.constraints import freely
from purax.typing import ArrayLike

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")
_MOST_STEPS = 32  # of a search in a vector of unknown length


def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """Where values are to be inserted in a sorted vector, so that it stays sorted.

    Args:
        a: a sorted vector.
        v: the values.
        side: "left" for the first such position, "right" for the last.
        sorter: the indices that sort `a`, if it is not sorted.
        method: how to search in a compiled program: "scan" bisects in a loop, "scan_unrolled" without a loop, "sort"
            sorts the vector and the values together, "compare_all" compares all with all. They have equal results.

    Returns:
        Positions between 0 and the length of `a`, in the shape of `v`. NaN counts as larger than all numbers.

    >>> import purax.numpy as jnp
    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 4]))
    Array([0, 1, 2], dtype=int32)
    """
    if side not in ("left", "right"):
        raise located(ValueError, f"searchsorted: side must be 'left' or 'right', got {shown(side)}")
    if method not in _METHODS:
        raise located(
            ValueError,
            f"searchsorted: method must be one of {', '.join(map(repr, _METHODS))}, got {shown(method)}",
        )
    vector, queries = strong_array(a, "searchsorted", 0), strong_array(v, "searchsorted", 1)
    if vector.ndim != 1:
        raise located(ValueError, f"searchsorted: a should be 1-dimensional, got shape {vector.shape}")
    if sorter is not None:
        order = as_array(sorter, "searchsorted", 3)
        if not dtypes.is_integer(order.dtype) or order.shape != vector.shape:
            raise located(
                ValueError,
                f"searchsorted: sorter must be integers of the shape {vector.shape} of a, got "
                f"{order.aval.str_short()}",
            )
        vector = take(vector, order, 0)
    dtype, _ = common_dtype((vector, queries))
    vector, queries = convert_element_type(vector, dtype), convert_element_type(queries, dtype)
    return search(vector, queries, side=side, method=method)


def place_dtype(size: int) -> np.dtype:
    """The dtype of places in a vector: the default integers, as the array API standard asks, if they are enough."""
    return np.dtype(np.int64) if exceeds(size, np.iinfo(np.int32).max) else dtypes.default_int()


def _search_on_host(vector, queries, *, side, method):
    if dtypes.is_floating(vector.dtype) and vector.dtype.itemsize < 4:
        vector, queries = vector.astype(np.float32), queries.astype(np.float32)
    return np.searchsorted(vector, queries, side).astype(place_dtype(vector.shape[0]))


@as_one_program(_search_on_host)
def search(vector, queries, *, side, method):
    """`searchsorted` for a vector and queries of one dtype."""
    size = vector.shape[0]
    index = place_dtype(size)
    if not size or not queries.size:
        return full(queries.shape, 0, index)
    if method == "compare_all":
        return _search_all(vector, queries, side, index)
    if method == "sort":
        return _search_by_sorting(vector, queries, side, index)

    # Invariant: everything before `low` goes before the query, nothing from `high` on does.
    def step(_, bounds):
        low, high = bounds
        middle = add(low, shift_right_logical(sub(high, low), np.array(1, index)))
        before = goes_before(take(vector, middle, 0), queries, side)
        is_open = gt(high, low)
        low_next = select(and_(before, is_open), add(middle, np.array(1, index)), low)
        return low_next, select(and_(not_(before), is_open), middle, high)

    bounds = (full(queries.shape, 0, index), broadcast_in_dim(number_as(size, index), queries.shape, ()))
    steps = size.bit_length() if size.__class__ is int else _MOST_STEPS
    if method == "scan_unrolled":
        for i in range(steps):
            bounds = step(i, bounds)
        return bounds[0]
    return fori_loop(0, steps, step, bounds)[0]


def goes_before(element: Any, query: Any, side: str) -> Any:
    """Whether an element stays before a query that is inserted on that side."""
    compared = (less if side == "left" else less_equal)(element, query)
    if not dtypes.is_inexact(element.dtype):
        return compared
    if side == "left":
        return or_(compared, and_(is_nan(query), not_(is_nan(element))))
    return or_(compared, is_nan(query))


def _search_all(vector, queries, side, index):
    shape = (*queries.shape, vector.shape[0])
    element = broadcast_in_dim(vector, shape, (queries.ndim,))
    query = broadcast_in_dim(queries, shape, range(queries.ndim))
    return reduce_sum(convert_element_type(goes_before(element, query, side), index), (queries.ndim,))


def _search_by_sorting(vector, queries, side, index):
    count = queries.size
    flat = reshape(queries, (count,))
    is_left = side == "left"  # then a query is put before the elements that are equal to it
    first = 0 if is_left else vector.shape[0]
    order = argsort(concatenate([flat, vector] if is_left else [vector, flat], 0), 0, index)
    is_query = _is_less(order, count, index) if is_left else not_(_is_less(order, vector.shape[0], index))
    elements = cumsum(convert_element_type(not_(is_query), index), 0)
    places = slice_axis(argsort(order, 0, index), first, first + count, 0)
    return reshape(take(elements, places, 0), queries.shape)


def _is_less(x, limit, index):
    return gt(np.array(limit, index), x)


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """Which of the intervals between bin edges values lie in.

    Args:
        x: the values.
        bins: the edges, increasing or decreasing.
        right: whether an edge belongs to the interval on its left.
        method: as that of `searchsorted`.

    Returns:
        i where `bins[i-1] <= x < bins[i]`; 0 and `len(bins)` beyond the ends: int32, if that is enough.

    >>> import purax.numpy as jnp
    >>> jnp.digitize(jnp.array([0.5, 1.0, 3.5]), jnp.array([1.0, 2.0, 3.0]))
    Array([0, 1, 3], dtype=int32)
    """
    values, edges = strong_array(x, "digitize", 0), strong_array(bins, "digitize", 1)
    if edges.ndim != 1:
        raise located(ValueError, f"digitize: bins must be a 1-dimensional array; got shape {edges.shape}")
    side = "left" if right else "right"
    method = "scan" if method is None else method
    size = edges.shape[0]
    if not size:
        return full(values.shape, 0, np.dtype(np.int32))
    dtype = np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)
    increasing = convert_element_type(searchsorted(edges, values, side, method=method), dtype)
    known = concrete_value(edges)
    if known is not None:
        if bool(known[-1] >= known[0]):
            return increasing
    backwards = convert_element_type(searchsorted(edges[::-1], values, side, method=method), dtype)
    decreasing = sub(number_as(size, dtype), backwards)
    if known is not None:
        return decreasing
    return where(less_equal(edges[0], edges[-1]), increasing, decreasing)


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """How often each integer occurs in a vector.

    Args:
        x: integers that are not negative.
        weights: what each element counts, 1 if not given.
        minlength: the least length of the result.
        length: the length of the result, whatever `minlength` is; larger integers are not counted. It is needed under
            `jit`.
        out_sharding: how the result is sharded over devices.

    Returns:
        A vector whose element i is the number, or the weight, of the elements that are i.

    >>> import purax.numpy as jnp
    >>> jnp.bincount(jnp.array([1, 0, 1, 3]))
    Array([1, 2, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return freely(lambda x, w: bincount(x, w, minlength, length=length), out_sharding, x, weights)
    values = as_array(x, "bincount")
    if values.dtype != BOOL and not dtypes.is_integer(values.dtype):
        raise located(
            TypeError, f"bincount: x must have an integer type; got {dtypes.dtype_name(values.dtype)}"
        )
    if values.ndim != 1:
        raise located(
            ValueError, f"bincount: only 1-dimensional input is supported, got shape {values.shape}"
        )
    minlength = as_size(minlength)
    if values.dtype == BOOL or dtypes.itemsize_bits(values.dtype) < 32:
        values = convert_element_type(values, np.int32)
    known = concrete_value(values)
    if known is not None and known.size and known.min() < 0:
        raise located(
            ValueError, f"bincount: x must not be negative, got {known.min()}. Shift it: x - x.min()"
        )
    if length is None:
        if known is None:
            assert isinstance(values, Tracer)
            values.refuse(
                errors.ConcretizationTypeError,
                "bincount without `length`",
                "The length of its result would depend on the values: write jnp.bincount(x, length=n).",
            )
        length = max(int(known.max()) + 1 if known.size else 0, minlength)
    else:
        length = as_size(length)
    if weights is None:
        counted = None
    else:
        counted = strong_array(weights, "bincount", 1)
        if counted.dtype == BOOL:
            counted = convert_element_type(counted, dtypes.default_int())
        if counted.shape != values.shape:
            raise located(
                ValueError, f"bincount: shape of weights {counted.shape} must match shape of x {values.shape}"
            )
    return _bincount(values, *([] if counted is None else [counted]), length=length)


def _bincount_on_host(values, *weights, length):
    inside = (values >= 0) & (values < length)
    if not weights:
        return np.bincount(values[inside], minlength=length).astype(dtypes.default_int())
    (weight,) = weights
    result = np.zeros(length, weight.dtype)
    np.add.at(result, values[inside], weight[inside])
    return result


@as_one_program(_bincount_on_host)
def _bincount(values, *weights, length):
    index = dtypes.default_int()
    weight = weights[0] if weights else full(values.shape, 1, index)
    start = full((length,), 0, weight.dtype)
    if not length:
        return start
    places = expand_dims(max_(values, np.array(0, values.dtype)), (1,))
    return scatter_add(start, places, weight, ScatterDimensionNumbers((), (0,), (0,)))
