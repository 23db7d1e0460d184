"""`jax.interpreters.batching`: rules of vectorization, registered by primitive."""

from __future__ import annotations

from typing import Any

from purax.compat.extension import (
    AxisData,
    axis_primitive_batchers,
    fancy_primitive_batchers,
    primitive_batchers,
    same_axis,
)
from purax.core.avals import aval_of
from purax.core.primitive import Primitive
from purax.ops.broadcasting import batch_reduction, batch_size, batch_to_front, broadcast_in_dim, move_axis
from purax.ops.reshaping import reshape
from purax.transforms.vmap import BatchTrace, BatchTracer

__all__ = [
    "AxisData",
    "BatchTrace",
    "BatchTracer",
    "NotMapped",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "matchaxis",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
]

not_mapped = None
NotMapped = type(None)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """`x` with an axis moved."""
    return move_axis(x, source, destination)


def bdim_at_front(x: Any, axis: int | None, size: int, mesh_axis: Any = None) -> Any:
    """`x` with its batch axis in front, repeated if it has none."""
    return batch_to_front(x, axis, size)


def broadcast(x: Any, size: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x` repeated along a new axis."""
    shape = aval_of(x).shape
    kept = [n for n in range(len(shape) + 1) if n != axis]
    return broadcast_in_dim(x, (*shape[:axis], size, *shape[axis:]), kept)


def matchaxis(
    name: Any, size: int, source: int | None, destination: int | None, x: Any, sum_match: bool = False
) -> Any:
    """`x` with its batch axis moved from `source` to `destination`."""
    if source is None:
        return x if destination is None else broadcast(x, size, destination)
    return moveaxis(x, source, destination)  # type: ignore[arg-type]


def defvectorized(primitive: Primitive) -> None:
    """Declares a primitive elementwise: it is its own vectorization."""

    def batch(operands: Any, batch_axes: Any, **params: Any) -> tuple[Any, Any]:
        moved, axis = same_axis(operands, batch_axes)
        result = primitive.bind(*moved, **params)
        return result, [axis] * len(result) if primitive.multiple_results else axis

    primitive_batchers[primitive] = batch


def defbroadcasting(primitive: Primitive) -> None:
    """`defvectorized` for a primitive whose operands must have one shape."""

    def batch(operands: Any, batch_axes: Any, **params: Any) -> tuple[Any, Any]:
        size = batch_size(operands, batch_axes)
        front = [batch_to_front(x, axis, size) for x, axis in zip(operands, batch_axes, strict=True)]
        rank = max(aval_of(x).ndim for x in front)
        padded = [reshape(x, (size, *(1,) * (rank - aval_of(x).ndim), *aval_of(x).shape[1:])) for x in front]
        result = primitive.bind(*padded, **params)
        return result, [0] * len(result) if primitive.multiple_results else 0

    primitive_batchers[primitive] = batch


def defreducer(primitive: Primitive, identity: Any = None) -> None:
    """Declares that a primitive of one operand removes its parameter `axes`."""

    def batch(operands: Any, batch_axes: Any, *, axes: Any, **params: Any) -> tuple[Any, Any]:
        return batch_reduction(primitive, operands[0], batch_axes[0], axes, **params)

    primitive_batchers[primitive] = batch
