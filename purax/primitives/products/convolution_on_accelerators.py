"""Convolutions of dtypes that compilers for accelerators refuse, in terms of those that they take.

They take floats of two to eight bytes whose result is of the same dtype, or float32. Complex ones become convolutions
of real and imaginary parts. Integers are exact and wrap around: they become a sum over the positions of the kernel,
each a product of matrices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.xla.stablehlo import Builder, Value, integers

_FLOAT32, _FLOAT64, _INT32 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32)
MOST_POSITIONS = 1024


def emit_on_accelerator(builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any) -> Value:
    """Emits a convolution for another platform than the CPU."""
    if dtypes.is_complex(out.dtype):
        if dtypes.is_complex(lhs.dtype):
            return _emit_parts(builder, lhs, rhs, out, at)
        part = out.with_dtype(dtypes.to_real_dtype(out.dtype))
        return builder.convert(emit_on_accelerator(builder, lhs, rhs, part, at), out.dtype)
    if not dtypes.is_inexact(out.dtype):
        return _emit_positions(builder, lhs, rhs, out, at)
    # Integers with a result of floats, too.
    dtype = result = _multiplied_dtype(lhs.dtype, out.dtype)
    if dtype.itemsize == 2 and out.dtype == _FLOAT32:
        result = _FLOAT32
    operands = builder.convert(lhs, dtype), builder.convert(rhs, dtype)
    return builder.convert(at.emit(builder, *operands, out.with_dtype(result)), out.dtype)


def _multiplied_dtype(operand: np.dtype, out: np.dtype) -> np.dtype:
    """The float in which a convolution of floats, or of integers to floats, is done."""
    if _FLOAT64 in (operand, out):
        return _FLOAT64
    is_narrow = dtypes.is_inexact(operand) and operand.itemsize == 2
    return operand if is_narrow and out in (operand, _FLOAT32) else _FLOAT32


def _emit_parts(builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any) -> Value:
    part = dtypes.to_real_dtype(out.dtype)
    pairs = []
    for x in (lhs, rhs):
        own = x.aval.with_dtype(dtypes.to_real_dtype(x.dtype))
        pairs.append([builder.op(name, (x,), own) for name in ("real", "imag")])
    result = out.with_dtype(part)
    products = [[emit_on_accelerator(builder, a, b, result, at) for b in pairs[1]] for a in pairs[0]]
    real = builder.op("subtract", (products[0][0], products[1][1]), result)
    imaginary = builder.op("add", (products[0][1], products[1][0]), result)
    return builder.op("complex", (real, imaginary), out)


def _emit_positions(builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any) -> Value:
    """Σ over positions p of the kernel: the elements of `lhs` that p meets, times the kernel at p."""
    numbers = at.dimension_numbers
    window = [rhs.shape[axis] for axis in numbers.rhs_spec[2:]]
    if math.prod(window) > MOST_POSITIONS:
        raise NotImplementedError(
            f"conv_general_dilated of {lhs.aval.str_short()} with a kernel of {window} elements is not available on "
            f"{builder.platform}, which has no convolutions of integers: convert the operands to float32 or float64"
        )
    dtype = _INT32 if out.dtype == np.bool_ else out.dtype
    lhs, rhs = builder.convert(lhs, dtype), builder.convert(rhs, dtype)
    lhs = _padded(builder, _transposed(builder, lhs, numbers.lhs_spec), at)
    rhs = _transposed(builder, rhs, numbers.rhs_spec)
    groups = max(at.feature_group_count, at.batch_group_count)
    by_batch = at.batch_group_count > 1
    n, features = lhs.shape[:2]
    outputs, inputs = rhs.shape[:2]
    rhs = builder.reshape(rhs, (groups, outputs // groups, inputs, *window))
    shape = [out.shape[axis] for axis in numbers.out_spec]
    n_out, spatial = shape[0], shape[2:]
    result = ShapedArray((groups, n_out, *spatial, outputs // groups), dtype)
    attributes = (
        "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>"
    )
    total: Value | None = None
    for position in itertools.product(*map(range, window)):
        starts = [p * step for p, step in zip(position, at.rhs_dilation, strict=True)]
        limits = [
            s + (k - 1) * step + 1 for s, k, step in zip(starts, spatial, at.window_strides, strict=True)
        ]
        piece = builder.cut(lhs, (0, 0, *starts), (*lhs.shape[:2], *limits), (1, 1, *at.window_strides))
        if by_batch:
            piece = builder.reshape(piece, (groups, n // groups, features, *spatial))
        else:
            piece = builder.reshape(piece, (n, groups, features // groups, *spatial))
            piece = _transposed(builder, piece, (1, 0, *range(2, piece.ndim)))
        at_position = builder.cut(
            rhs, (0, 0, 0, *position), (*rhs.shape[:3], *[p + 1 for p in position]), [1] * rhs.ndim
        )
        at_position = builder.reshape(at_position, rhs.shape[:3])
        product = builder.op("dot_general", (piece, at_position), result, attributes)
        total = product if total is None else builder.op("add", (total, product), result)
    assert total is not None
    # [group, batch, spatial …, output] to batch, all outputs, spatial …
    moved = _transposed(builder, total, (1, 0, total.ndim - 1, *range(2, total.ndim - 1)))
    moved = builder.reshape(moved, (n_out, outputs, *spatial))
    if out.dtype == np.bool_:
        moved = builder.compare("NE", moved, builder.constant(0, moved.aval))
    places = [numbers.out_spec.index(axis) for axis in range(out.ndim)]
    return _transposed(builder, moved, places)


def _transposed(builder: Builder, x: Value, order: Sequence[int]) -> Value:
    if tuple(order) == tuple(range(x.ndim)):
        return x
    aval = x.aval.with_shape(tuple([x.shape[axis] for axis in order]))
    return builder.op("transpose", (x,), aval, f"permutation = {integers(order)}")


def _padded(builder: Builder, x: Value, at: Any) -> Value:
    """`x`, with axes (batch, features, spatial …), with holes, and padding that may be negative."""
    low, high = (
        ([0, 0, *sizes] for sizes in zip(*at.padding, strict=True)) if at.padding else ([0, 0], [0, 0])
    )
    interior = [0, 0, *[d - 1 for d in at.lhs_dilation]]
    if not any(low) and not any(high) and not any(interior):
        return x
    shape = [
        n + before + after + (n - 1) * hole
        for n, before, after, hole in zip(x.shape, low, high, interior, strict=True)
    ]
    attributes = (
        f"edge_padding_low = {integers(low)}, edge_padding_high = {integers(high)}, "
        f"interior_padding = {integers(interior)}"
    )
    zero = builder.constant(0, ShapedArray((), x.dtype))
    return builder.op("pad", (x, zero), x.aval.with_shape(tuple(shape)), attributes)
