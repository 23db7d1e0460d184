"""Sorting along an axis: `sort` of several arrays by the first of them, and `top_k`.

NaN is larger than all numbers and -0 equals 0; complex numbers are ordered by real part, then by imaginary part.

On the CPU native kernels do the work (`purax.xla.native`). Where there are none, everything becomes a sort of one array
of integers with a plain `<`, which XLA runs four times as fast as any other: floating point numbers are mapped to
integers of the same order, and where several arrays move together, the position is packed into the low half of a
64-bit key and the arrays are gathered.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import SymbolicDimension, is_at_most
from purax.core.primitive import Primitive
from purax.errors import ShapeError
from purax.primitives import layouts
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import not_
from purax.primitives.reductions.reduction import lowest as least_of
from purax.primitives.shape.broadcasting import batch_size, batch_to_front, move_axis
from purax.primitives.shape.gather_scatter import gather_p, take_along_axis
from purax.primitives.shape.reshaping import iota
from purax.primitives.shape.windows import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from purax.xla import native
from purax.xla.stablehlo import integers

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_UINT64 = np.dtype(np.uint64)
_FLOAT32 = np.dtype(np.float32)
_WORTH_PACKING = 2048


class Sort(Primitive):
    """Sorts arrays along `dimension` by the first `num_keys` of them, in lexical order; the others move along."""

    name = "sort"
    may_make = ()
    is_heavy = True
    multiple_results = True
    host_is_cheap = True  # NumPy sorts faster than XLA does on a CPU, whatever the size

    def infer(self, *avals, dimension, is_stable, num_keys):
        if not 1 <= num_keys <= len(avals):
            raise ValueError(
                f"sort: num_keys={num_keys} must be between 1 and len(operand)={len(avals)}, the number of operands"
            )
        if any(aval.shape != avals[0].shape for aval in avals):
            raise TypeError(
                f"sort needs operands of equal shapes, got {', '.join(str(aval.shape) for aval in avals)}"
            )
        if not 0 <= dimension < avals[0].ndim:
            raise ValueError(
                f"sort: dimension {dimension} is not an axis of an array of shape {avals[0].shape}"
            )
        return list(avals)

    def lay_out(self, outs, *avals, dimension, is_stable, num_keys):
        for aval in avals:
            layouts.check_whole(self.name, aval, (dimension,), "goes along")
        return [layouts.merged(self.name, avals, avals[0].shape)] * len(outs)

    def host(self, *operands, dimension, is_stable, num_keys):
        if len(operands) == 1 and not dtypes.is_complex(operands[0].dtype):
            x = operands[0]
            found = native.sorted_array(x, dimension) if x.size >= _WORTH_PACKING else None
            if found is not None:
                return [found]
            keys = _comparable(x)
            if _has_both_zeros(keys):
                return [np.take_along_axis(x, stable_order(keys, dimension), dimension)]
            return [np.sort(keys, axis=dimension).astype(x.dtype, copy=False)]
        keys = []
        for x in operands[:num_keys]:
            keys += [x.real, x.imag] if dtypes.is_complex(x.dtype) else [_comparable(x)]
        if len(keys) == 1:
            order = stable_order(keys[0], dimension)
        else:
            order = np.lexsort(keys[::-1], axis=dimension)
        return [np.take_along_axis(x, order, dimension) for x in operands]

    def host_work(self, *avals, dimension, is_stable, num_keys):
        return avals[0].size * (1 if len(avals) == 1 else 8 * len(avals))

    def padded(self, at, avals, operands, *, dimension, is_stable, num_keys):
        params = {"dimension": dimension, "is_stable": is_stable}
        inside = at.inside(avals[0], (dimension,))
        if inside is None:
            return self.bind(*operands, num_keys=num_keys, **params)
        is_padding = convert_element_type(not_(inside), _INT32)  # a key before all others
        return self.bind(is_padding, *operands, num_keys=num_keys + 1, **params)[1:]

    def lower(self, builder, *operands, dimension, is_stable, num_keys):
        if 0 in operands[0].shape:
            return list(operands)
        if builder.platform != "cpu":
            return _sort_with_comparator(builder, operands, dimension, is_stable, num_keys)
        if native.serves(builder) and operands[0].shape[dimension] <= native.MOST_POSITIONS:
            return _sort_natively(builder, operands, dimension, num_keys)
        if len(operands) == 1 and not dtypes.is_complex(operands[0].dtype):
            (x,) = operands
            if not dtypes.is_inexact(x.dtype):
                return [_sort_plainly(builder, x, dimension)]
        order = _emit_argsort(builder, _emit_keys(builder, operands[:num_keys]), dimension)
        return [_emit_take(builder, x, order, dimension) for x in operands]

    def jvp(self, primals, tangents, *, dimension, is_stable, num_keys):
        params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
        if all(type(t) is Zero for t in tangents):
            outs = self.bind(*primals, **params)
            return outs, [Zero.like(y) for y in outs]
        shape = aval_of(primals[0]).shape
        if 0 in shape:
            return list(primals), list(tangents)
        *outs, order = self.bind(*primals, iota(_INT32, shape, dimension), **params)
        return outs, [
            Zero.like(y) if type(t) is Zero else take_along_axis(t, order, dimension, mode=PROMISE_IN_BOUNDS)
            for y, t in zip(outs, tangents, strict=True)
        ]

    def batch(self, operands, batch_axes, *, dimension, is_stable, num_keys):
        size = batch_size(operands, batch_axes)
        moved = [batch_to_front(x, axis, size) for x, axis in zip(operands, batch_axes, strict=True)]
        outs = self.bind(*moved, dimension=dimension + 1, is_stable=is_stable, num_keys=num_keys)
        return outs, [0] * len(outs)


class TopK(Primitive):
    """The `k` largest elements along `axis`, largest first, and their indices; of equal ones the first come first.

    0 counts as larger than -0.
    """

    name = "top_k"
    is_heavy = True
    multiple_results = True

    def infer(self, x, *, k, axis):
        if not 0 <= axis < x.ndim:
            raise ValueError(f"top_k: axis {axis} is not an axis of an array of shape {x.shape}")
        if not 0 <= k <= x.shape[axis]:
            fault = "nonnegative" if k < 0 else "no larger than size along axis"
            raise ValueError(
                f"k argument to top_k must be {fault}, got k={k} with shape={list(x.shape)} and axis={axis}: it "
                f"must be between 0 and {x.shape[axis]}, the size of that axis"
            )
        if dtypes.kind(x.dtype) not in ("bool", "integer", "float"):
            raise ShapeError(f"top_k takes bool or integer or float arrays, got {x.str_short()}")
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [x.with_shape(shape), ShapedArray(shape, _INT32)]

    def lay_out(self, outs, x, *, k, axis):
        layouts.check_whole(self.name, x, (axis,), "goes along")
        return [x.spec, x.spec]

    def host(self, x, *, k, axis):
        backwards = np.invert(_total_order(_comparable(x)))
        order = np.argsort(backwards, axis=axis, kind="stable")
        order = order[(slice(None),) * axis + (slice(k),)]
        return [np.take_along_axis(x, order, axis), order.astype(np.int32)]

    def host_work(self, x, *, k, axis):
        return 8 * x.size

    def padded(self, at, avals, operands, *, k, axis):
        (x,), (aval,) = operands, avals
        if at.is_padded(k):
            at.refuse(self.name, avals, f"k is the dimension '{k}'")
        return self.bind(at.filled(x, aval, (axis,), least_of(aval.dtype)), k=at.room(k), axis=axis)

    def lower(self, builder, x, *, k, axis):
        last = x.ndim - 1
        order = (*(a for a in range(x.ndim) if a != axis), axis)
        values, indices = _emit_top_k(builder, _emit_transpose(builder, x, order), k)
        if axis == last:
            return [values, indices]
        back = tuple(int(i) for i in np.argsort(order))
        return [_emit_transpose(builder, y, back) for y in (values, indices)]

    def jvp(self, primals, tangents, *, k, axis):
        values, indices = self.bind(*primals, k=k, axis=axis)
        (dx,) = tangents
        if type(dx) is Zero:
            return [values, indices], [Zero.like(values), Zero.like(indices)]
        tangent = take_along_axis(dx, indices, axis, mode=PROMISE_IN_BOUNDS)
        return [values, indices], [tangent, Zero.like(indices)]

    def batch(self, operands, batch_axes, *, k, axis):
        x = move_axis(operands[0], batch_axes[0], 0)
        return self.bind(x, k=k, axis=axis + 1), [0, 0]


sort_p = Sort()
top_k_p = TopK()


def sort(operands: Sequence, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> list:
    """Sorts several arrays along `dimension` by the first `num_keys` of them."""
    dimension = operator.index(dimension)
    if dimension < 0:
        dimension += aval_of(operands[0]).ndim
    return sort_p.bind(
        *operands, dimension=dimension, is_stable=bool(is_stable), num_keys=operator.index(num_keys)
    )


def argsort(x, dimension: int = -1, index_dtype: Any = _INT32):
    """The indices that sort `x` along `dimension`; equal elements keep their order."""
    aval = aval_of(x)
    dimension = operator.index(dimension) % max(aval.ndim, 1)
    return sort((x, iota(dtypes.as_exact_dtype(index_dtype), aval.shape, dimension)), dimension)[1]


def top_k(x, k: int, axis: int = -1) -> list:
    """The `k` largest elements of `x` along `axis`, largest first, and their indices."""
    axis = operator.index(axis)
    return top_k_p.bind(x, k=operator.index(k), axis=axis + aval_of(x).ndim if axis < 0 else axis)


# --- on the host


def _comparable(x: np.ndarray) -> np.ndarray:
    """`x` in a dtype that NumPy sorts with NaN last."""
    if dtypes.is_inexact(x.dtype):
        return x.astype(np.float32) if x.dtype.itemsize <= 2 else x
    return x.astype(np.int8) if dtypes.itemsize_bits(x.dtype) < 8 else x


def _has_both_zeros(x: np.ndarray) -> bool:
    """Whether zeros of both signs are in `x`: NumPy's sort may change their order, though they are equal."""
    if not dtypes.is_inexact(x.dtype):
        return False
    signs = np.signbit(x[x == 0])
    return bool(signs.any() and not signs.all())


