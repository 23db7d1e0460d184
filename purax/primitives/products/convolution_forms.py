"""Other forms of convolutions that XLA's CPU backend has no fast kernel for: a native kernel, or its own operations.

- One input and one output feature per group: for each element of the kernel, a product of arrays, all summed at once.
- Holes between the elements of the operand: one convolution without holes for each residue of the output position.
- A kernel larger than the result, as in the derivative by the kernel: for each element of the result, a matrix product.

Each `emit_…` takes the settings of a convolution and returns None where the form does not apply.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.primitives.products.convolution_native import emit_native
from purax.xla.stablehlo import Builder, Value, integers

_MOST_TAPS = 32  # elements of a kernel, or of a result, that a form is written out for


def emit_convolution(builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any) -> Value | None:
    """The convolution in the form that is fastest on one CPU device, or None if that is XLA's own.

    Args:
        lhs: the operand.
        rhs: the kernel.
        out: the type of the result.
        at: the `Settings` of the convolution.
    """
    if builder.platform != "cpu" or builder.module.mesh is not None:
        return None
    if len(at.window_strides) not in (1, 2, 3):
        return None
    if lhs.dtype != out.dtype or out.dtype not in (np.float32, np.float64):
        return None
    for form in (
        _emit_depthwise, emit_native, _emit_depthwise_kernel_gradient, _emit_taps, _emit_residues,
    ):  # fmt: skip
        found = form(builder, lhs, rhs, out, at)
        if found is not None:
            return found
    return None


def _spatial(shape: Sequence[int], spec: Sequence[int]) -> list[int]:
    return [shape[axis] for axis in spec[2:]]


def _emit_depthwise(builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any) -> Value | None:
    """out[n, c, p] = Σ lhs[n, c, p·stride + q·dilation − padding] · rhs[c, q] over q"""
    lhs_spec, rhs_spec, out_spec = at.dimension_numbers
    groups = at.feature_group_count
    window = _spatial(rhs.shape, rhs_spec)
    if groups == 1 or rhs.shape[rhs_spec[1]] != 1 or rhs.shape[rhs_spec[0]] != groups or lhs_spec != out_spec:
        return None
    if math.prod(window) > _MOST_TAPS:
        return None
    x = _spread(builder, lhs, lhs_spec, at)
    weights = _transposed(builder, rhs, (*rhs_spec[2:], rhs_spec[0], rhs_spec[1]))
    weights = builder.reshape(weights, (math.prod(window), groups))
    total = None
    for number, place in enumerate(itertools.product(*map(range, window))):
        starts = [q * d for q, d in zip(place, at.rhs_dilation, strict=True)]
        part = _window(builder, x, lhs_spec, starts, _spatial(out.shape, out_spec), at.window_strides)
        weight = builder.cut(weights, (number, 0), (number + 1, groups), (1, 1))
        weight = builder.broadcast(builder.reshape(weight, (groups,)), out.shape, (out_spec[1],))
        product = builder.op("multiply", (part, weight), out)
        total = product if total is None else builder.op("add", (total, product), out)
    return total


def _emit_depthwise_kernel_gradient(
    builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any
) -> Value | None:
    """out[c, q] = Σ lhs[c, n, q·stride + p·dilation − padding] · rhs[c, n, p] over n, p; c is the batch group."""
    lhs_spec, rhs_spec, out_spec = at.dimension_numbers
    groups = at.batch_group_count
    sizes = _spatial(out.shape, out_spec)
    if groups == 1 or lhs.shape[lhs_spec[0]] != groups or rhs.shape[rhs_spec[0]] != groups:
        return None
    if math.prod(sizes) > _MOST_TAPS:
        return None
    x = _spread(builder, lhs, lhs_spec, at)
    kernel = _transposed(builder, rhs, [rhs_spec[lhs_spec.index(axis)] for axis in range(lhs.ndim)])
    # The last axis is summed over at the end, since sums along it do not run side by side.
    axes = tuple(axis for axis in range(lhs.ndim - 1) if axis != lhs_spec[0])
    taps = []
    for place in itertools.product(*map(range, sizes)):
        starts = [q * s for q, s in zip(place, at.window_strides, strict=True)]
        part = _window(builder, x, lhs_spec, starts, _spatial(kernel.shape, lhs_spec), at.rhs_dilation)
        product = builder.op("multiply", (part, kernel), kernel.aval)
        total = builder.reduce(product, 0, "add", axes)
        if lhs_spec[0] != lhs.ndim - 1:
            total = builder.reduce(total, 0, "add", (1,))
        taps.append(builder.reshape(total, (1, groups)))
    return _assembled(
        builder, taps, (1, groups, *sizes), out, (out_spec[0], out_spec[1], *out_spec[2:]), sizes
    )


def _emit_taps(builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any) -> Value | None:
    """For each position q of the result: out[n, o, q] = Σ lhs[n, i, q + p − padding] · rhs[o, i, p] over i, p."""
    lhs_spec, rhs_spec, out_spec = at.dimension_numbers
    if at.feature_group_count > 1 or at.batch_group_count > 1:
        return None
    sizes, window = _spatial(out.shape, out_spec), _spatial(rhs.shape, rhs_spec)
    has_holes = any(d > 1 for d in (*at.lhs_dilation, *at.rhs_dilation))
    if not has_holes or math.prod(sizes) > _MOST_TAPS or math.prod(window) < 8 * math.prod(sizes):
        return None
    taps = []
    for place in itertools.product(*map(range, sizes)):
        # Along an axis, element p of the kernel meets element m of the operand where
        # q·stride + p·rhs_dilation − padding = m·lhs_dilation.
        x, kernel = lhs, rhs
        for i, q in enumerate(place):
            met = _meeting(
                q * at.window_strides[i] - at.padding[i][0],
                lhs.shape[lhs_spec[2 + i]],
                at.lhs_dilation[i],
                window[i],
                at.rhs_dilation[i],
            )
            if met is None:
                break
            m, p, count, step_m, step_p = met
            x = _cut_axis(builder, x, lhs_spec[2 + i], m, count, step_m)
            kernel = _cut_axis(builder, kernel, rhs_spec[2 + i], p, count, step_p)
        rows, columns = lhs.shape[lhs_spec[0]], rhs.shape[rhs_spec[0]]
        aval = ShapedArray((1, rows, columns), out.dtype)
        if met is None:
            taps.append(builder.constant(0, aval))
            continue
        # Rows on the left, what is summed over on the right, so that the product is one of matrices.
        left = _transposed(builder, x, (lhs_spec[0], lhs_spec[1], *lhs_spec[2:]))
        right = _transposed(builder, kernel, (rhs_spec[0], rhs_spec[1], *rhs_spec[2:]))
        left = builder.reshape(left, (rows, left.aval.size // rows))
        right = builder.reshape(right, (columns, right.aval.size // columns))
        dimensions = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]"
        attributes = f"dot_dimension_numbers = #stablehlo.dot<{dimensions}>"
        product = builder.op(
            "dot_general", (left, right), ShapedArray((rows, columns), out.dtype), attributes
        )
        taps.append(builder.reshape(product, aval.shape))
    shape = (lhs.shape[lhs_spec[0]], rhs.shape[rhs_spec[0]], *sizes)
    return _assembled(builder, taps, shape, out, out_spec, sizes)


def _meeting(
    offset: int, size: int, step: int, count: int, dilation: int
) -> tuple[int, int, int, int, int] | None:
    """Where offset + p·dilation = m·step for 0 ≤ p < count, 0 ≤ m < size: first m and p, how often, and their steps."""
    common = math.lcm(step, dilation)
    for p in range(count):
        place = offset + p * dilation
        if place >= 0 and place % step == 0:
            m = place // step
            if m >= size:
                return None
            step_m, step_p = common // step, common // dilation
            times = min((size - 1 - m) // step_m, (count - 1 - p) // step_p) + 1
            return m, p, times, step_m, step_p
    return None


def _emit_residues(builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any) -> Value | None:
    """Of an operand with holes: the outputs at positions r, r + d, r + 2d, … need every d-th element of the kernel."""
    if all(d == 1 for d in at.lhs_dilation) or any(d > 1 for d in (*at.window_strides, *at.rhs_dilation)):
        return None
    if at.batch_group_count > 1 or math.prod(at.lhs_dilation) > _MOST_TAPS:
        return None
    lhs_spec, rhs_spec, out_spec = at.dimension_numbers
    sizes, window = _spatial(out.shape, out_spec), _spatial(rhs.shape, rhs_spec)
    counts = [
        -(-n // d) for n, d in zip(sizes, at.lhs_dilation, strict=True)
    ]  # outputs of a residue, at most
    parts = []
    for residues in itertools.product(*map(range, at.lhs_dilation)):
        kernel, taken = rhs, 1
        pads = []
        for i, (residue, d) in enumerate(zip(residues, at.lhs_dilation, strict=True)):
            low = at.padding[i][0]
            first = (low - residue) % d
            taken = len(range(first, window[i], d))
            if not taken:
                break
            kernel = _cut_axis(builder, kernel, rhs_spec[2 + i], first, taken, d)
            before = (low - residue - first) // d
            size = lhs.shape[lhs_spec[2 + i]]
            pads.append((before, counts[i] + taken - 1 - size - before))
        shape = list(out.shape)
        for axis, count in zip(out_spec[2:], counts, strict=True):
            shape[axis] = count
        aval = out.with_shape(tuple(shape))
        if not taken:  # no element of the kernel meets one of the operand
            parts.append(builder.constant(0, aval))
        else:
            plain = at._replace(lhs_dilation=(1,) * len(pads), padding=tuple(pads))
            parts.append(plain.emit(builder, lhs, kernel, aval))
    return _interleaved(builder, parts, out, out_spec, at.lhs_dilation, counts)


def _interleaved(
    builder: Builder, parts: Sequence[Value], out: ShapedArray, spec: Sequence[int], steps: Sequence[int],
    counts: Sequence[int],
) -> Value:  # fmt: skip
    """The array whose elements r, r + d, … along the spatial axes are those of the part for the residues r."""
    shape = parts[0].shape
    rows = [builder.reshape(part, (1, *shape)) for part in parts]
    stacked_aval = parts[0].aval.with_shape((len(parts), *shape))
    stacked = builder.op("concatenate", rows, stacked_aval, "dimension = 0 : i64")
    stacked = builder.reshape(stacked, (*steps, *shape))
    order: list[int] = []
    full = []
    for axis, n in enumerate(shape):
        order.append(len(steps) + axis)
        if axis in spec[2:]:
            i = list(spec[2:]).index(axis)
            order.append(i)
            n = counts[i] * steps[i]
        full.append(n)
    mixed = builder.reshape(_transposed(builder, stacked, order), tuple(full))
    return builder.cut(mixed, (0,) * len(full), out.shape, (1,) * len(full))


def _assembled(
    builder: Builder, taps: Sequence[Value], shape: Sequence[int], out: ShapedArray, spec: Sequence[int],
    sizes: Sequence[int],
) -> Value:  # fmt: skip
    """The result, from its values (1, …) at each spatial position; `shape` is (batch, features, spatial …)."""
    count = len(taps)
    flat = [builder.reshape(tap, (1, shape[0], shape[1])) for tap in taps]
    aval = ShapedArray((count, shape[0], shape[1]), out.dtype)
    stacked = builder.op("concatenate", flat, aval, "dimension = 0 : i64") if count > 1 else flat[0]
    stacked = builder.reshape(stacked, (*sizes, shape[0], shape[1]))
    spatial = len(sizes)
    order = [0] * len(spec)
    order[spec[0]], order[spec[1]] = spatial, spatial + 1
    for i, axis in enumerate(spec[2:]):
        order[axis] = i
    return _transposed(builder, stacked, order)


# --- slices and the like


def _spread(builder: Builder, x: Value, spec: Sequence[int], at: Any) -> Value:
    """`x` with its holes and its padding, in memory: read inside of a loop they would be a branch for each element."""
    if not any(low or high for low, high in at.padding) and all(d == 1 for d in at.lhs_dilation):
        return x
    low, high, interior = [0] * x.ndim, [0] * x.ndim, [0] * x.ndim
    shape = list(x.shape)
    for axis, pads, d in zip(spec[2:], at.padding, at.lhs_dilation, strict=True):
        low[axis], high[axis], interior[axis] = pads[0], pads[1], d - 1
        shape[axis] = (shape[axis] - 1) * d + 1 + sum(pads)
    attributes = (
        f"edge_padding_low = {integers(low)}, edge_padding_high = {integers(high)}, "
        f"interior_padding = {integers(interior)}"
    )
    zero = builder.constant(0, ShapedArray((), x.dtype))
    padded = builder.op("pad", (x, zero), x.aval.with_shape(tuple(shape)), attributes)
    return builder.op("optimization_barrier", (padded,), padded.aval)


def _window(
    builder: Builder,
    x: Value,
    spec: Sequence[int],
    starts: Sequence[int],
    sizes: Sequence[int],
    steps: Sequence[int],
) -> Value:
    begin, end, stride = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for axis, start, size, step in zip(spec[2:], starts, sizes, steps, strict=True):
        begin[axis], end[axis], stride[axis] = start, start + (size - 1) * step + 1, step
    return builder.cut(x, begin, end, stride)


def _cut_axis(builder: Builder, x: Value, axis: int, start: int, count: int, step: int) -> Value:
    begin, end, stride = [0] * x.ndim, list(x.shape), [1] * x.ndim
    begin[axis], end[axis], stride[axis] = start, start + (count - 1) * step + 1, step
    return builder.cut(x, begin, end, stride)


def _transposed(builder: Builder, x: Value, order: Sequence[int]) -> Value:
    if tuple(order) == tuple(range(x.ndim)):
        return x
    aval = x.aval.with_shape(tuple(x.shape[axis] for axis in order))
    return builder.op("transpose", (x,), aval, f"permutation = {integers(order)}")


__all__ = ["emit_convolution"]
