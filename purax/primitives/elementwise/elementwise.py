"""`Elementwise`, the family of operations that act on each element by itself, and the three its rules are made of.

Operands have one dtype. A scalar meets every element of the others; these have as many axes each, and along an axis of
size 1 an operand is repeated. The functions take Python numbers beside an array, of whose dtype they become.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.primitive import Primitive, is_linear
from purax.primitives import layouts
from purax.primitives.shape.broadcasting import batch_size, batch_to_front, broadcast_in_dim, sum_to_shape
from purax.xla.array import constant

Shape = tuple[int, ...]


class Elementwise(Primitive):
    """An operation that acts on each element by itself.

    Attributes:
        accepts: the kinds of dtypes it takes: any of "bool", "integer", "float", "complex", "extended".
        opcode: the StableHLO operation, the name itself unless given.
        cost: of one element on the host, in units of an addition.
        streams: the cost of one element where NumPy works at about the speed of memory (see `streaming_cost`).
        meets_unevenly: whether `tangent` takes operands of unlike shapes; without, they are repeated to one before it.

    A differentiable one gives either `derivative` (of one operand) or `tangent` (the part of the result's tangent
    that comes from one operand); with neither, its tangent is zero.
    """

    accepts: tuple[str, ...] = ("integer", "float", "complex")
    opcode = ""
    cost = 1
    streams: float = 0
    meets_unevenly = False
    keeps_ends = True

    def infer(self, *avals):
        dtype = avals[0].dtype
        weak = True
        for aval in avals:
            if aval.dtype != dtype:
                raise TypeError(
                    f"{self.name} needs operands of one dtype, got {', '.join(a.str_short() for a in avals)}; "
                    "convert them with `.astype`"
                )
            weak = weak and aval.weak_type
        shape = self.shape_of([aval.shape for aval in avals])
        if dtypes.kind(dtype) not in self.accepts:
            raise TypeError(
                f"{self.name} takes {' or '.join(self.accepts)} arrays, got dtype {dtypes.dtype_name(dtype)}"
            )
        result = self.result_dtype(dtype)
        return ShapedArray(shape, result, weak and result != np.bool_)  # booleans are never weak

    def shape_of(self, shapes: Sequence[Shape]) -> Shape:
        """The shape of the result for operands of these shapes."""
        try:
            return common_shape(shapes)
        except ValueError:
            raise TypeError(
                f"{self.name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}; they must have "
                "as many axes, whose sizes are equal or 1, or be scalar"
            ) from None

    def lay_out(self, out, *avals, **params):
        return layouts.merged(self.name, avals, out.shape)

    def result_dtype(self, dtype):
        """The dtype of the result for operands of `dtype`."""
        return dtype

    def lower(self, builder, *operands, **params):
        return self.emit(builder, *same_shape(builder, operands), **params)

    def emit(self, builder, *operands, **params):
        """`lower` for operands of equal shapes."""
        aval = ShapedArray(operands[0].shape, self.result_dtype(operands[0].dtype))
        return builder.op(self.opcode or self.name, operands, aval)

    def derivative(self, out, *primals):
        """The derivative at the operand, where the result is `out`."""
        return None

    def tangent(self, position: int, dx, out, *primals):
        """What the tangent `dx` of the operand at `position` adds to the tangent of the result."""
        derivative = self.derivative(out, *primals)
        return Zero(aval_of(dx)) if derivative is None else mul(dx, derivative)

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        shape = aval_of(out).shape
        if len(primals) > 1 and not self.meets_unevenly and is_uneven([aval_of(x).shape for x in primals]):
            primals = [spread(x, shape) for x in primals]
            tangents = [dx if type(dx) is Zero else spread(dx, shape) for dx in tangents]
        total = None
        for position, dx in enumerate(tangents):
            if type(dx) is not Zero:
                part = self.tangent(position, dx, out, *primals, **params)
                if type(part) is not Zero:
                    total = part if total is None else add(total, part)
        if total is None:
            return out, Zero.like(out)
        return out, broadcast_in_dim(total, shape, range(aval_of(total).ndim))

    def batch(self, operands, batch_axes, **params):
        return batch_elementwise(self, operands, batch_axes, params)

    def host_work(self, *avals, **params):
        if avals[0].dtype in _SUB_BYTE:  # NumPy has few operations on these
            return sys.maxsize
        return self.cost * super().host_work(*avals, **params)

    def streaming_cost(self, *avals, **params):
        return self.streams if avals[-1].dtype in STREAMED else 0


# Dtypes with loops in NumPy that use vector instructions.
STREAMED = frozenset(
    map(np.dtype, "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
)
_SUB_BYTE = tuple(dtype for dtype in dtypes.ALL_DTYPES if dtypes.itemsize_bits(dtype) < 8)


def widely(function, x: np.ndarray) -> np.ndarray:
    """`function(x)`, computed in float32 for narrower floats and rounded once."""
    if x.dtype.itemsize >= 4:
        return function(x)
    return function(x.astype(np.float32)).astype(x.dtype)


def is_uneven(shapes: Sequence[Shape]) -> bool:
    """Whether shapes differ, scalars aside."""
    first = next((shape for shape in shapes if shape), ())
    return any(shape and shape != first for shape in shapes)


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape of operands that meet element by element: scalars, and arrays with axes of equal size or size 1."""
    arrays = {shape for shape in shapes if shape}
    if len(arrays) < 2:
        return arrays.pop() if arrays else ()
    result = []
    for sizes in zip(*arrays, strict=True):  # a ValueError for unlike numbers of axes
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise ValueError("sizes differ")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def spread(x, shape: Shape):
    """An operand repeated to `shape` along its axes of size 1; a scalar stays one."""
    own = aval_of(x).shape
    return x if not own or own == shape else broadcast_in_dim(x, shape, range(len(shape)))


