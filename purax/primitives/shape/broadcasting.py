"""Repeating and summing along axes: `broadcast_in_dim` and `reduce_sum`, each the transpose of the other; and the
small helpers on axes that rules of all families use.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.primitive import Primitive
from purax.errors import ShapeError
from purax.primitives import layouts
from purax.primitives.memory import to_memory
from purax.primitives.reductions.stored_reductions import reduce_stored
from purax.xla.array import constant
from purax.xla.stablehlo import integers


class Linear(Primitive):
    """f with f(x + y) = f(x) + f(y): the tangent is f(dx)."""

    is_linear = True

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        if len(tangents) > 1:
            tangents = [materialize(t) for t in tangents]
        return out, self.bind(*tangents, **params)


class BroadcastInDim(Linear):
    """Repeats `x` over `shape`: axis i of `x` becomes axis `broadcast_dimensions[i]`, of size 1 or of the full size."""

    name = "broadcast_in_dim"
    keeps_ends = True
    moves_elements = True
    is_cheap_to_repeat = True
    is_fused = False
    host_is_cheap = True

    def infer(self, x, *, shape, broadcast_dimensions):
        dims = broadcast_dimensions
        if (
            len(dims) != x.ndim
            or any(not 0 <= d < len(shape) for d in dims)
            or list(dims) != sorted(set(dims))
        ):
            raise ShapeError(
                f"broadcast_in_dim {_fault_of_dimensions(x, shape, dims)}: broadcast_dimensions {dims} must name, in "
                f"increasing order, an axis of the result shape {shape} for each axis of the operand of shape {x.shape}"
            )
        for axis, d in enumerate(dims):
            if x.shape[axis] not in (1, shape[d]):
                raise ShapeError(
                    "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding "
                    f"dimensions in the target broadcast shape; got operand of shape {x.shape}, target broadcast shape "
                    f"{shape}, broadcast_dimensions {dims}: axis {axis} has size {x.shape[axis]}, which is neither 1 "
                    f"nor the size {shape[d]} of axis {d} of the result"
                )
        return x.with_shape(shape)

    def lay_out(self, out, x, *, shape, broadcast_dimensions):
        entries = [None] * len(shape)
        for axis, d in enumerate(broadcast_dimensions):
            entries[d] = x.spec[axis] if x.shape[axis] == shape[d] else None
        return entries

    def host(self, x, *, shape, broadcast_dimensions):
        x = np.asarray(x)
        expanded = [1] * len(shape)
        for axis, d in enumerate(broadcast_dimensions):
            expanded[d] = x.shape[axis]
        return np.broadcast_to(x.reshape(expanded), shape)

    def host_function(self, avals, params):
        (x,), shape = avals, params["shape"]
        if (
            x.ndim == 0 and math.prod(shape) <= 1024
        ):  # to fill a small array takes less time than to make a view
            return functools.partial(_filled, shape, x.dtype)
        if math.prod(shape) <= 4096 and not dtypes.is_extended(x.dtype):
            places = dict(zip(params["broadcast_dimensions"], x.shape, strict=True))
            expanded = tuple([places.get(axis, 1) for axis in range(len(shape))])
            return functools.partial(_repeated, expanded, shape, x.dtype)
        return super().host_function(avals, params)

    def lower(self, builder, x, *, shape, broadcast_dimensions):
        return builder.broadcast(x, shape, broadcast_dimensions)

    def transpose(self, cotangent, x, *, shape, broadcast_dimensions):
        new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
        stretched = [d for axis, d in enumerate(broadcast_dimensions) if x.shape[axis] != shape[d]]
        summed = reduce_sum(cotangent, tuple(sorted(new + stretched)))
        kept = tuple(i for i, d in enumerate(broadcast_dimensions) if d not in stretched)
        return (broadcast_in_dim(summed, x.shape, kept),)

    def batch(self, operands, batch_axes, *, shape, broadcast_dimensions):
        (x,), (axis,) = operands, batch_axes
        x = move_axis(x, axis, 0)
        moved = (0, *(d + 1 for d in broadcast_dimensions))
        return broadcast_in_dim(x, (x.shape[0], *shape), moved), 0


class ReduceSum(Linear):
    """Sum of `x` over `axes`."""

    name = "reduce_sum"
    is_fused = False
    reads_transposes = True
    row_operation = "row_sum"
    gain_of_effort = 0.25

    def infer(self, x, *, axes):
        check_axes(self.name, x, axes)
        if x.dtype == np.bool_:
            raise TypeError(f"reduce_sum needs numbers, got {x.str_short()}; convert it first")
        return x.with_shape(drop_axes(x.shape, axes))

    def lay_out(self, out, x, *, axes):
        return layouts.drop(x.spec, axes)

    def host(self, x, *, axes):
        x = np.asarray(x)
        if x.dtype.itemsize <= 2 and dtypes.is_inexact(
            x.dtype
        ):  # as XLA does: narrow floats are summed in float32
            return np.sum(x.astype(np.float32), axis=axes).astype(x.dtype)
        return np.add.reduce(x, axis=axes, dtype=x.dtype)

    def host_function(self, avals, params):
        if avals[0].dtype in _SUMMED_AS_THEY_ARE:
            axes = params["axes"]
            return np.add.reduce if axes == (0,) else functools.partial(np.add.reduce, axis=axes)
        return super().host_function(avals, params)

    def streaming_cost(self, x, *, axes):
        return 8 if x.dtype in (np.float32, np.float64) and x.ndim - 1 in axes else 0

    def padded(self, at, avals, operands, *, axes):
        return self.bind(at.filled(operands[0], avals[0], axes, 0), axes=axes)

    def lower(self, builder, x, *, axes):
        if x.dtype.itemsize <= 2 and dtypes.is_inexact(x.dtype):
            wide = builder.convert(x, np.dtype(np.float32))
            return builder.convert(builder.reduce(wide, 0, "add", axes), x.dtype)
        stored = reduce_stored(builder, x, "add", axes)
        return builder.reduce(x, 0, "add", axes) if stored is None else stored

    def transpose(self, cotangent, x, *, axes):
        return (broadcast_in_dim(cotangent, x.shape, kept_axes(x.ndim, axes)),)

    def batch(self, operands, batch_axes, *, axes):
        return batch_reduction(self, operands[0], batch_axes[0], axes)


class Transpose(Linear):
    """Reorders axes: axis i of the result is axis `permutation[i]` of `x`."""

    name = "transpose"
    keeps_ends = True
    moves_elements = True
    is_cheap_to_repeat = True
    is_fused = False
    host_is_cheap = True

    def infer(self, x, *, permutation):
        if sorted(permutation) != list(range(x.ndim)):
            raise ShapeError(
                f"transpose permutation isn't a permutation of operand dimensions, got permutation {permutation} for "
                f"operand shape {x.shape}."
            )
        return x.with_shape(tuple(x.shape[axis] for axis in permutation))

    def lay_out(self, out, x, *, permutation):
        return [x.spec[axis] for axis in permutation]

    def host(self, x, *, permutation):
        return x.transpose(permutation)

    def lower(self, builder, x, *, permutation):
        aval = self.infer(x.aval, permutation=permutation)
        out = builder.op("transpose", (x,), aval, f"permutation = {integers(permutation)}")
        out.turned = (x, permutation)
        if x.part is not None:
            source, start, strides = x.part
            out.part = (source, start, [strides[axis] for axis in permutation])
        return out

    def transpose(self, cotangent, x, *, permutation):
        return (transpose(cotangent, tuple(int(i) for i in np.argsort(permutation))),)

    def batch(self, operands, batch_axes, *, permutation):
        (x,), (batch_axis,) = operands, batch_axes
        moved = [axis + (axis >= batch_axis) for axis in permutation]
        return transpose(x, (batch_axis, *moved)), 0


# NumPy sums these in their own dtype, whatever the platform.
_SUMMED_AS_THEY_ARE = frozenset(
    map(np.dtype, ("float32", "float64", "complex64", "complex128", "int64", "uint64"))
)

broadcast_in_dim_p = BroadcastInDim()
reduce_sum_p = ReduceSum()
transpose_p = Transpose()


def _repeated(expanded: tuple[int, ...], shape: tuple[int, ...], dtype: Any, x: np.ndarray) -> np.ndarray:
    """A view with axes of size 1 added, repeated in memory of its own, which takes less time than a view."""
    out = np.empty(shape, dtype)
    out[...] = x.reshape(expanded)
    return out


def _filled(shape: tuple[int, ...], dtype: Any, value: np.ndarray) -> np.ndarray:
    result = np.empty(shape, dtype)
    result.fill(value)
    return result


def broadcast_in_dim(x, shape: Sequence[int], broadcast_dimensions: Sequence[int]):
    """Repeats `x` over `shape`; see `BroadcastInDim`."""
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    if aval_of(x).shape == shape:
        return x
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=dims)


def reduce_sum(x, axes: Sequence[int]):
    """The sum of `x` over `axes`."""
    return reduce_sum_p.bind(x, axes=tuple(axes)) if axes else x


def transpose(x, permutation: Sequence[int]):
    """Reorders the axes of `x`."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    return transpose_p.bind(x, permutation=permutation)


