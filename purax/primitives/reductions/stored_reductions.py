"""Reductions of arrays that lie in memory, by native kernels (`native/reduce.cc`).

XLA makes a reduction and what computes its operand one loop, which saves a pass over memory; but the loop runs
on one thread, slowly along axes that are not the last, and loses NaN among many numbers whose extremum is wanted. A
kernel is for operands that exist anyway: arguments of the program, and results of operations that are never fused; and
for extrema of many floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from purax.core.avals import ShapedArray
from purax.xla import native
from purax.xla.stablehlo import Builder, Value

DTYPES = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "uint32", "uint64")))
KINDS = {"add": 0, "maximum": 1, "minimum": 2}
LARGE = 1 << 15  # elements, from which on a kernel is worth its call
MANY_FOR_ENGINE = 4096  # numbers whose extremum XLA leaves to a library
LONG, WIDE = 256, 32  # elements of a line that is reduced; columns beside each other that are
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def loses_nan(builder: Builder, x: Value) -> bool:
    """Whether XLA's own maximum and minimum of `x` may ignore NaN: it hands many numbers to a library."""
    return (
        builder.platform == "cpu"
        and x.aval.size >= MANY_FOR_ENGINE
        and x.dtype.name in ("float32", "float64")
    )


def _is_served(builder: Builder, x: Value) -> bool:
    return x.is_stored and native.serves(builder) and x.aval.size >= LARGE and x.dtype in DTYPES


def reduce_stored(builder: Builder, x: Value, combine: str, axes: Sequence[int]) -> Value | None:
    """The elements of `x` along `axes` combined by `combine`; None where XLA's own reduction is as good."""
    if not axes or combine not in KINDS:
        return None
    if x.turned is not None:  # what it is the transpose of is read as it lies
        source, order = x.turned
        kept_axes = [order[axis] for axis in range(x.ndim) if axis not in axes]
        if kept_axes == sorted(kept_axes):
            return reduce_stored(builder, source, combine, sorted(order[axis] for axis in axes))
    # XLA keeps the operand in memory as well where its library takes the extremum of it.
    if not _is_served(builder, x) and not (
        combine != "add" and loses_nan(builder, x) and native.serves(builder)
    ):
        return None
    first, last = min(axes), max(axes)
    if last - first + 1 != len(axes):
        return None
    outer, inner = math.prod(x.shape[:first]), math.prod(x.shape[last + 1 :])
    size = math.prod(x.shape[first : last + 1])
    if size < (LONG if inner == 1 else 8) or 1 < inner < WIDE:
        return None
    kept = x.aval.with_shape(x.shape[:first] + x.shape[last + 1 :])
    return native.call(
        builder, "reduce", (x,), (kept,), kind=KINDS[combine], outer=outer, size=size, inner=inner
    )[0]


def find_stored(
    builder: Builder, x: Value, axis: int, is_largest: bool, index_dtype: np.dtype
) -> Value | None:
    """The index of the first largest or smallest element of each line of `x`; None where there is no kernel for it."""
    size = x.shape[axis]
    if axis != x.ndim - 1 or size < LONG or not _is_served(builder, x):
        return None
    wide = index_dtype if index_dtype in (_INT32, _INT64) else _INT32 if size < 1 << 31 else _INT64
    found = ShapedArray(x.shape[:-1], wide)
    lines = math.prod(x.shape[:-1])
    (index,) = native.call(
        builder, "find_extremum", (x,), (found,), largest=is_largest, lines=lines, size=size
    )
    return builder.convert(index, index_dtype)


def dot_of_vectors(builder: Builder, x: Value, y: Value) -> Value | None:
    """The product of two long vectors of one dtype; None where XLA's own product is as good."""
    if x.ndim != 1 or y.ndim != 1 or x.dtype != y.dtype or x.dtype.name not in ("float32", "float64"):
        return None
    if not native.serves(builder) or x.aval.size < LARGE:
        return None
    return native.call(builder, "vector_dot", (x, y), (ShapedArray((), x.dtype),))[0]