def same_shape(builder, operands):
    """Repeats operands over the shape of all."""
    shape = common_shape([x.shape for x in operands])
    return [builder.broadcast(x, shape, range(x.ndim)) for x in operands]


def batch_elementwise(primitive: Primitive, operands, batch_axes, params):
    """The `batch` rule of operations on elements whose operands have equal shapes or are scalars."""
    first = next(axis for axis in batch_axes if axis is not None)
    ndim = max(aval_of(x).ndim - (axis is not None) for x, axis in zip(operands, batch_axes, strict=True))
    if all(
        aval_of(x).ndim == 0 if axis is None else axis == first and aval_of(x).ndim == ndim + 1
        for x, axis in zip(operands, batch_axes, strict=True)
    ):
        return primitive.bind(*operands, **params), first
    size = batch_size(operands, batch_axes)
    moved = []
    for x, axis in zip(operands, batch_axes, strict=True):
        if axis is None and aval_of(x).ndim == 0:
            moved.append(x)
            continue
        x = batch_to_front(x, axis, size)
        if aval_of(x).ndim == 1 and ndim > 0:  # a batch of scalars meets a batch of arrays
            shape = next(
                tuple(n for i, n in enumerate(aval_of(y).shape) if i != a)
                for y, a in zip(operands, batch_axes, strict=True)
                if aval_of(y).ndim - (a is not None) == ndim
            )
            x = broadcast_in_dim(x, (size, *shape), (0,))
        moved.append(x)
    return primitive.bind(*moved, **params), 0


class Add(Elementwise):
    """x + y"""

    name = "add"
    is_linear = True
    is_cheap_to_repeat = True
    row_operation = "add"
    host = np.add
    streams = 1
    meets_unevenly = True

    def tangent(self, position, dx, out, x, y):
        return dx

    def transpose(self, cotangent, x, y):
        return tuple(sum_to_shape(cotangent, v.shape) if is_linear(v) else None for v in (x, y))


class Mul(Elementwise):
    """x · y"""

    name = "mul"
    is_bilinear = True
    is_cheap_to_repeat = True
    row_operation = "mul"
    opcode = "multiply"
    host = np.multiply
    streams = 1
    meets_unevenly = True

    def tangent(self, position, dx, out, x, y):
        return mul(dx, y) if position == 0 else mul(x, dx)

    def transpose(self, cotangent, x, y):
        if is_linear(x):
            return sum_to_shape(mul(cotangent, y), x.shape), None
        return None, sum_to_shape(mul(x, cotangent), y.shape)


class Neg(Elementwise):
    """−x"""

    name = "neg"
    is_linear = True
    preserves_zero = True
    is_cheap_to_repeat = True
    row_operation = "neg"
    opcode = "negate"
    host = np.negative
    streams = 1

    def tangent(self, position, dx, out, x):
        return neg(dx)

    def transpose(self, cotangent, x):
        return (neg(cotangent),)


add_p = Add()
mul_p = Mul()
neg_p = Neg()


def binary(primitive: Primitive) -> Callable[[Any, Any], Any]:
    """The function x, y ↦ an operation on two arrays, one of which may be a Python number."""
    bind = primitive.bind

    def apply(x, y):
        return bind(*alike(x, y))

    apply.__name__ = apply.__qualname__ = primitive.name
    apply.__doc__ = primitive.__doc__
    return apply


def alike(x, y):
    """`x` and `y`, where a Python number takes the dtype of the other."""
    if type(y) in _NUMBERS:
        return x, number_like(y, x)
    if type(x) in _NUMBERS:
        return number_like(x, y), y
    return x, y


_NUMBERS = (bool, int, float, complex)

add = binary(add_p)
mul = binary(mul_p)
neg = neg_p.bind


def number_like(number, x):
    """A Python number as a scalar of the dtype of `x`, weak if that is."""
    aval = aval_of(x)
    return constant(number, aval.dtype, aval.weak_type)
