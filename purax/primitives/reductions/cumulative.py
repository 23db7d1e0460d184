"""Cumulative operations along an axis: running sums, products, extrema and logarithms of sums of exponentials.

Element i of the result combines the elements up to and with i, or with `reverse` those from i on. Narrow floats are
combined in float32. On the CPU a native kernel does the work (`purax.xla.native`). Where there is none, a loop runs
along the axis over vectors of all that lies beside it; where that is too little, the axis is cut into blocks that run
side by side.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import SymbolicDimension, is_at_most
from purax.core.primitive import Primitive
from purax.primitives import layouts
from purax.primitives.elementwise import extrema_on_host
from purax.primitives.elementwise.arithmetic import abs_, max_, max_p, min_p, sub
from purax.primitives.elementwise.conversion import complex_, real
from purax.primitives.elementwise.elementwise import add, add_p, mul, mul_p, neg
from purax.primitives.elementwise.logic import eq, is_finite, select
from purax.primitives.elementwise.transcendental import exp, log, log1p
from purax.primitives.reductions.reduction import highest, lowest
from purax.primitives.shape.broadcasting import full
from purax.primitives.shape.dynamic_slicing import dynamic_slice_p
from purax.primitives.shape.reshaping import concatenate, reshape, rev, stack
from purax.primitives.shape.slicing import pad_p, slice_axis
from purax.xla import native
from purax.xla.stablehlo import integer_pairs, integers

_INT32, _FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
_NATIVE_DTYPES = [np.dtype(name) for name in ("float32", "float64", "int32", "int64", "uint32", "uint64")]
_WIDE_ENOUGH = 256  # elements beside the axis from which on a loop along it keeps the processor busy


class Cumulative(Primitive):
    """Combines elements along `axis` with an associative operation.

    Attributes:
        ufunc: NumPy's operation.
        binary: the primitive that combines two elements.
        native_kind: which of the operations of `purax/native/cumulative.cc` it is, if it is one of them.
    """

    accepts: tuple[str, ...] = ("integer", "float", "complex")
    ufunc: np.ufunc
    binary: Primitive
    native_kind: int | None = None

    def identity(self, dtype: np.dtype) -> Any:
        """The element that changes nothing."""
        raise NotImplementedError

    def infer(self, x, *, axis, reverse):
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{self.name}: axis {axis} is not an axis of an array of shape {x.shape}")
        if dtypes.kind(x.dtype) not in self.accepts:
            raise TypeError(
                f"{self.name} takes {' or '.join(self.accepts)} arrays, got {x.str_short()}; convert it first"
            )
        return x

    def lay_out(self, out, x, *, axis, reverse):
        layouts.check_whole(self.name, x, (axis,), "goes along")
        return x.spec

    def host(self, x, *, axis, reverse):
        dtype = x.dtype
        if reverse:
            x = np.flip(x, axis)
        if x.size == 0:
            return x
        if dtypes.is_floating(dtype) and dtype.itemsize <= 2:
            x = x.astype(np.float32)
        out = self.accumulate(x, axis)
        return (np.flip(out, axis) if reverse else out).astype(dtype, copy=False)

    def accumulate(self, x: np.ndarray, axis: int) -> np.ndarray:
        return self.ufunc.accumulate(x, axis=axis, dtype=x.dtype)

    def emit(self, builder, x, y):
        """Combines two values in StableHLO."""
        return self.binary.lower(builder, x, y)

    def padded(self, at, avals, operands, *, axis, reverse):
        (x,), (aval,) = operands, avals
        if reverse:
            x = at.filled(x, aval, (axis,), self.identity(aval.dtype))
        return self.bind(x, axis=axis, reverse=reverse)

    def lower(self, builder, x, *, axis, reverse):
        if is_at_most(x.shape[axis], 1) or 0 in x.shape:
            return x
        dtype = x.dtype
        if dtypes.is_floating(dtype) and dtype.itemsize <= 2:
            x = builder.convert(x, _FLOAT32)
        if type(x.shape[axis]) is SymbolicDimension:
            scan = _scan_by_doubling
        elif builder.platform != "cpu":
            scan = _scan_window
        elif self.native_kind is not None and native.serves(builder) and not dtypes.is_complex(dtype):
            scan = _scan_natively
        else:
            scan = _scan_in_blocks
        return builder.convert(scan(self, builder, x, axis, reverse), dtype)

    def combine_with_tangents(self, pair, other):
        """The jvp of combining two elements: ((a, da), (b, db)) -> (c, dc)."""
        return self.binary.jvp((pair[0], other[0]), (pair[1], other[1]))

    def jvp(self, primals, tangents, *, axis, reverse):
        out = self.bind(*primals, axis=axis, reverse=reverse)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        _, tangent = associative_scan(self.combine_with_tangents, (primals[0], tangents[0]), axis, reverse)
        return out, tangent

    def batch(self, operands, batch_axes, *, axis, reverse):
        (x,), (batch_axis,) = operands, batch_axes
        return self.bind(x, axis=axis + (axis >= batch_axis), reverse=reverse), batch_axis


class Cumsum(Cumulative):
    """The running sum of `x` along `axis`."""

    name = "cumsum"
    ufunc, binary = np.add, add_p
    native_kind = 0

    def identity(self, dtype):
        return 0

    def jvp(self, primals, tangents, *, axis, reverse):
        out = self.bind(*primals, axis=axis, reverse=reverse)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, self.bind(*tangents, axis=axis, reverse=reverse)

    def transpose(self, cotangent, x, *, axis, reverse):
        return (self.bind(cotangent, axis=axis, reverse=not reverse),)


class Cumprod(Cumulative):
    """The running product of `x` along `axis`."""

    name = "cumprod"
    ufunc, binary = np.multiply, mul_p
    native_kind = 1

    def identity(self, dtype):
        return 1


class Cummax(Cumulative):
    """The largest element so far of `x` along `axis`."""

    name = "cummax"
    ufunc, binary = extrema_on_host.maximum, max_p
    native_kind = 2

    def identity(self, dtype):
        return lowest(dtype)


class Cummin(Cumulative):
    """The smallest element so far of `x` along `axis`."""

    name = "cummin"
    ufunc, binary = extrema_on_host.minimum, min_p
    native_kind = 3

    def identity(self, dtype):
        return highest(dtype)


class Cumlogsumexp(Cumulative):
    """log Σ exp(x) of the elements so far along `axis`, without overflow."""

    name = "cumlogsumexp"
    accepts = ("float", "complex")
    ufunc = np.logaddexp

    def identity(self, dtype):
        return -np.inf

    def accumulate(self, x, axis):
        if not dtypes.is_complex(x.dtype):
            return np.logaddexp.accumulate(x, axis=axis, dtype=x.dtype)
        rows = np.moveaxis(x, axis, 0)
        out = [rows[0]]
        for row in rows[1:]:
            top = np.maximum(out[-1].real, row.real)
            top = np.where(np.isfinite(top), top, 0)
            out.append(top + np.log(np.exp(out[-1] - top) + np.exp(row - top)))
        return np.moveaxis(np.stack(out), 0, axis).astype(x.dtype, copy=False)

    def emit(self, builder, x, y):
        if dtypes.is_complex(x.dtype):
            part = x.aval.with_dtype(dtypes.to_real_dtype(x.dtype))
            top = builder.op("maximum", [builder.op("real", (v,), part) for v in (x, y)], part)
            zero = builder.constant(0, part)
            finite = builder.op("is_finite", (top,), part.with_dtype(np.dtype(np.bool_)))
            shift = builder.op("complex", (builder.select(finite, top, zero), zero), x.aval)
            parts = [
                builder.op("exponential", (builder.op("subtract", (v, shift), x.aval),), x.aval)
                for v in (x, y)
            ]
            return builder.op(
                "add", (shift, builder.op("log", (builder.op("add", parts, x.aval),), x.aval)), x.aval
            )
        top = builder.op("maximum", (x, y), x.aval)
        gap = builder.op("abs", (builder.op("subtract", (x, y), x.aval),), x.aval)
        small = builder.op("exponential", (builder.op("negate", (gap,), x.aval),), x.aval)
        above = builder.op("log_plus_one", (small,), x.aval)
        # Equal operands differ by 0, infinite ones by NaN.
        above = builder.select(builder.compare("EQ", x, y), builder.constant(math.log(2), x.aval), above)
        return builder.op("add", (top, above), x.aval)

    def combine_with_tangents(self, pair, other):
        """d log(eᵃ + eᵇ) = eᵃ⁻ᶜ da + eᵇ⁻ᶜ db"""
        (a, da), (b, db) = pair, other
        c = logaddexp(a, b)
        aval = aval_of(c)
        weights = []
        for v, w in ((a, b), (b, a)):
            weight = exp(sub(v, c))
            if not dtypes.is_complex(
                aval.dtype
            ):  # equal operands share, so that infinite ones do not give NaN
                weight = select(eq(v, w), full(aval.shape, 0.5, aval.dtype), weight)
            weights.append(weight)
        return c, add(mul(da, weights[0]), mul(db, weights[1]))


cumsum_p = Cumsum()
cumprod_p = Cumprod()
cummax_p = Cummax()
cummin_p = Cummin()
cumlogsumexp_p = Cumlogsumexp()


def cumsum(x, axis: int = 0, reverse: bool = False):
    """The running sum of `x` along `axis`."""
    return cumsum_p.bind(x, axis=operator.index(axis), reverse=bool(reverse))


def cumprod(x, axis: int = 0, reverse: bool = False):
    """The running product of `x` along `axis`."""
    return cumprod_p.bind(x, axis=operator.index(axis), reverse=bool(reverse))


def cummax(x, axis: int = 0, reverse: bool = False):
    """The largest element so far of `x` along `axis`."""
    return cummax_p.bind(x, axis=operator.index(axis), reverse=bool(reverse))


def cummin(x, axis: int = 0, reverse: bool = False):
    """The smallest element so far of `x` along `axis`."""
    return cummin_p.bind(x, axis=operator.index(axis), reverse=bool(reverse))


def cumlogsumexp(x, axis: int = 0, reverse: bool = False):
    """log Σ exp(x) of the elements so far along `axis`."""
    return cumlogsumexp_p.bind(x, axis=operator.index(axis), reverse=bool(reverse))


def logaddexp(x, y):
    """log(eˣ + eʸ) without overflow."""
    if dtypes.is_complex(aval_of(x).dtype):
        top = max_(real(x), real(y))
        zero = full(aval_of(top).shape, 0, aval_of(top).dtype)
        shift = complex_(select(is_finite(top), top, zero), zero)
        return add(shift, log(add(exp(sub(x, shift)), exp(sub(y, shift)))))
    above = log1p(exp(neg(abs_(sub(x, y)))))
    aval = aval_of(above)
    return add(max_(x, y), select(eq(x, y), full(aval.shape, math.log(2), aval.dtype), above))


def associative_scan(combine: Callable, arrays: Sequence, axis: int, reverse: bool = False) -> tuple:
    """Running results of an associative operation on tuples of arrays, in a number of steps that is logarithmic.

    Args:
        combine: takes two tuples of arrays and returns one; it works elementwise along `axis`.
        arrays: of equal sizes along `axis`.
        axis: where to scan.
        reverse: whether to start at the end.

    Returns:
        A tuple of arrays like `arrays`.
    """
    if reverse:
        flipped = associative_scan(combine, [rev(x, (axis,)) for x in arrays], axis)
        return tuple(rev(x, (axis,)) for x in flipped)

    def part(xs, start, stop, stride=1):
        return tuple(slice_axis(x, start, stop, axis, stride) for x in xs)

    def scan(xs):
        size = aval_of(xs[0]).shape[axis]
        if size < 2:
            return tuple(xs)
        odd = scan(combine(part(xs, 0, size - 1, 2), part(xs, 1, size, 2)))  # at 1, 3, 5, …
        even = part(xs, 0, 1)
        if size > 2:
            before = part(odd, 0, (size - 1) // 2)
            rest = combine(before, part(xs, 2, size, 2))
            even = tuple(concatenate((first, others), axis) for first, others in zip(even, rest, strict=True))
        return tuple(_interleave(a, b, axis) for a, b in zip(even, odd, strict=True))

    return scan(arrays)


def _interleave(even, odd, axis: int):
    """The elements of `even` and `odd` in turn; `even` may have one more."""
    shape = aval_of(even).shape
    extra = shape[axis] - aval_of(odd).shape[axis]
    paired = slice_axis(even, 0, shape[axis] - extra, axis) if extra else even
    size = 2 * (shape[axis] - extra)
    mixed = reshape(stack((paired, odd), axis + 1), (*shape[:axis], size, *shape[axis + 1 :]))
    if not extra:
        return mixed
    return concatenate((mixed, slice_axis(even, shape[axis] - 1, shape[axis], axis)), axis)


# --- in StableHLO


def _scan_window(primitive: Cumulative, builder, x, axis: int, reverse: bool):
    """As a window that ends at each element; XLA on accelerators makes a tree of it."""
    scalar = ShapedArray((), x.dtype)
    body = builder.region((scalar, scalar), lambda inner, a, b: [primitive.emit(inner, a, b)])
    size = x.shape[axis]
    window = [size if a == axis else 1 for a in range(x.ndim)]
    outside = (0, size - 1) if reverse else (size - 1, 0)
    padding = [outside if a == axis else (0, 0) for a in range(x.ndim)]
    attributes = f"window_dimensions = {integers(window)}, padding = {integer_pairs(padding)}"
    start = builder.constant(primitive.identity(x.dtype), scalar)
    return builder.op("reduce_window", (x, start), x.aval, attributes, (body,))


def _scan_by_doubling(primitive: Cumulative, builder, x, axis: int, reverse: bool):
    """Of any size: every element takes in what is 1, 2, 4, … places before it, which has taken in as many."""
    size, counter = builder.dimension(x.shape[axis]), ShapedArray((), _INT32)
    scalar = x.aval.with_shape(())
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (0, x.shape[axis], 0) if reverse else (x.shape[axis], 0, 0)

    def is_unfinished(inner, distance, total):
        return [inner.compare("LT", distance, size)]

    def step(inner, distance, total):
        identity = inner.constant(primitive.identity(x.dtype), scalar)
        framed = pad_p.lower(inner, total, identity, padding_config=tuple(config))
        start = distance if reverse else inner.op("subtract", (size, distance), counter)
        zero = inner.constant(0, counter)
        starts = [start if a == axis else zero for a in range(x.ndim)]
        before = dynamic_slice_p.lower(inner, framed, *starts, slice_sizes=x.shape)
        pair = (total, before) if reverse else (before, total)
        # A sum of the counter with itself ends XLA's process, which takes its operand for a constant.
        twice = inner.op("multiply", (distance, inner.constant(2, counter)), counter)
        return [twice, primitive.emit(inner, *pair)]

    avals = [counter, x.aval]
    regions = (builder.region(avals, is_unfinished), builder.region(avals, step))
    return builder.op("while", (builder.constant(1, counter), x), avals, "", regions)[1]


def _scan_natively(primitive: Cumulative, builder, x, axis: int, reverse: bool):
    """By a native kernel, which knows integers of 32 and 64 bits: those of others are what is left of them."""
    if x.dtype not in _NATIVE_DTYPES:
        x = builder.convert(x, np.dtype(np.uint32 if dtypes.is_unsigned(x.dtype) else np.int32))
    sizes = {
        "outer": math.prod(x.shape[:axis]),
        "size": x.shape[axis],
        "inner": math.prod(x.shape[axis + 1 :]),
    }
    assert primitive.native_kind is not None, "only kinds that the kernel knows come here"
    return native.call(
        builder, "cumulative", [x], [x.aval], kind=primitive.native_kind, reverse=reverse, **sizes
    )[0]


def _scan_in_blocks(primitive: Cumulative, builder, x, axis: int, reverse: bool):
    """As a loop along the axis, or along blocks of it where there is little beside it."""
    shape = x.shape
    before, size, after = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    x = builder.reshape(x, (before, size, after))
    if before * after >= _WIDE_ENOUGH or size < 64:
        rows = _transpose(builder, x, (1, 0, 2))
        rows = _loop(primitive, builder, builder.reshape(rows, (size, before * after)), reverse)
        out = _transpose(builder, builder.reshape(rows, (size, before, after)), (1, 0, 2))
        return builder.reshape(out, shape)
    blocks = min(max(_WIDE_ENOUGH // (before * after), math.isqrt(size)), size // 8)
    block = -(-size // blocks)
    blocks = -(-size // block)
    missing = blocks * block - size
    identity = builder.constant(primitive.identity(x.dtype), ShapedArray((), x.dtype))
    x = _pad(builder, x, identity, missing if reverse else 0, 0 if reverse else missing)
    x = _transpose(builder, builder.reshape(x, (before, blocks, block, after)), (2, 0, 1, 3))
    rows = _loop(primitive, builder, builder.reshape(x, (block, before * blocks * after)), reverse)
    last = 0 if reverse else block - 1
    totals = builder.reshape(_cut(builder, rows, 0, last, last + 1), (before, blocks, after))
    sums = _scan_in_blocks(primitive, builder, totals, 1, reverse)
    # What comes before each block: the running totals, moved on by one.
    moved = _cut(builder, sums, 1, 1, blocks) if reverse else _cut(builder, sums, 1, 0, blocks - 1)
    moved = _pad(builder, moved, identity, 0 if reverse else 1, 1 if reverse else 0)
    rows = builder.reshape(rows, (block, before, blocks, after))
    out = primitive.emit(builder, builder.broadcast(moved, rows.shape, (1, 2, 3)), rows)
    out = builder.reshape(_transpose(builder, out, (1, 2, 0, 3)), (before, blocks * block, after))
    out = _cut(builder, out, 1, missing, blocks * block) if reverse else _cut(builder, out, 1, 0, size)
    return builder.reshape(out, shape)


def _loop(primitive: Cumulative, builder, x, reverse: bool):
    """Running results along the first of two axes, one row after the other."""
    size, width = x.shape
    row = ShapedArray((1, width), x.dtype)
    counter = ShapedArray((), _INT32)
    avals = [counter, row, x.aval]

    def is_unfinished(inner, count, total, rows):
        return [inner.compare("LT", count, inner.constant(size, counter))]

    def step(inner, count, total, rows):
        zero = inner.constant(0, counter)
        index = count
        if reverse:
            index = inner.op("subtract", (inner.constant(size - 1, counter), count), counter)
        own = inner.op("dynamic_slice", (rows, index, zero), row, f"slice_sizes = {integers((1, width))}")
        total = primitive.emit(inner, own, total) if reverse else primitive.emit(inner, total, own)
        rows = inner.op("dynamic_update_slice", (rows, total, index, zero), rows.aval)
        return [inner.op("add", (count, inner.constant(1, counter)), counter), total, rows]

    start = (builder.constant(0, counter), builder.constant(primitive.identity(x.dtype), row), x)
    regions = (builder.region(avals, is_unfinished), builder.region(avals, step))
    return builder.op("while", start, avals, "", regions)[2]


def _transpose(builder, x, order: Sequence[int]):
    shape = tuple(x.shape[a] for a in order)
    moving = [a for a in order if x.shape[a] != 1]
    if moving == sorted(moving):
        return builder.reshape(x, shape)
    return builder.op("transpose", (x,), x.aval.with_shape(shape), f"permutation = {integers(order)}")


def _cut(builder, x, axis: int, start: int, stop: int):
    starts = [start if a == axis else 0 for a in range(x.ndim)]
    stops = [stop if a == axis else n for a, n in enumerate(x.shape)]
    return builder.cut(x, starts, stops, (1,) * x.ndim)


def _pad(builder, x, value, low: int, high: int):
    """Pads the middle one of three axes."""
    if not low and not high:
        return x
    shape = (x.shape[0], x.shape[1] + low + high, x.shape[2])
    edges = f"edge_padding_low = {integers((0, low, 0))}, edge_padding_high = {integers((0, high, 0))}"
    return builder.op(
        "pad", (x, value), x.aval.with_shape(shape), f"{edges}, interior_padding = {integers((0, 0, 0))}"
    )
