"""Which functions are ufuncs, with their identities and their faster reductions. Imported for its effect."""

from __future__ import annotations

import numpy as np

from purax.core import dtypes
from purax.numpy._creation.creation import astype
from purax.numpy._elementwise import arithmetic, comparison, extrema, transcendental
from purax.numpy._elementwise.ufunc_object import as_ufunc
from purax.numpy._promotion import as_array
from purax.numpy._reductions import cumulative, reductions
from purax.numpy._shape.axes import canonical_axes, canonical_axis, with_kept_axes
from purax.primitives.reductions.cumulative import cummax, cummin
from purax.primitives.reductions.reduction import reduce_and, reduce_or, reduce_xor


def _typed(reduction):
    """A reduction without `dtype` as one with it: the elements are converted first."""

    def reduce(a, *, axis, dtype, keepdims, initial, where):
        x = as_array(a, "reduce") if dtype is None else astype(a, dtype)
        return reduction(x, axis=axis, keepdims=keepdims, initial=initial, where=where)

    return reduce


def _logical(reduction, combine):
    def reduce(a, *, axis, dtype, keepdims, initial, where):
        result = reduction(a, axis=axis, keepdims=keepdims, where=where)
        result = result if initial is None else combine(result, initial)
        return result if dtype is None else astype(result, dtype)

    return reduce


def _bits(reduction, combine, identity):
    def reduce(a, *, axis, dtype, keepdims, initial, where):
        x = as_array(a, "reduce") if dtype is None else astype(a, dtype)
        axes = canonical_axes("reduce", axis, x.aval.ndim)
        if where is not None:
            from_none = (
                np.array(identity, dtypes.as_exact_dtype(x.aval.dtype))
                if identity >= 0
                else ~np.zeros((), x.aval.dtype)
            )
            x = reductions.select(reductions.check_where("reduce", where, x.aval.shape), x, from_none)
        result = reduction(x, axes)
        if keepdims:
            result = with_kept_axes(result, x.aval.shape, axes)
        return result if initial is None else combine(result, initial)

    return reduce


def _running(operation):
    def accumulate(x, *, axis, dtype):
        x = x if dtype is None else astype(x, dtype)
        return operation(x, canonical_axis("accumulate", axis, x.aval.ndim))

    return accumulate


def _sum(a, *, axis, dtype, keepdims, initial, where):
    return reductions.sum(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


def _product(a, *, axis, dtype, keepdims, initial, where):
    return reductions.prod(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


as_ufunc(
    arithmetic.add,
    identity=0,
    reduce=_sum,
    accumulate=lambda x, *, axis, dtype: cumulative.cumsum(x, axis, x.dtype if dtype is None else dtype),
    at=lambda x, indices, b: x.at[indices].add(b),
)
as_ufunc(
    arithmetic.multiply,
    identity=1,
    reduce=_product,
    accumulate=lambda x, *, axis, dtype: cumulative.cumprod(x, axis, x.dtype if dtype is None else dtype),
    at=lambda x, indices, b: x.at[indices].multiply(b),
)
as_ufunc(arithmetic.subtract, at=lambda x, indices, b: x.at[indices].add(-as_array(b, "subtract.at")))
as_ufunc(arithmetic.negative, nin=1)
as_ufunc(
    extrema.maximum,
    reduce=_typed(reductions.max),
    accumulate=_running(cummax),
    at=lambda x, indices, b: x.at[indices].max(b),
)
as_ufunc(
    extrema.minimum,
    reduce=_typed(reductions.min),
    accumulate=_running(cummin),
    at=lambda x, indices, b: x.at[indices].min(b),
)
as_ufunc(comparison.logical_and, identity=True, reduce=_logical(reductions.all, comparison.logical_and))
as_ufunc(comparison.logical_or, identity=False, reduce=_logical(reductions.any, comparison.logical_or))
as_ufunc(comparison.logical_xor, identity=False)
as_ufunc(comparison.bitwise_and, identity=-1, reduce=_bits(reduce_and, comparison.bitwise_and, -1))
as_ufunc(comparison.bitwise_or, identity=0, reduce=_bits(reduce_or, comparison.bitwise_or, 0))
as_ufunc(comparison.bitwise_xor, identity=0, reduce=_bits(reduce_xor, comparison.bitwise_xor, 0))
as_ufunc(transcendental.logaddexp, identity=-np.inf)
as_ufunc(transcendental.logaddexp2, identity=-np.inf)
