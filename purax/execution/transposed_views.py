"""Eager operations on transposed views of large arrays, which a program would first take a copy of.

An operation with kernels that read a transpose as what it is the transpose of (`reads_transposes`) is compiled together
with the transposes of its operands instead, and gets the arrays that these are views of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.core.memo import Memo
from purax.core.primitive import Primitive
from purax.primitives.shape.broadcasting import transpose_p
from purax.xla.aligned_memory import SMALL
from purax.xla.array import DeviceArray

Orders = tuple[tuple[int, ...] | None, ...]


class OfTransposes(Primitive):
    """An operation on transposes of its operands: axis i is axis `orders[k][i]` of operand k. It is only compiled."""

    def __init__(self, primitive: Primitive):
        self.primitive = primitive
        self.name = f"{primitive.name}_of_transposes"
        self.multiple_results = primitive.multiple_results
        self.gain_of_effort = primitive.gain_of_effort

    def infer(self, *avals, orders, **params):
        turned = tuple(
            aval if order is None else transpose_p.infer(aval, permutation=order)
            for aval, order in zip(avals, orders, strict=True)
        )
        return self.primitive.infer_checked(turned, params)

    def host_work(self, *avals, orders, **params):
        return math.inf

    def lower(self, builder, *operands, orders, **params):
        turned = [
            x if order is None else transpose_p.lower(builder, x, permutation=order)
            for x, order in zip(operands, orders, strict=True)
        ]
        return self.primitive.lower(builder, *turned, **params)


_known: Memo[Primitive, OfTransposes] = Memo(1000)


def of_transposes(primitive: Primitive) -> OfTransposes:
    """The operation on transposes of its operands; always the same one."""
    found = _known.get(primitive)
    if found is None:
        found = _known[primitive] = OfTransposes(primitive)
    return found


def orders_of(operands: Sequence[Any]) -> Orders | None:
    """Of operands that are transposed views of large arrays in how far; None if none of them is."""
    orders = tuple(map(_order_of, operands))
    return orders if any(order is not None for order in orders) else None


def _order_of(x: Any) -> tuple[int, ...] | None:
    if type(x) is not DeviceArray or x._buffer is not None or x._host is None:
        return None
    host = x._host
    if host.nbytes <= SMALL or host.flags.c_contiguous or min(host.strides) <= 0:
        return None
    order = sorted(range(host.ndim), key=lambda axis: -host.strides[axis])
    if not host.transpose(order).flags.c_contiguous:
        return None
    return tuple(int(i) for i in np.argsort(order))


def untransposed(x: Any, order: tuple[int, ...] | None) -> Any:
    """What an operand is the transpose of."""
    if order is None:
        return x
    host = x._host.transpose(np.argsort(order))
    return DeviceArray(ShapedArray(host.shape, x.aval.dtype, x.aval.weak_type), host)
