"""Products of matrices by a native kernel: which it is called for, and how axes become what it knows.

The kernel (`purax/native/products.cc`) knows two batch axes, rows, columns and the depth, with a stride of each operand
for each of its own. Axes that lie behind each other are merged to that, transposed operands are read as they lie, and a
product that needs more axes is left to XLA, as are those that it does as fast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from purax.core.avals import ShapedArray
from purax.xla import native
from purax.xla.stablehlo import Builder, Value


class Axis(NamedTuple):
    """Elements of a product that are counted together: how many, and how far apart they lie in each operand."""

    size: int
    lhs_stride: int
    rhs_stride: int


def native_product(
    builder: Builder, lhs: Value, rhs: Value, dimension_numbers: tuple, result: ShapedArray
) -> Value | None:
    """The product of two arrays of one dtype by the native kernel; None if it is left to XLA."""
    if lhs.dtype != rhs.dtype or not native.serves(builder) or not _is_known(lhs.dtype, result.dtype):
        return None
    for parts in (True, False):  # a part whose axes cannot be merged is copied
        left, left_start, *left_axes = _as_it_lies(lhs, parts)
        right, right_start, *right_axes = _as_it_lies(rhs, parts)
        axes = merged_axes((left_axes, right_axes), dimension_numbers)
        if axes is not None:
            break
    if axes is None or not _is_faster(lhs.dtype, result.dtype, axes):
        return None
    outer, inner, rows, columns, depth = axes
    sizes = (
        *(axis.size for axis in axes),
        *(axis.lhs_stride for axis in (outer, inner, rows, depth)),
        *(axis.rhs_stride for axis in (outer, inner, columns, depth)),
        *(left_start, right_start),
    )
    return native.call(builder, "product", [left, right], [result], sizes=sizes)[0]


def _as_it_lies(x: Value, parts: bool) -> tuple[Value, int, Sequence[int], Sequence[int]]:
    """What `x` is a transpose of, or a part, if it is; where `x` begins in that, its shape, and its strides there."""
    if x.part is not None and parts:
        source, start, strides = x.part
        return source, start, x.shape, strides
    source, order = x.turned or (x, range(x.ndim))
    strides = [math.prod(source.shape[axis + 1 :]) for axis in range(x.ndim)]
    return source, 0, x.shape, [strides[axis] for axis in order]


def merged_axes(operands: Sequence[Sequence], dimension_numbers: tuple) -> tuple[Axis, ...] | None:
    """Two batch axes, rows, columns and depth; None if there are more.

    Args:
        operands: shape and strides of each.
        dimension_numbers: as in `dot_general`.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    (shape, lhs_strides), (rhs_shape, rhs_strides) = operands
    batch = [
        Axis(shape[i], lhs_strides[i], rhs_strides[j]) for i, j in zip(lhs_batch, rhs_batch, strict=True)
    ]
    depth = [
        Axis(shape[i], lhs_strides[i], rhs_strides[j])
        for i, j in zip(lhs_contract, rhs_contract, strict=True)
    ]
    rows = [
        Axis(n, lhs_strides[i], 0)
        for i, n in enumerate(shape)
        if i not in lhs_contract and i not in lhs_batch
    ]
    columns = [
        Axis(n, 0, rhs_strides[i])
        for i, n in enumerate(rhs_shape)
        if i not in rhs_contract and i not in rhs_batch
    ]
    depth.sort(key=lambda axis: axis.lhs_stride, reverse=True)  # a sum may be in any order
    found = [_merge(group) for group in (batch, rows, columns, depth)]
    room = (2, 1, 1, 1)
    if any(len(group) > most for group, most in zip(found, room, strict=True)):
        return None
    return tuple(
        axis
        for group, most in zip(found, room, strict=True)
        for axis in [Axis(1, 0, 0)] * (most - len(group)) + group
    )


def _merge(axes: Sequence[Axis]) -> list[Axis]:
    """Fewer axes that count the same elements in the same order."""
    out: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if out and out[-1][1:] == (axis.size * axis.lhs_stride, axis.size * axis.rhs_stride):
            out[-1] = Axis(out[-1].size * axis.size, axis.lhs_stride, axis.rhs_stride)
        else:
            out.append(axis)
    return out


# Up to how many products of numbers, in one product of matrices, the kernel is faster than XLA's. Larger ones of
# float32 and float64 are left to XLA, which makes one kernel of a product and what is done with its result.
_MOST = {
    ("float32", "float32"): 1 << 20,
    ("float64", "float64"): 1 << 19,
    ("complex64", "complex64"): math.inf,
    ("complex128", "complex128"): math.inf,
    ("bfloat16", "bfloat16"): math.inf,
    ("bfloat16", "float32"): 1 << 26,
    **{(f"{sign}int{bits}",) * 2: math.inf for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{(f"{sign}int{bits}", "int32"): math.inf for sign in ("", "u") for bits in (8, 16)},
}
# From how many on it is faster than the code that XLA merges with its neighbours.
_LEAST, _LEAST_OF_VECTOR, _LEAST_SIZE = 1 << 9, 1 << 18, 4
# XLA does many large products of floats as well, and the kernel packs whole columns.
_MOST_OF_MANY, _MOST_DEPTH = 1 << 20, 1 << 16
_MOST_BESIDE_TILES = 1 << 18  # of bfloat16, on processors where XLA is four times as fast at 512×512
_VECTORS = ("float32", "float64")
_LEAST_DEPTH_OF_VECTOR = 64  # of rows that lie one behind the other: XLA adds up short ones faster


def _is_known(dtype: np.dtype, result: np.dtype) -> bool:
    """Whether there is a kernel for these types, which is fast."""
    return (dtype.name, result.name) in _MOST and (dtype.name != "bfloat16" or native.multiplies_bfloats())


def _is_faster(dtype: np.dtype, result: np.dtype, axes: tuple[Axis, ...]) -> bool:
    """Whether the kernel is faster than XLA."""
    outer, inner, rows, columns, depth = axes
    work, count = rows.size * columns.size * depth.size, outer.size * inner.size
    if min(rows.size, columns.size) == 1:
        strides = (rows.lhs_stride, depth.lhs_stride) if columns.size == 1 else columns[2:] + depth[2:]
        is_one = count == 1 and max(rows.size, columns.size) > 1
        if not is_one or work < _LEAST_OF_VECTOR or dtype.name not in _VECTORS:
            return False
        return strides[0] == 1 or (strides[1] == 1 and depth.size >= _LEAST_DEPTH_OF_VECTOR)
    if min(rows.size, columns.size, depth.size) < _LEAST_SIZE or work * count < _LEAST:
        return False
    most = _MOST[dtype.name, result.name]
    if dtype.name == "bfloat16" and native.multiplies_tiles():
        most = _MOST_BESIDE_TILES
    if count > 1 and most < math.inf:
        most = _MOST_OF_MANY
    return work <= most and depth.size <= _MOST_DEPTH