def stable_order(x: np.ndarray, axis: int) -> np.ndarray:
    """`numpy.argsort(x, axis, kind="stable")`; of long arrays natively, or by sorting keys with positions.

    NumPy sorts integers with vector instructions, but takes a merge sort where the order must be stable.
    """
    if x.shape[axis] < _WORTH_PACKING:
        return np.argsort(x, axis=axis, kind="stable")
    found = native.stable_order(x, axis)
    if found is not None:
        return found
    if x.dtype.itemsize > 4:
        return np.argsort(x, axis=axis, kind="stable")
    keys = _total_order(x + x.dtype.type(0) if dtypes.is_inexact(x.dtype) else x).astype(np.int64)
    if dtypes.is_unsigned(x.dtype):
        keys = keys - (1 << 31)  # of 32 unsigned bits the first is no sign
    positions = np.arange(x.shape[axis]).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return np.sort(keys << 32 | positions, axis=axis) & 0xFFFFFFFF


def _total_order(x: np.ndarray) -> np.ndarray:
    """Integers in the order of `x`, where -0 is less than 0 and NaN the largest."""
    if not dtypes.is_inexact(x.dtype):
        return x
    bits = np.where(np.isnan(x), np.asarray(np.nan, x.dtype), x).view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


# --- as integers