def full(shape: Sequence[int], value: Any, dtype: Any):
    """An array filled with a scalar."""
    return broadcast_in_dim_p.bind(np.asarray(value, dtype), shape=tuple(shape), broadcast_dimensions=())


def zeros(aval: ShapedArray):
    """An array of zeros of the given type."""
    zero = constant(0, aval.dtype, True) if aval.weak_type else np.zeros((), aval.dtype)
    filled = broadcast_in_dim_p.bind(zero, shape=aval.shape, broadcast_dimensions=())
    return to_memory(filled, aval.memory_space)


def materialize(tangent):
    """A tangent as an array: a symbolic zero becomes zeros."""
    return zeros(tangent.aval) if type(tangent) is Zero else tangent


def move_axis(x, source: int, destination: int):
    """Moves one axis of `x` to another position."""
    if source == destination:
        return x
    axes = [axis for axis in range(aval_of(x).ndim) if axis != source]
    axes.insert(destination, source)
    return transpose(x, axes)


def batch_to_front(x, batch_axis: int | None, size: int):
    """`x` with its batch axis first; repeated `size` times if it has none."""
    if batch_axis is None:
        shape = aval_of(x).shape
        return broadcast_in_dim(x, (size, *shape), range(1, len(shape) + 1))
    return move_axis(x, batch_axis, 0)


