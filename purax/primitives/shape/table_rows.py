"""`gather` of whole rows of a table, the way of embeddings, and sums over segments, by native kernels.

XLA goes through the elements of gathered rows one by one, with an index for each; `native/rows.cc` moves rows.
It serves large work only, since a kernel cannot be fused with what comes before and after it. To scatter rows the
engine's loop is as fast as one of ours; sums of many numbers into few are shared by threads here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.dimensions import is_at_most
from purax.xla import native
from purax.xla.stablehlo import Builder, Value

SUMMED = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "uint32", "uint64")))
LARGE = 1 << 16  # bytes that are moved, from which on a kernel is worth its call
FEW = 8  # updates for each number, from which on they are summed by parts


class Rows(NamedTuple):
    """A table (outer, rows, width) and (outer, count) indices of rows."""

    outer: int
    rows: int
    count: int
    width: int


def rows_of(
    operand: ShapedArray, indices: ShapedArray, sizes: Sequence[int], dimension_numbers: tuple
) -> Rows | None:
    """The table that a gather or scatter with windows of `sizes` works on; None if its windows are not whole rows."""
    window_dims, collapsed, index_map, batching, indices_batching = dimension_numbers
    depth, ndim = len(batching), indices.ndim - 1
    rest = operand.shape[depth + 1 :]
    is_rows = (
        tuple(batching) == tuple(indices_batching) == tuple(range(depth))
        and tuple(collapsed) == tuple(index_map) == (depth,)
        and tuple(sizes[depth:]) == (1, *rest)
        and tuple(window_dims) == tuple(range(ndim, ndim + len(rest)))
    )
    if not is_rows:
        return None
    shape = operand.shape
    return Rows(math.prod(shape[:depth]), shape[depth], math.prod(indices.shape[depth:-1]), math.prod(rest))


def gather_rows(
    builder: Builder,
    operand: Value,
    indices: Value,
    result: ShapedArray,
    table: Rows | None,
    fill: np.ndarray | None,
) -> Value | None:
    """The rows at the indices, which are clipped, or give `fill` where they are out of bounds; None if not served."""
    dtype = operand.dtype
    if table is None or dtypes.itemsize_bits(dtype) < 8 or not native.serves(builder):
        return None
    if is_at_most(result.size * dtype.itemsize, LARGE - 1):
        return None
    filler = builder.constant(0 if fill is None else fill, ShapedArray((), dtype))
    (out,) = native.call(
        builder, "gather_rows", (operand, indices, filler), (result,), mode=int(fill is not None), **table._asdict()
    )  # fmt: skip
    return out


def sum_segments(
    builder: Builder,
    name: str,
    operand: Value,
    indices: Value,
    updates: Value,
    table: Rows | None,
    clips: bool,
) -> Value | None:
    """The numbers at the indices with updates added or subtracted, by the primitive `name`; None if not served."""
    dtype = operand.dtype
    if table is None or name not in ("scatter-add", "scatter-sub") or dtype not in SUMMED:
        return None
    if not native.serves(builder):
        return None
    is_sum = table.outer == table.width == 1 and table.count >= FEW * table.rows > 0
    if not is_sum or updates.aval.size * dtype.itemsize < LARGE:
        return None
    (out,) = native.call(
        builder, "sum_segments", (operand, indices, updates), (operand.aval,), aliases=((0, 0),),
        subtracts=name == "scatter-sub", clips=clips,
    )  # fmt: skip
    return out
