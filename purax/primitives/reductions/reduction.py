"""Reductions other than the sum: largest and smallest elements and where they are, products, and, or, xor.

NaN counts as the largest and as the smallest element at once, so that it is never lost; complex numbers are ordered by
real part, then by imaginary part. A reduction over no elements gives the identity of the operation.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import exceeds
from purax.core.primitive import Primitive
from purax.primitives import layouts
from purax.primitives.elementwise import extrema_on_host
from purax.primitives.elementwise.arithmetic import div
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import STREAMED, add, mul
from purax.primitives.elementwise.logic import eq
from purax.primitives.outlined import outlined
from purax.primitives.reductions.stored_reductions import find_stored, loses_nan, reduce_stored
from purax.primitives.shape.broadcasting import (
    batch_reduction,
    broadcast_in_dim,
    check_axes,
    drop_axes,
    kept_axes,
    reduce_sum,
    transpose,
)
from purax.primitives.shape.gather_scatter import gather_p
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.shape.windows import PROMISE_IN_BOUNDS, GatherDimensionNumbers
from purax.xla.stablehlo import MANY, integers

_INT32, _FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
_FEW = 16  # elements of an axis that an index is looked for one by one


class Reduction(Primitive):
    """Combines the elements of `x` along `axes` with a binary operation.

    Attributes:
        accepts: the kinds of dtypes it takes.
        opcode: the StableHLO operation that combines two elements.
        ufunc: NumPy's.
    """

    accepts: tuple[str, ...] = ("bool", "integer", "float", "complex")
    gain_of_effort = 0.25
    reads_transposes = True
    opcode: str
    ufunc: np.ufunc

    def identity(self, dtype: np.dtype) -> Any:
        """The element that changes nothing."""
        raise NotImplementedError

    def infer(self, x, *, axes):
        check_axes(self.name, x, axes)
        if dtypes.kind(x.dtype) not in self.accepts:
            raise TypeError(f"{self.name} takes {' or '.join(self.accepts)} arrays, got {x.str_short()}")
        return x.with_shape(drop_axes(x.shape, axes))

    def lay_out(self, out, x, *, axes):
        return layouts.drop(x.spec, axes)

    def host(self, x, *, axes):
        dtype = x.dtype
        if x.size == 0:
            return np.full(drop_axes(x.shape, axes), self.identity(dtype), dtype)
        if dtype in _NARROW:
            return self.ufunc.reduce(x.astype(_NARROW[dtype]), axis=axes).astype(dtype)
        return self.ufunc.reduce(x, axis=axes, dtype=dtype)

    def host_function(self, avals, params):
        (x,) = avals
        if x.size and x.dtype in _REDUCED_AS_THEY_ARE:
            axes = params["axes"]
            return self.ufunc.reduce if axes == (0,) else functools.partial(self.ufunc.reduce, axis=axes)
        return super().host_function(avals, params)

    def padded(self, at, avals, operands, *, axes):
        (x,), (aval,) = operands, avals
        return self.bind(at.filled(x, aval, axes, self.identity(aval.dtype)), axes=axes)

    def lower(self, builder, x, *, axes):
        return builder.reduce(x, self.identity(x.dtype), self.opcode, axes)

    def jvp(self, primals, tangents, *, axes):
        out = self.bind(*primals, axes=axes)
        if type(tangents[0]) is Zero:
            return out, Zero.like(out)
        return out, self.tangent(primals[0], tangents[0], out, axes)

    def tangent(self, x, dx, out, axes):
        """The tangent of the result; for reductions of numbers that have tangents."""
        return Zero.like(out)

    def batch(self, operands, batch_axes, *, axes):
        return batch_reduction(self, operands[0], batch_axes[0], axes)


# Dtypes in which NumPy does not combine: narrow floats are combined in float32, tiny integers in int8.
_REDUCED_AS_THEY_ARE = frozenset(
    map(np.dtype, ("float32", "float64", "complex64", "complex128", "int64", "uint64"))
)
_NARROW: dict[np.dtype, np.dtype] = {
    d: _FLOAT32 for d in dtypes.ALL_DTYPES if dtypes.is_floating(d) and d.itemsize <= 2
}
_NARROW |= {
    d: np.dtype(np.int8) for d in dtypes.ALL_DTYPES if dtypes.is_integer(d) and dtypes.itemsize_bits(d) < 8
}


class Extremum(Reduction):
    """The largest or smallest element. Its tangent is the mean of the tangents of the elements that are equal to it."""

    sign: int
    direction: str

    def streaming_cost(self, x, *, axes):
        return 0.5 if x.dtype in STREAMED else 0

    def identity(self, dtype):
        return lowest(dtype) if self.sign > 0 else highest(dtype)

    def lower(self, builder, x, *, axes):
        if dtypes.is_complex(x.dtype):
            return _reduce_complex(builder, x, self.identity(x.dtype), self.direction, axes)
        found = reduce_stored(builder, x, self.opcode, axes)
        if found is None:
            found = builder.reduce(x, self.identity(x.dtype), self.opcode, axes)
            if axes and loses_nan(builder, x):
                has_nan = builder.reduce(builder.compare("NE", x, x), False, "or", axes)
                found = builder.select(has_nan, builder.constant(np.nan, found.aval), found)
        return found

    def tangent(self, x, dx, out, axes):
        aval = aval_of(x)
        if aval.size == 0:
            return Zero.like(out)
        spread = broadcast_in_dim(out, aval.shape, kept_axes(aval.ndim, axes))
        chosen = convert_element_type(eq(x, spread), aval.dtype)
        return div(reduce_sum(mul(dx, chosen), axes), reduce_sum(chosen, axes))


class ReduceMax(Extremum):
    """The largest element of `x` along `axes`."""

    name = "reduce_max"
    row_operation = "row_max"
    opcode, ufunc, sign, direction = "maximum", extrema_on_host.maximum, 1, "GT"


class ReduceShift(ReduceMax):
    """The largest element, to be subtracted from all before exponentials are taken of them.

    A compiled program may lose NaN in it, which the differences show anyway; so XLA can make one kernel of the
    whole softmax, and of the products of matrices around it.
    """

    name = "reduce_shift"
    row_operation = "row_max"

    def lower(self, builder, x, *, axes):
        if dtypes.is_complex(x.dtype):
            return super().lower(builder, x, axes=axes)
        return builder.reduce(x, self.identity(x.dtype), self.opcode, axes)


class ReduceMin(Extremum):
    """The smallest element of `x` along `axes`."""

    name = "reduce_min"
    opcode, ufunc, sign, direction = "minimum", extrema_on_host.minimum, -1, "LT"


def lowest(dtype: np.dtype) -> Any:
    """The least value of a dtype, -inf where there is one."""
    if dtypes.is_complex(dtype):
        return complex(-np.inf, 0)
    if dtypes.is_boolean(dtype):
        return False
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).min)
    infinity = np.array(-np.inf).astype(dtype)
    return infinity[()] if np.isinf(infinity.astype(np.float64)) else dtypes.finfo(dtype).min


def highest(dtype: np.dtype) -> Any:
    """The greatest value of a dtype, inf where there is one."""
    if dtypes.is_complex(dtype):
        return complex(np.inf, 0)
    if dtypes.is_boolean(dtype):
        return True
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).max)
    infinity = np.array(np.inf).astype(dtype)
    return infinity[()] if np.isinf(infinity.astype(np.float64)) else dtypes.finfo(dtype).max


def _reduce_complex(builder, x, initial, direction: str, axes):
    """The largest (direction "GT") or smallest ("LT") complex number by (real, imaginary); NaN wins."""
    scalar = ShapedArray((), x.dtype)
    part = ShapedArray((), dtypes.to_real_dtype(x.dtype))
    truth = ShapedArray((), np.dtype(np.bool_))

    def is_before(inner, a, b):
        real_a, real_b = inner.op("real", (a,), part), inner.op("real", (b,), part)
        imag_a, imag_b = inner.op("imag", (a,), part), inner.op("imag", (b,), part)
        tie = inner.compare("EQ", real_a, real_b)
        by_imag, by_real = inner.compare(direction, imag_a, imag_b), inner.compare(direction, real_a, real_b)
        wins = inner.select(tie, by_imag, by_real)
        wins = inner.op("and", (wins, inner.compare("EQ", b, b)), truth)  # a NaN in b wins over a number in a
        return inner.op("or", (inner.compare("NE", a, a), wins), truth)

    body = builder.region((scalar, scalar), lambda inner, a, b: [inner.select(is_before(inner, a, b), a, b)])
    start = builder.constant(initial, scalar)
    attributes = f"dimensions = {integers(axes)}"
    return builder.op("reduce", (x, start), x.aval.with_shape(drop_axes(x.shape, axes)), attributes, (body,))


class ReduceProd(Reduction):
    """The product of the elements of `x` along `axes`."""

    name = "reduce_prod"
    accepts = ("integer", "float", "complex")
    opcode, ufunc = "multiply", np.multiply

    def identity(self, dtype):
        return 1

    def lower(self, builder, x, *, axes):
        if dtypes.is_floating(x.dtype) and x.dtype.itemsize <= 2:
            wide = builder.convert(x, _FLOAT32)
            return builder.convert(builder.reduce(wide, 1, "multiply", axes), x.dtype)
        return builder.reduce(x, 1, "multiply", axes)

    def tangent(self, x, dx, out, axes):
        aval = aval_of(x)
        kept = kept_axes(aval.ndim, axes)
        order = (*axes, *kept)
        shape = (-1, *(aval.shape[axis] for axis in kept))
        size = 1
        for axis in axes:
            size *= aval.shape[axis]
        x, dx = (reshape(transpose(v, order), (size, *shape[1:])) for v in (x, dx))
        if aval.size == 0:
            return Zero.like(out)
        # Halves are multiplied until one row is left, (ab)' = a'b + ab', which never divides by an element.
        while size > 1:
            half = size // 2
            (a, b, rest), (da, db, drest) = (
                (
                    slice_axis(v, 0, half, 0),
                    slice_axis(v, half, 2 * half, 0),
                    slice_axis(v, 2 * half, size, 0),
                )
                for v in (x, dx)
            )
            x, dx = mul(a, b), add(mul(da, b), mul(a, db))
            if size % 2:
                x, dx = concatenate((x, rest), 0), concatenate((dx, drest), 0)
            size -= half
        return reshape(dx, shape[1:])


class Bitwise(Reduction):
    """A reduction of booleans or of the bits of integers; it has no derivative."""

    accepts = ("bool", "integer")

    def infer(self, x, *, axes):
        return super().infer(x, axes=axes).strip_weak_type()


class ReduceAnd(Bitwise):
    """Whether all elements of `x` along `axes` are true; for integers, bit by bit."""

    name = "reduce_and"
    opcode, ufunc = "and", np.bitwise_and

    def identity(self, dtype):
        return highest(dtype) if dtypes.is_unsigned(dtype) or dtypes.is_boolean(dtype) else -1


class ReduceOr(Bitwise):
    """Whether any element of `x` along `axes` is true; for integers, bit by bit."""

    name = "reduce_or"
    opcode, ufunc = "or", np.bitwise_or

    def identity(self, dtype):
        return 0


class ReduceXor(Bitwise):
    """Whether an odd number of elements of `x` along `axes` are true; for integers, bit by bit."""

    name = "reduce_xor"
    opcode, ufunc = "xor", np.bitwise_xor

    def identity(self, dtype):
        return 0


# --- where the extremum is


class ArgExtremum(Primitive):
    """The index of the first largest or smallest element along one axis; the first NaN, if there is one."""

    opcode: str

    def streaming_cost(self, x, *, axes, index_dtype):
        return 0.5 if x.dtype in STREAMED and axes[0] == x.ndim - 1 else 0

    def infer(self, x, *, axes, index_dtype):
        check_axes(self.name, x, axes)
        if len(axes) != 1:
            raise ValueError(
                f"{self.name} works along one axis, got axes {axes} of an array of shape {x.shape}"
            )
        if dtypes.kind(x.dtype) not in ("bool", "integer", "float"):
            raise TypeError(f"{self.name} takes bool or integer or float arrays, got {x.str_short()}")
        if not dtypes.is_integer(index_dtype):
            raise TypeError(
                f"{self.name}: index_dtype must be an integer dtype, got {dtypes.dtype_name(index_dtype)}"
            )
        size = x.shape[axes[0]]
        if size == 0:
            raise ValueError(
                f"{self.name} of an empty axis: argmin and argmax require non-empty reduced dimension. "
                f"operand.shape={x.shape} axis={axes[0]}"
            )
        if exceeds(size - 1, dtypes.iinfo(index_dtype).max):
            raise OverflowError(
                f"{self.name}: index_dtype {dtypes.dtype_name(index_dtype)} does not hold the indices of axis "
                f"{axes[0]} of an array of shape {x.shape}; use a wider one"
            )
        return ShapedArray(drop_axes(x.shape, axes), index_dtype)

    def lay_out(self, out, x, *, axes, index_dtype):
        return layouts.drop(x.spec, axes)

    def padded(self, at, avals, operands, *, axes, index_dtype):
        (x,), (aval,) = operands, avals
        least = lowest(aval.dtype) if self.opcode == "maximum" else highest(aval.dtype)
        # Of equal elements the first counts, and padding comes last.
        return self.bind(at.filled(x, aval, axes, least), axes=axes, index_dtype=index_dtype)

    def lower(self, builder, x, *, axes, index_dtype):
        (axis,) = axes
        if builder.platform != "cpu" or builder.module.mesh is not None:
            return self.emit_pairs(builder, x, axis, index_dtype)
        found = find_stored(builder, x, axis, self.opcode == "maximum", index_dtype)
        if found is not None:
            return found
        if 1 < x.shape[axis] <= _FEW and x.aval.size >= MANY and builder.module.keep_calls:
            # In a function of its own, so that `x` is computed once; and in one long row, which is faster.
            def emit(inner, row):
                return self.emit_one_by_one(inner, inner.reshape(row, x.shape), axis, index_dtype)

            row = builder.reshape(x, (x.aval.size,))
            out = self.infer(x.aval, axes=axes, index_dtype=index_dtype)
            return outlined(builder, self.name, (row,), out, (x.shape, axis, index_dtype), emit, alone=True)
        if not dtypes.is_inexact(x.dtype) or x.aval.size < _FORGETS_NAN:
            return self.emit_blocks(builder, x, axis, index_dtype)
        # The sum is NaN if an element is (or if there are both infinities, which costs time but no correctness).
        total = builder.reduce(x, 0, "add", range(x.ndim))
        has_nan = builder.convert(builder.compare("NE", total, total), _INT32)
        branches = (
            builder.region((), lambda inner: [self.emit_blocks(inner, x, axis, index_dtype)]),
            builder.region((), lambda inner: [self.emit_pairs(inner, x, axis, index_dtype)]),
        )
        out = ShapedArray(drop_axes(x.shape, axes), index_dtype)
        return builder.op("case", (has_nan,), out, regions=branches)

    def emit_blocks(self, builder, x, axis: int, index_dtype: np.dtype):
        """The extremum and then where it is, for elements of which none is NaN, or which are few."""
        size = x.shape[axis]
        block = _block_size(size)
        if block == 1 or 0 in x.shape:
            best = self.emit_extremum(builder, x, axis)
            return _first_equal(builder, x, best, axis, index_dtype)
        # Blocks of about √n elements: the extremum of each block, the first block that has the extremum of all, and
        # then the first such element in that block, so that most elements are read once.
        blocks = builder.reshape(
            x, (math.prod(x.shape[:axis]), size // block, block, math.prod(x.shape[axis + 1 :]))
        )
        of_block = self.emit_extremum(builder, blocks, 2)
        best = self.emit_extremum(builder, of_block, 1)
        which = _first_equal(builder, of_block, best, 1, _INT32)
        chosen = _take_blocks(builder, blocks, which)
        inside = _first_equal(builder, chosen, best, 2, _INT32)
        start = builder.op("multiply", (which, builder.constant(block, which.aval)), which.aval)
        index = builder.op("add", (start, inside), which.aval)
        return builder.convert(builder.reshape(index, drop_axes(x.shape, (axis,))), index_dtype)

    def emit_one_by_one(self, builder, x, axis: int, index_dtype: np.dtype):
        """Elements of a short axis one after the other: a loop over rows, not over their elements."""
        out = self.infer(x.aval, axes=(axis,), index_dtype=index_dtype)

        def element(place: int):
            starts, limits = [0] * x.ndim, list(x.shape)
            starts[axis], limits[axis] = place, place + 1
            bounds = f"start_indices = {integers(starts)}, limit_indices = {integers(limits)}"
            row = x.aval.with_shape((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
            return builder.reshape(
                builder.op("slice", (x,), row, f"{bounds}, strides = {integers([1] * x.ndim)}"), out.shape
            )

        best, index = element(0), builder.constant(0, out)
        for place in range(1, x.shape[axis]):
            own = element(place)
            if dtypes.is_inexact(x.dtype):  # NaN wins, and the first one stays
                worse = builder.compare("LE" if self.opcode == "maximum" else "GE", own, best)
                is_better = builder.op("not", (worse,), worse.aval)
                is_better = builder.op("and", (is_better, builder.compare("EQ", best, best)), worse.aval)
            else:
                is_better = builder.compare("GT" if self.opcode == "maximum" else "LT", own, best)
            best = builder.select(is_better, own, best)
            index = builder.select(is_better, builder.constant(place, out), index)
        return index

    def emit_pairs(self, builder, x, axis: int, index_dtype: np.dtype):
        """One reduction of pairs (value, index), which reads every element once: best on GPUs."""
        value, index, truth = (
            ShapedArray((), x.dtype),
            ShapedArray((), index_dtype),
            ShapedArray((), np.dtype(bool)),
        )
        direction = "GT" if self.opcode == "maximum" else "LT"

        def better(inner, a, a_index, b, b_index):
            """The pair with the better value, NaN being best of all, or else with the lesser index."""
            wins, ties = inner.compare(direction, a, b), inner.compare("EQ", a, b)
            if dtypes.is_inexact(x.dtype):
                a_is_nan, b_is_nan = inner.compare("NE", a, a), inner.compare("NE", b, b)
                b_is_number = inner.op("not", (b_is_nan,), truth)
                beats_number = inner.op("and", (a_is_nan, b_is_number), truth)
                wins = inner.op("or", (wins, beats_number), truth)
                ties = inner.op("or", (ties, inner.op("and", (a_is_nan, b_is_nan), truth)), truth)
            first = inner.op("and", (ties, inner.compare("LT", a_index, b_index)), truth)
            wins = inner.op("or", (wins, first), truth)
            return [inner.select(wins, a, b), inner.select(wins, a_index, b_index)]

        initial = lowest(x.dtype) if self.opcode == "maximum" else highest(x.dtype)
        body = builder.region((value, index, value, index), better)
        indices = builder.iota(ShapedArray(x.shape, index_dtype), axis)
        last = builder.constant(int(dtypes.iinfo(index_dtype).max), index)
        kept = drop_axes(x.shape, (axis,))
        _, found = builder.op(
            "reduce",
            (x, indices, builder.constant(initial, value), last),
            [x.aval.with_shape(kept), ShapedArray(kept, index_dtype)],
            f"dimensions = {integers((axis,))}",
            (body,),
        )
        return found

    def emit_extremum(self, builder, x, axis: int):
        initial = lowest(x.dtype) if self.opcode == "maximum" else highest(x.dtype)
        return builder.reduce(x, initial, self.opcode, (axis,))

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        return out, Zero.like(out)

    def batch(self, operands, batch_axes, *, axes, index_dtype):
        return batch_reduction(self, operands[0], batch_axes[0], axes, index_dtype=index_dtype)


def _first_equal(builder, x, best, axis: int, index_dtype: np.dtype):
    """The least index along `axis` at which `x` equals `best` or is NaN; there is one in each row."""
    found = builder.compare("EQ", x, builder.broadcast(best, x.shape, kept_axes(x.ndim, (axis,))))
    if dtypes.is_inexact(x.dtype):
        found = builder.op("or", (found, builder.compare("NE", x, x)), found.aval)
    indices = builder.iota(ShapedArray(x.shape, index_dtype), axis)
    last = int(dtypes.iinfo(index_dtype).max)
    return builder.reduce(
        builder.select(found, indices, builder.constant(last, indices.aval)), last, "minimum", (axis,)
    )


def _take_blocks(builder, blocks, which):
    """From (A, n, B, C) and indices (A, C) into n: the blocks as (A, C, B)."""
    return gather_p.lower(
        builder,
        blocks,
        builder.reshape(which, (*which.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((2,), (1,), (1,), (0, 3), (0, 1)),
        slice_sizes=(1, 1, blocks.shape[2], 1),
        mode=PROMISE_IN_BOUNDS,
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=False,
    )


_FORGETS_NAN = (
    1024  # elements; of so many XLA's own maximum and minimum may be a number though one is NaN
)


@functools.cache
def _block_size(size: int) -> int:
    """The divisor of `size` next to its square root; 1 if there is none that helps."""
    if size < 64:
        return 1
    root = math.isqrt(size)
    below = next(d for d in range(root, 0, -1) if size % d == 0)
    return below if 8 * below >= root else 1


class Argmax(ArgExtremum):
    """The index of the first largest element of `x` along an axis."""

    name = "argmax"
    opcode = "maximum"

    def host(self, x, *, axes, index_dtype):
        if x.dtype in _NARROW:
            x = x.astype(_NARROW[x.dtype])
        return np.asarray(x.argmax(axes[0])).astype(index_dtype)


class Argmin(ArgExtremum):
    """The index of the first smallest element of `x` along an axis."""

    name = "argmin"
    opcode = "minimum"

    def host(self, x, *, axes, index_dtype):
        if x.dtype in _NARROW:
            x = x.astype(_NARROW[x.dtype])
        return np.asarray(x.argmin(axes[0])).astype(index_dtype)


reduce_max_p = ReduceMax()
reduce_shift_p = ReduceShift()
reduce_min_p = ReduceMin()
reduce_prod_p = ReduceProd()
reduce_and_p = ReduceAnd()
reduce_or_p = ReduceOr()
reduce_xor_p = ReduceXor()
argmax_p = Argmax()
argmin_p = Argmin()


def reduce_max(x, axes: Sequence[int]):
    """The largest element of `x` along `axes`."""
    return reduce_max_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_shift(x, axes: Sequence[int]):
    """The largest element of `x` along `axes`, for exponentials: see `ReduceShift`."""
    return reduce_shift_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_min(x, axes: Sequence[int]):
    """The smallest element of `x` along `axes`."""
    return reduce_min_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_prod(x, axes: Sequence[int]):
    """The product of the elements of `x` along `axes`."""
    return reduce_prod_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_and(x, axes: Sequence[int]):
    """Whether all elements of `x` along `axes` are true; for integers, bit by bit."""
    return reduce_and_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_or(x, axes: Sequence[int]):
    """Whether any element of `x` along `axes` is true; for integers, bit by bit."""
    return reduce_or_p.bind(x, axes=tuple(axes)) if axes else x


def reduce_xor(x, axes: Sequence[int]):
    """Whether an odd number of elements of `x` along `axes` are true; for integers, bit by bit."""
    return reduce_xor_p.bind(x, axes=tuple(axes)) if axes else x


def argmax(x, axis: int, index_dtype: Any):
    """The index of the first largest element of `x` along `axis`."""
    return argmax_p.bind(x, axes=(operator.index(axis),), index_dtype=dtypes.as_exact_dtype(index_dtype))


def argmin(x, axis: int, index_dtype: Any):
    """The index of the first smallest element of `x` along `axis`."""
    return argmin_p.bind(x, axes=(operator.index(axis),), index_dtype=dtypes.as_exact_dtype(index_dtype))
