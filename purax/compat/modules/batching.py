"""`jax.interpreters.batching`: rules of vectorization, registered by primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.api import vmappable
from purax.compat.extension import (
    AxisData,
    axis_primitive_batchers,
    fancy_primitive_batchers,
    primitive_batchers,
    same_axis,
)
from purax.core.avals import aval_of
from purax.core.primitive import Primitive
from purax.interpreters.vmap import BatchTrace, BatchTracer
from purax.primitives.shape.broadcasting import (
    batch_reduction,
    batch_size,
    batch_to_front,
    broadcast_in_dim,
    move_axis,
)
from purax.primitives.shape.reshaping import reshape

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
    "is_vmappable",
    "matchaxis",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]

not_mapped = None
NotMapped = type(None)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """`x` with an axis moved."""
    return move_axis(x, source, destination)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """`x` with its batch bdim in front, repeated if it has none."""
    return batch_to_front(x, bdim, size)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x` repeated along a new axis."""
    shape = aval_of(x).shape
    kept = [n for n in range(len(shape) + 1) if n != axis]
    return broadcast_in_dim(x, (*shape[:axis], sz, *shape[axis:]), kept)


def matchaxis(
    name: Any, size: int, source: int | None, destination: int | None, x: Any, sum_match: bool = False
) -> Any:
    """`x` with its batch axis moved from `source` to `destination`."""
    if source is None:
        return x if destination is None else broadcast(x, size, destination)
    return moveaxis(x, source, destination)  # type: ignore[arg-type]


def defvectorized(prim: Primitive) -> None:
    """Declares a primitive elementwise: it is its own vectorization."""

    def batch(operands: Any, batch_axes: Any, **params: Any) -> tuple[Any, Any]:
        moved, axis = same_axis(operands, batch_axes)
        result = prim.bind(*moved, **params)
        return result, [axis] * len(result) if prim.multiple_results else axis

    primitive_batchers[prim] = batch


def defbroadcasting(prim: Primitive) -> None:
    """`defvectorized` for a primitive whose operands must have one shape."""

    def batch(operands: Any, batch_axes: Any, **params: Any) -> tuple[Any, Any]:
        size = batch_size(operands, batch_axes)
        front = [batch_to_front(x, axis, size) for x, axis in zip(operands, batch_axes, strict=True)]
        rank = max(aval_of(x).ndim for x in front)
        padded = [reshape(x, (size, *(1,) * (rank - aval_of(x).ndim), *aval_of(x).shape[1:])) for x in front]
        result = prim.bind(*padded, **params)
        return result, [0] * len(result) if prim.multiple_results else 0

    primitive_batchers[prim] = batch


def defreducer(prim: Primitive) -> None:
    """Declares that a primitive of one operand removes its parameter `axes`."""

    def batch(operands: Any, batch_axes: Any, *, axes: Any, **params: Any) -> tuple[Any, Any]:
        return batch_reduction(prim, operands[0], batch_axes[0], axes, **params)

    primitive_batchers[prim] = batch


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable,
    from_elt: Callable,
    make_iota: Callable | None,
) -> None:
    """Lets `vmap` map over containers of a class, see `purax.api.vmappable`.

    Args:
        data_type: the class.
        spec_type: the class of what stands for one in `in_axes` and `out_axes`.
        axis_size_type: the class of sizes of batches; integers.
        to_elt: makes the element that the function sees.
        from_elt: makes a container of a result.
        make_iota: accepted, without effect: batches are counted by integers.
    """
    vmappable.register(data_type, spec_type, to_elt, from_elt)


unregister_vmappable = vmappable.unregister
is_vmappable = vmappable.is_container
