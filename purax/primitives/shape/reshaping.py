"""Putting the elements of arrays in another order or frame: `reshape`, `squeeze`, `expand_dims`, `concatenate`,
`stack`, `split`, `tile`, `rev`; and `iota`, which counts along an axis.

All but `iota` are linear, and each one's transpose is another of them (or a sum, for `tile`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, aval_of
from purax.core.primitive import Primitive, is_linear
from purax.errors import ShapeError
from purax.primitives import layouts
from purax.primitives.elementwise.elementwise import STREAMED
from purax.primitives.shape.broadcasting import (
    Linear,
    batch_size,
    batch_to_front,
    broadcast_in_dim,
    check_axes,
    drop_axes,
    materialize,
    move_axis,
    reduce_sum,
    transpose,
)
from purax.xla.aligned_memory import SMALL, aligned_empty
from purax.xla.stablehlo import integers


class Reshape(Linear):
    """The elements of `x`, read row by row after reordering its axes to `dimensions`, in the frame `new_sizes`."""

    name = "reshape"
    moves_elements = True
    is_cheap_to_repeat = True
    is_fused = False
    host_is_cheap = True

    def infer(self, x, *, new_sizes, dimensions):
        if any(n < 0 for n in new_sizes) or math.prod(new_sizes) != x.size:
            negative = "new_sizes must all be positive, got " if any(n < 0 for n in new_sizes) else ""
            fault = negative or "total size must be unchanged, got new_sizes "
            raise ShapeError(
                f"reshape {fault}{new_sizes}: an array of shape {x.shape} has {x.size} elements, which do not fit the "
                f"shape {new_sizes}; the sizes must be known, not negative, and have the product {x.size}"
            )
        if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
            raise ShapeError(
                "reshape dimensions must be a permutation of operand dimensions, got dimensions "
                f"{dimensions} for shape {x.shape}."
            )
        return x.with_shape(new_sizes)

    def lay_out(self, out, x, *, new_sizes, dimensions):
        return layouts.reshaped(x, new_sizes, dimensions, x.layout.mesh)

    def host(self, x, *, new_sizes, dimensions):
        return (x if dimensions is None else np.transpose(x, dimensions)).reshape(new_sizes)

    def padded(self, at, avals, operands, *, new_sizes, dimensions):
        (x,), shape = operands, avals[0].shape
        if dimensions is not None:
            x, shape = transpose(x, dimensions), tuple(shape[axis] for axis in dimensions)
        return at.reshaped(x, shape, new_sizes)

    def lower(self, builder, x, *, new_sizes, dimensions):
        if dimensions is not None:
            shape = tuple(x.shape[axis] for axis in dimensions)
            x = builder.op(
                "transpose", (x,), x.aval.with_shape(shape), f"permutation = {integers(dimensions)}"
            )
        return builder.reshape(x, new_sizes)

    def transpose(self, cotangent, x, *, new_sizes, dimensions):
        if dimensions is None:
            return (reshape(cotangent, x.shape),)
        ordered = reshape(cotangent, tuple(x.shape[axis] for axis in dimensions))
        return (transpose(ordered, tuple(int(axis) for axis in np.argsort(dimensions))),)

    def batch(self, operands, batch_axes, *, new_sizes, dimensions):
        x = move_axis(operands[0], batch_axes[0], 0)
        moved = None if dimensions is None else (0, *(axis + 1 for axis in dimensions))
        return reshape(x, (aval_of(x).shape[0], *new_sizes), moved), 0


class Squeeze(Linear):
    """`x` without the axes `dimensions`, which have size 1."""

    name = "squeeze"
    keeps_ends = True
    moves_elements = True
    is_cheap_to_repeat = True
    is_fused = False
    host_is_cheap = True

    def infer(self, x, *, dimensions):
        check_axes(self.name, x, dimensions)
        if any(x.shape[axis] != 1 for axis in dimensions):
            raise ValueError(
                "squeeze: cannot select an axis to squeeze out which has size not equal to one, got "
                f"shape={x.shape} and dimensions={dimensions}"
            )
        return x.with_shape(drop_axes(x.shape, dimensions))

    def lay_out(self, out, x, *, dimensions):
        return layouts.drop(x.spec, dimensions)

    def host(self, x, *, dimensions):
        return x.squeeze(dimensions)

    def lower(self, builder, x, *, dimensions):
        return builder.reshape(x, drop_axes(x.shape, dimensions))

    def transpose(self, cotangent, x, *, dimensions):
        return (expand_dims(cotangent, dimensions),)

    def batch(self, operands, batch_axes, *, dimensions):
        (x,), (batch_axis,) = operands, batch_axes
        moved = tuple(axis + (axis >= batch_axis) for axis in dimensions)
        return squeeze(x, moved), batch_axis - sum(axis < batch_axis for axis in moved)


class Concatenate(Linear):
    """The operands one after the other along the axis `dimension`."""

    name = "concatenate"
    moves_elements = True
    is_fused = False

    def infer(self, *avals, dimension):
        if not avals:
            raise ValueError("concatenate needs at least one array")
        first = avals[0]
        _check_one_dtype(self.name, avals)
        if not 0 <= dimension < first.ndim:
            raise ValueError(
                f"concatenate dimension out of bounds: dimension {dimension} for shapes "
                + ", ".join(str(x.shape) for x in avals)
                + ("; scalars need an axis first: `x[None]`" if not first.ndim else "")
            )
        rest = drop_axes(first.shape, (dimension,))
        if any(x.ndim != first.ndim or drop_axes(x.shape, (dimension,)) != rest for x in avals):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
                "concatenated: "
                f"concatenating along dimension {dimension} for shapes {', '.join(str(x.shape) for x in avals)}."
            )
        total = sum(x.shape[dimension] for x in avals)
        shape = (*first.shape[:dimension], total, *first.shape[dimension + 1 :])
        return ShapedArray(shape, first.dtype, all(x.weak_type for x in avals))

    def lay_out(self, out, *avals, dimension):
        specs = zip(*[aval.spec for aval in avals], strict=True)
        return [layouts.one_of(self.name, avals, entries) for entries in specs]

    def host(self, *operands, dimension):
        return np.concatenate(operands, dimension)

    def host_function(self, avals, params):
        aval, axis = self.infer(*avals, **params), params["dimension"]
        if dtypes.is_extended(aval.dtype) or aval.size * aval.dtype.itemsize <= SMALL:
            return lambda *operands: np.concatenate(operands, axis)
        return lambda *operands: np.concatenate(operands, axis, aligned_empty(aval.shape, aval.dtype))

    def streaming_cost(self, *avals, dimension):
        return 0.5 if avals[0].dtype in STREAMED else 0

    def padded(self, at, avals, operands, *, dimension):
        if not any(at.is_padded(aval.shape[dimension]) for aval in avals[:-1]):
            joined = self.bind(*operands, dimension=dimension) if len(operands) > 1 else operands[0]
            return at.fit(joined, self.infer(*avals, dimension=dimension).shape)
        return at.joined(operands, avals, dimension)

    def lower(self, builder, *operands, dimension):
        if len(operands) == 1:
            return operands[0]
        dtype = operands[0].dtype
        if (
            dtypes.is_integer(dtype) and dtypes.itemsize_bits(dtype) < 8
        ):  # XLA cannot copy packed elements
            wide = np.dtype(np.uint8 if dtypes.is_unsigned(dtype) else np.int8)
            operands = [builder.convert(x, wide) for x in operands]
        aval = self.infer(*[x.aval for x in operands], dimension=dimension)
        joined = builder.op("concatenate", operands, aval, f"dimension = {dimension} : i64")
        return builder.convert(joined, dtype)

    def transpose(self, cotangent, *operands, dimension):
        parts = split(cotangent, [x.shape[dimension] for x in operands], dimension)
        return tuple(part if is_linear(x) else None for x, part in zip(operands, parts, strict=True))

    def batch(self, operands, batch_axes, *, dimension):
        size = batch_size(operands, batch_axes)
        moved = [batch_to_front(x, axis, size) for x, axis in zip(operands, batch_axes, strict=True)]
        return concatenate(moved, dimension + 1), 0

    def host_work(self, *avals, **params):
        return sum(x.size for x in avals)


def _side_by_side(shape: tuple[int, ...], dtype: Any, places: list, *operands: np.ndarray) -> np.ndarray:
    """`np.stack` of few arrays, with the places known."""
    is_small = math.prod(shape) * dtype.itemsize <= SMALL
    out = np.empty(shape, dtype) if is_small else aligned_empty(shape, dtype)
    for place, x in zip(places, operands, strict=True):
        out[place] = x
    return out


class Stack(Linear):
    """The operands, all of one shape, side by side along a new axis."""

    name = "stack"
    keeps_ends = True
    moves_elements = True

    def infer(self, *avals, axis):
        if not avals:
            raise ValueError("stack needs at least one array")
        first = avals[0]
        _check_one_dtype(self.name, avals)
        if any(x.shape != first.shape for x in avals):
            raise TypeError(f"stack needs arrays of one shape, got {', '.join(str(x.shape) for x in avals)}")
        if not 0 <= axis <= first.ndim:
            raise ValueError(f"stack: axis {axis} is not a position of a new axis in the shape {first.shape}")
        shape = (*first.shape[:axis], len(avals), *first.shape[axis:])
        return ShapedArray(shape, first.dtype, all(x.weak_type for x in avals))

    def lay_out(self, out, *avals, axis):
        entries = layouts.merged(self.name, avals, avals[0].shape)
        return (*entries[:axis], None, *entries[axis:])

    def host(self, *operands, axis):
        return np.stack(operands, axis)

    def streaming_cost(self, *avals, axis):
        return 0.5 if avals[0].dtype in STREAMED else 0

    def host_function(self, avals, params):
        axis = params["axis"]
        aval = self.infer(*avals, axis=axis)
        if len(avals) > 8 or dtypes.is_extended(aval.dtype):
            return super().host_function(avals, params)
        places = [(*(slice(None),) * axis, i, ...) for i in range(len(avals))]
        return functools.partial(_side_by_side, aval.shape, aval.dtype, places)

    def lower(self, builder, *operands, axis):
        shape = operands[0].shape
        parts = [builder.reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in operands]
        return concatenate_p.lower(builder, *parts, dimension=axis)

    def transpose(self, cotangent, *operands, axis):
        parts = split(cotangent, [1] * len(operands), axis)
        return tuple(
            squeeze(part, (axis,)) if is_linear(x) else None for x, part in zip(operands, parts, strict=True)
        )

    def batch(self, operands, batch_axes, *, axis):
        size = batch_size(operands, batch_axes)
        moved = [
            batch_to_front(x, batch_axis, size) for x, batch_axis in zip(operands, batch_axes, strict=True)
        ]
        return stack(moved, axis + 1), 0

    def host_work(self, *avals, **params):
        return sum(x.size for x in avals)


class Split(Linear):
    """`x` cut along `axis` into consecutive parts of the given `sizes`."""

    name = "split"
    moves_elements = True
    is_cheap_to_repeat = True
    is_fused = False
    multiple_results = True
    host_is_cheap = True

    def infer(self, x, *, sizes, axis):
        check_axes(self.name, x, (axis,))
        if any(n < 0 for n in sizes) or sum(sizes) != x.shape[axis]:
            fault = (
                f"Sizes passed to split must be nonnegative, got {list(sizes)}"
                if any(n < 0 for n in sizes)
                else f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the operand shape {list(x.shape)}"
            )
            raise ValueError(
                f"{fault}: split sizes {sizes} do not add up to {x.shape[axis]}, the size of axis {axis} of shape "
                f"{x.shape}"
            )
        return [x.with_shape((*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes]

    def lay_out(self, outs, x, *, sizes, axis):
        return [x.spec] * len(sizes)

    def host(self, x, *, sizes, axis):
        before = (slice(None),) * axis
        return [x[(*before, slice(start, start + n))] for start, n in zip(_starts(sizes), sizes, strict=True)]

    def padded(self, at, avals, operands, *, sizes, axis):
        (x,), shape = operands, avals[0].shape
        parts, start = [], 0
        for size in sizes:
            starts = [start if a == axis else 0 for a in range(len(shape))]
            parts.append(at.window(x, starts, (*shape[:axis], size, *shape[axis + 1 :])))
            start = start + size
        return parts

    def lower(self, builder, x, *, sizes, axis):
        results = []
        for start, aval in zip(_starts(sizes), self.infer(x.aval, sizes=sizes, axis=axis), strict=True):
            starts = [0] * x.ndim
            starts[axis] = start
            limits = [s + n for s, n in zip(starts, aval.shape, strict=True)]
            results.append(builder.cut(x, starts, limits, [1] * x.ndim))
        return results

    def transpose(self, cotangent, x, *, sizes, axis):
        return (concatenate([materialize(part) for part in cotangent], axis),)

    def batch(self, operands, batch_axes, *, sizes, axis):
        (x,), (batch_axis,) = operands, batch_axes
        return split(x, sizes, axis + (axis >= batch_axis)), [batch_axis] * len(sizes)


class Tile(Linear):
    """`x` repeated `reps[i]` times along axis i."""

    name = "tile"
    moves_elements = True

    def infer(self, x, *, reps):
        if len(reps) != x.ndim or any(n < 0 for n in reps):
            raise ValueError(
                f"tile: reps {reps} must give a number, not negative, for each axis of shape {x.shape}"
            )
        return x.with_shape(tuple(n * r for n, r in zip(x.shape, reps, strict=True)))

    def lay_out(self, out, x, *, reps):
        return x.spec

    def host(self, x, *, reps):
        return np.tile(x, reps)

    def padded(self, at, avals, operands, *, reps):
        (x,), (aval,) = operands, avals
        wide = self.bind(x, reps=at.rooms(reps))
        for axis, (n, rep) in enumerate(zip(aval.shape, reps, strict=True)):
            if at.is_padded(n) and not (type(rep) is int and rep == 1):
                wide = at.taken(wide, at.repeated_index(n, n * rep), axis)
        return wide

    def lower(self, builder, x, *, reps):
        wide = builder.broadcast(x, _interleave(reps, x.shape), range(1, 2 * x.ndim, 2))
        return builder.reshape(wide, self.infer(x.aval, reps=reps).shape)

    def transpose(self, cotangent, x, *, reps):
        return (reduce_sum(reshape(cotangent, _interleave(reps, x.shape)), range(0, 2 * x.ndim, 2)),)

    def batch(self, operands, batch_axes, *, reps):
        (x,), (batch_axis,) = operands, batch_axes
        return tile(x, (*reps[:batch_axis], 1, *reps[batch_axis:])), batch_axis


class Rev(Linear):
    """`x` with the order of elements reversed along the axes `dimensions`."""

    name = "rev"
    moves_elements = True
    host_is_cheap = True

    def infer(self, x, *, dimensions):
        check_axes(self.name, x, dimensions)
        return x

    def lay_out(self, out, x, *, dimensions):
        return x.spec

    def host(self, x, *, dimensions):
        return np.flip(x, dimensions)

    def padded(self, at, avals, operands, *, dimensions):
        (x,), shape = operands, avals[0].shape
        turned = self.bind(x, dimensions=dimensions)
        starts = [at.difference(at.room(n), n) if i in dimensions else 0 for i, n in enumerate(shape)]
        return at.window(turned, starts, shape)

    def lower(self, builder, x, *, dimensions):
        return builder.op("reverse", (x,), x.aval, f"dimensions = {integers(dimensions)}")

    def transpose(self, cotangent, x, *, dimensions):
        return (rev(cotangent, dimensions),)

    def batch(self, operands, batch_axes, *, dimensions):
        (x,), (batch_axis,) = operands, batch_axes
        return rev(x, tuple(axis + (axis >= batch_axis) for axis in dimensions)), batch_axis


class Iota(Primitive):
    """0, 1, 2, … along the axis `dimension` of an array of the given shape and dtype."""

    name = "iota"
    keeps_ends = True
    is_cheap_to_repeat = True

    def infer(self, *, dtype, shape, dimension):
        if not (dtypes.is_integer(dtype) or dtypes.is_inexact(dtype)):
            raise TypeError(
                f"iota counts in integers, floats or complex numbers, got dtype {dtypes.dtype_name(dtype)}"
            )
        if not 0 <= dimension < len(shape):
            raise ValueError(f"iota: dimension {dimension} is not an axis of the shape {shape}")
        return ShapedArray(shape, dtype)

    def host(self, *, dtype, shape, dimension):
        count = np.arange(shape[dimension]).astype(dtype, copy=False)
        if len(shape) == 1:
            return count
        after = (1,) * (len(shape) - dimension - 1)
        return np.broadcast_to(count.reshape(-1, *after), shape)

    def lower(self, builder, *, dtype, shape, dimension):
        return builder.iota(ShapedArray(shape, dtype), dimension)


reshape_p = Reshape()
squeeze_p = Squeeze()
concatenate_p = Concatenate()
stack_p = Stack()
split_p = Split()
tile_p = Tile()
rev_p = Rev()
iota_p = Iota()


def reshape(x, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None):
    """The elements of `x` in the frame `new_sizes`; see `Reshape`."""
    new_sizes = tuple(new_sizes)
    if dimensions is not None:
        dimensions = tuple(dimensions)
        if dimensions == tuple(range(len(dimensions))):
            dimensions = None
    if dimensions is None and aval_of(x).shape == new_sizes:
        return x
    return reshape_p.bind(x, new_sizes=new_sizes, dimensions=dimensions)


def squeeze(x, dimensions: Sequence[int]):
    """`x` without the axes `dimensions`, which have size 1."""
    dimensions = tuple(dimensions)
    return squeeze_p.bind(x, dimensions=dimensions) if dimensions else x


def expand_dims(x, dimensions: Sequence[int]):
    """`x` with new axes of size 1, which are `dimensions` of the result."""
    new = set(dimensions)
    shape = aval_of(x).shape
    ndim = len(shape) + len(new)
    kept = [axis for axis in range(ndim) if axis not in new]
    if len(kept) != len(shape) or len(new) != len(tuple(dimensions)):
        raise ValueError(
            f"expand_dims: {tuple(dimensions)} are not distinct axes of a result with {ndim} axes"
        )
    sizes = iter(shape)
    return broadcast_in_dim(x, [1 if axis in new else next(sizes) for axis in range(ndim)], kept)


def concatenate(operands: Sequence, dimension: int):
    """The operands one after the other along an axis."""
    return concatenate_p.bind(*operands, dimension=dimension)


def stack(operands: Sequence, axis: int):
    """The operands side by side along a new axis."""
    return stack_p.bind(*operands, axis=axis)


def split(x, sizes: Sequence[int], axis: int):
    """`x` cut along `axis` into a list of parts of the given sizes."""
    return split_p.bind(x, sizes=tuple(sizes), axis=axis)


def tile(x, reps: Sequence[int]):
    """`x` repeated `reps[i]` times along axis i."""
    return tile_p.bind(x, reps=tuple(reps))


def rev(x, dimensions: Sequence[int]):
    """`x` reversed along axes."""
    dimensions = tuple(dimensions)
    return rev_p.bind(x, dimensions=dimensions) if dimensions else x


def iota(dtype: Any, shape: Sequence[int], dimension: int = 0):
    """Counts along the axis `dimension` of an array of the given shape."""
    return iota_p.bind(dtype=dtypes.as_exact_dtype(dtype), shape=tuple(shape), dimension=dimension)


def _check_one_dtype(name: str, avals: Sequence[ShapedArray]) -> None:
    if any(x.dtype != avals[0].dtype for x in avals):
        raise TypeError(
            f"{name} needs arrays of one dtype, got {', '.join(x.str_short() for x in avals)}; "
            "convert them with `.astype`"
        )


def _starts(sizes: Sequence[int]) -> list[int]:
    """Where each part begins."""
    starts = [0]
    for n in sizes[:-1]:
        starts.append(starts[-1] + n)
    return starts[: len(sizes)]


def _interleave(outer: Sequence[int], inner: Sequence[int]) -> tuple[int, ...]:
    """(outer[0], inner[0], outer[1], inner[1], …)"""
    return tuple(n for pair in zip(outer, inner, strict=True) for n in pair)