_LONG, _LEAST_GROUP = (
    1 << 16,
    32,
)  # where `top_k` looks at groups first: elements, and how many a group must have
_KEY_DTYPES = {size: np.dtype(f"i{size}") for size in (2, 4, 8)}


def _integer_key(builder, x, equal_zeros: bool = True):
    """Integers in the order of the floating point numbers `x`: all bits of negative ones but the sign are flipped."""
    if x.dtype.itemsize == 1:
        x = builder.convert(x, _FLOAT32)
    dtype = _KEY_DTYPES[x.dtype.itemsize]
    x = builder.select(builder.compare("NE", x, x), builder.constant(np.nan, x.aval), x)
    if equal_zeros:
        zero = builder.constant(0, x.aval)
        x = builder.select(builder.compare("EQ", x, zero), zero, x)
    return _flip_negative(builder, builder.op("bitcast_convert", (x,), x.aval.with_dtype(dtype)))


def _flip_negative(builder, bits):
    flipped = builder.op("xor", (bits, builder.constant(np.iinfo(bits.dtype).max, bits.aval)), bits.aval)
    return builder.select(builder.compare("LT", bits, builder.constant(0, bits.aval)), flipped, bits)


def _emit_keys(builder, operands) -> list:
    """The operands as integers of the same order, most significant first."""
    keys = []
    for x in operands:
        if dtypes.is_complex(x.dtype):
            aval = x.aval.with_dtype(dtypes.to_real_dtype(x.dtype))
            keys += [_integer_key(builder, builder.op(part, (x,), aval)) for part in ("real", "imag")]
        else:
            keys.append(_integer_key(builder, x) if dtypes.is_inexact(x.dtype) else x)
    return keys


def _sort_plainly(builder, x, dimension: int):
    if dtypes.itemsize_bits(x.dtype) < 8:  # XLA takes packed elements for whole bytes
        wide = np.dtype(np.uint8 if dtypes.is_unsigned(x.dtype) else np.int8)
        return builder.convert(_sort_plainly(builder, builder.convert(x, wide), dimension), x.dtype)
    scalar = ShapedArray((), x.dtype)
    less = builder.region((scalar, scalar), lambda inner, a, b: [inner.compare("LT", a, b)])
    attributes = f"dimension = {dimension} : i64, is_stable = true"
    return builder.op("sort", (x,), [x.aval], attributes, (less,))[0]