def batch_size(operands: Sequence, batch_axes: Sequence[int | None]) -> int:
    """The size of the batch axis that the operands share."""
    return next(
        aval_of(x).shape[axis] for x, axis in zip(operands, batch_axes, strict=True) if axis is not None
    )


def batch_reduction(primitive: Primitive, x, batch_axis: int, axes: Sequence[int], **params):
    """The `batch` rule of a reduction over `axes`."""
    moved = tuple(axis + (axis >= batch_axis) for axis in axes)
    return primitive.bind(x, axes=moved, **params), batch_axis - sum(axis < batch_axis for axis in moved)


def sum_to_shape(cotangent, shape: tuple[int, ...]):
    """The transpose of repeating: sums a cotangent to `shape`, which is its own but for axes of size 1, or ()."""
    given = aval_of(cotangent).shape
    if given == shape:
        return cotangent
    if not shape:
        return reduce_sum(cotangent, range(len(given)))
    axes = [axis for axis, (n, m) in enumerate(zip(given, shape, strict=True)) if n != m]
    return broadcast_in_dim(reduce_sum(cotangent, axes), shape, kept_axes(len(shape), axes))


def _fault_of_dimensions(x: ShapedArray, shape: Sequence[Any], dims: Sequence[int]) -> str:
    """What is wrong about the dimensions of a broadcast."""
    if len(shape) < x.ndim:
        return (
            "target broadcast shape must have equal or higher rank to the operand shape; got operand ndim "
            f"{x.ndim} and target broadcast ndim {len(shape)}"
        )
    if len(dims) != x.ndim:
        return (
            "broadcast_dimensions must have length equal to operand ndim; got broadcast_dimensions "
            f"{dims} for operand ndim {x.ndim}"
        )
    if any(d < 0 for d in dims):
        return f"broadcast_dimensions must have every element be nonnegative, got {dims}"
    if any(d >= len(shape) for d in dims):
        return (
            f"broadcast_dimensions must be a subset of output dimensions, got {dims} for operand ndim {x.ndim} and "
            f"shape {tuple(shape)}"
        )
    if len(set(dims)) != len(dims):
        return f"broadcast_dimensions must not contain duplicates, got broadcast_dimensions {dims}"
    return f"broadcast_dimensions must be strictly increasing, got {dims}"


def check_axes(name: str, x: ShapedArray, axes: Sequence[int]) -> None:
    if any(not 0 <= axis < x.ndim for axis in axes) or len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: axes {axes} are not distinct axes of an array of shape {x.shape}")


def drop_axes(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    """`shape` without `axes`."""
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def kept_axes(ndim: int, axes: Sequence[int]) -> tuple[int, ...]:
    """The axes that a reduction over `axes` keeps."""
    return tuple(axis for axis in range(ndim) if axis not in axes)