def _emit_argsort(builder, keys: Sequence, dimension: int):
    """The stable order of `keys`: sorted by the least significant key first, then by the next."""
    order = None
    for key in reversed(keys):
        if order is None:
            order = _emit_argsort_of_one(builder, key, dimension)
        else:
            step = _emit_argsort_of_one(builder, _emit_take(builder, key, order, dimension), dimension)
            order = _emit_take(builder, order, step, dimension)
    return order


def _emit_argsort_of_one(builder, key, dimension: int):
    position = builder.iota(ShapedArray(key.shape, _INT32), dimension)
    if dtypes.itemsize_bits(key.dtype) <= 32:
        wide = key.aval.with_dtype(_UINT64 if dtypes.is_unsigned(key.dtype) else _INT64)
        shift = builder.constant(32, wide)
        high = builder.op("shift_left", (builder.convert(key, wide.dtype), shift), wide)
        packed = builder.op("or", (high, builder.convert(position, wide.dtype)), wide)
        return builder.convert(_sort_plainly(builder, packed, dimension), _INT32)  # drops the key
    avals = [ShapedArray((), key.dtype)] * 2 + [ShapedArray((), _INT32)] * 2
    less = builder.region(avals, lambda inner, a, b, *_: [inner.compare("LT", a, b)])
    attributes = f"dimension = {dimension} : i64, is_stable = true"
    return builder.op("sort", (key, position), [key.aval, position.aval], attributes, (less,))[1]


def _emit_take(builder, x, indices, axis: int):
    """`take_along_axis` of indices in bounds."""
    others = tuple(a for a in range(x.ndim) if a != axis)
    return gather_p.lower(
        builder,
        x,
        builder.reshape(indices, (*indices.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=tuple(min(n, 1) for n in x.shape),
        mode=PROMISE_IN_BOUNDS,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=False,
    )


def _emit_transpose(builder, x, order: Sequence[int]):
    if tuple(order) == tuple(range(x.ndim)):
        return x
    aval = x.aval.with_shape(tuple(x.shape[a] for a in order))
    return builder.op("transpose", (x,), aval, f"permutation = {integers(order)}")


def _emit_top_k(builder, x, k: int):
    """`top_k` along the last axis."""
    shape = (*x.shape[:-1], k)
    indices = ShapedArray(shape, _INT32)
    if 0 in (*x.shape, k):
        return builder.constant(0, x.aval.with_shape(shape)), builder.constant(0, indices)
    if native.serves(builder, x.ndim - 1) and x.shape[-1] <= native.MOST_POSITIONS:
        rows = native.leading_count(builder, math.prod(x.shape[:-1]))
        sizes = {"batch_axes": x.ndim - 1, "rows": rows, "size": x.shape[-1], "k": k}
        wide = _emit_ordered(builder, x)
        values, where = native.call(builder, "top_k", [wide], [wide.aval.with_shape(shape), indices], **sizes)
        return builder.convert(values, x.dtype), where
    group = _group_size(x, k)
    if group:
        return _emit_top_k_by_groups(builder, x, k, group)
    if dtypes.is_inexact(x.dtype):
        x = builder.select(builder.compare("NE", x, x), builder.constant(np.nan, x.aval), x)
    exact_in_float = dtypes.is_boolean(x.dtype) or dtypes.itemsize_bits(x.dtype) <= 16
    if builder.platform == "cpu" and (
        exact_in_float or x.dtype == _FLOAT32
    ):  # XLA has a kernel for float32
        wide = builder.convert(x, _FLOAT32)
        results = [wide.aval.with_shape(shape), indices]
        values, where = builder.op("chlo.top_k", (wide,), results, f"k = {k} : i64")
        return builder.convert(values, x.dtype), where
    if builder.platform == "cpu":
        axis = x.ndim - 1
        key = x if not dtypes.is_inexact(x.dtype) else _integer_key(builder, x, equal_zeros=False)
        backwards = builder.op("not", (key,), key.aval)
        where = _emit_argsort_of_one(builder, backwards, axis)
        where = builder.cut(where, (0,) * x.ndim, shape, (1,) * x.ndim)
        return _emit_take(builder, x, where, axis), where
    return builder.op("chlo.top_k", (x,), [x.aval.with_shape(shape), indices], f"k = {k} : i64")


def _group_size(x, k: int) -> int:
    """How many elements make a group of `_emit_top_k_by_groups`; 0 if that is not worth while."""
    size = x.shape[-1]
    if is_at_most(size, _LONG - 1) or type(size) is SymbolicDimension or dtypes.itemsize_bits(x.dtype) < 8:
        return 0
    group = 1 << round(math.log2(size / k) / 2)  # as many groups as elements in k of them
    return group if group >= _LEAST_GROUP else 0


def _emit_top_k_by_groups(builder, x, k: int, group: int):
    """`top_k` of a long last axis: the k largest elements lie in the k groups with the largest maxima.

    A group with a smaller maximum, or an equal one but behind, has k elements before each of its own.
    """
    leading, size, axis = x.shape[:-1], x.shape[-1], x.ndim - 1
    key = x
    if dtypes.is_inexact(x.dtype):
        key = _integer_key(builder, x, equal_zeros=False)
    elif dtypes.is_boolean(x.dtype):
        key = builder.convert(x, np.dtype(np.uint8))
    lowest = np.iinfo(key.dtype).min
    count = -(-size // group)
    high = (0,) * axis + (count * group - size,)
    none = integers((0,) * x.ndim)
    widths = f"edge_padding_low = {none}, edge_padding_high = {integers(high)}, interior_padding = {none}"
    filler = builder.constant(lowest, ShapedArray((), key.dtype))
    filled = builder.op("pad", (key, filler), key.aval.with_shape((*leading, count * group)), widths)
    maxima = builder.reduce(builder.reshape(filled, (*leading, count, group)), lowest, "maximum", (x.ndim,))
    groups = _sort_plainly(builder, _emit_top_k(builder, maxima, k)[1], axis)

    place = ShapedArray((*leading, k, group), _INT32)
    starts = builder.op("multiply", (groups, builder.constant(group, groups.aval)), groups.aval)
    starts = builder.broadcast(starts, place.shape, range(x.ndim))
    places = builder.op("add", (starts, builder.iota(place, x.ndim)), place)
    places = builder.reshape(places, (*leading, k * group))
    is_inside = builder.compare("LT", places, builder.constant(size, places.aval))
    inside = builder.op("minimum", (places, builder.constant(size - 1, places.aval)), places.aval)
    taken = _emit_take(builder, key, inside, axis)
    candidates = builder.select(is_inside, taken, builder.constant(lowest, taken.aval))
    where = _emit_take(builder, places, _emit_top_k(builder, candidates, k)[1], axis)
    return _emit_take(builder, x, where, axis), where


def _sort_natively(builder, operands, dimension: int, num_keys: int) -> list:
    """The sort of `purax/native/sort.cc`."""
    shape = operands[0].shape
    wide = [_emit_ordered(builder, x) for x in operands]
    outs = native.call(
        builder,
        "sort",
        wide,
        [x.aval for x in wide],
        num_keys=num_keys,
        outer=math.prod(shape[:dimension]),
        size=shape[dimension],
        inner=math.prod(shape[dimension + 1 :]),
    )
    return [builder.convert(y, x.dtype) for x, y in zip(operands, outs, strict=True)]


def _emit_ordered(builder, x):
    """`x` in a dtype that native kernels know: whole bytes, and no floats of fewer than 16 bits."""
    if dtypes.is_floating(x.dtype) and x.dtype.itemsize == 1:
        return builder.convert(x, _FLOAT32)
    if (
        not dtypes.is_inexact(x.dtype)
        and dtypes.itemsize_bits(x.dtype) < 8
        and not dtypes.is_boolean(x.dtype)
    ):
        return builder.convert(x, np.dtype(np.uint8 if dtypes.is_unsigned(x.dtype) else np.int8))
    return x


def _sort_with_comparator(builder, operands, dimension: int, is_stable: bool, num_keys: int):
    """The sort of XLA on accelerators, whose kernels take any comparator."""
    keys = _emit_keys(builder, operands[:num_keys])
    arrays = (*keys, *operands)
    avals = [ShapedArray((), x.dtype) for x in arrays for _ in range(2)]
    truth = ShapedArray((), np.dtype(np.bool_))

    def is_less(inner, *values):
        less = None
        for position in reversed(range(len(keys))):
            a, b = values[2 * position], values[2 * position + 1]
            own = inner.compare("LT", a, b)
            if less is not None:
                own = inner.op("or", (own, inner.op("and", (inner.compare("EQ", a, b), less), truth)), truth)
            less = own
        return [less]

    region = builder.region(avals, is_less)
    attributes = f"dimension = {dimension} : i64, is_stable = {'true' if is_stable else 'false'}"
    return builder.op("sort", arrays, [x.aval for x in arrays], attributes, (region,))[len(keys) :]
