"""Kernels recorded for GPUs: references are pointers, and reading one is an operation at offsets from it.

What a reference holds is a value that stands for the memory as it is at that time. Each write makes a new one, so that
programs stay pure; a lowering that keeps the order of equations may take them all as one pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core.avals import ShapedArray
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.pallas import indexing
from purax.pallas.blocks import Operand
from purax.pallas.refs import KernelRef, of_dtype


class _OnMemory(Primitive):
    """An operation on a memory; it exists only in programs that are lowered for GPUs."""

    def lower(self, builder, *operands, **params):
        raise located(NotImplementedError, f"{self.name} exists in kernels for GPUs only")


class Load(_OnMemory):
    """The elements of `memory` at `offsets`; with a mask, only those where it is true, and `other` elsewhere."""

    name = "pallas_load"

    def infer(self, memory, offsets, *rest, cache, eviction, volatile):
        return ShapedArray(offsets.shape, memory.dtype)

    def host(self, memory, offsets, *rest, cache, eviction, volatile):
        elements = memory.reshape(-1)
        if not rest:
            return elements[offsets]
        mask, other = rest
        return np.where(mask, elements[np.where(mask, offsets, 0)], other)


class Store(_OnMemory):
    """`memory` after `value` was written at `offsets`, where there is a mask only where it is true."""

    name = "pallas_store"

    def infer(self, memory, offsets, value, *mask, eviction):
        return memory

    def host(self, memory, offsets, value, *mask, eviction):
        after = memory.copy()
        chosen = np.broadcast_to(mask[0] if mask else True, np.shape(offsets))
        after.reshape(-1)[np.asarray(offsets)[chosen]] = np.broadcast_to(value, np.shape(offsets))[chosen]
        return after


class Atomic(_OnMemory):
    """`memory` after an atomic operation at `offsets`, and what was there before."""

    name = "pallas_atomic"
    multiple_results = True

    def infer(self, memory, offsets, value, *mask, operation):
        return [memory, ShapedArray(offsets.shape, memory.dtype)]


load_p, store_p, atomic_p = Load(), Store(), Atomic()


class PointerRef(KernelRef):
    """A reference to a block of an array in the memory of a GPU."""

    __slots__ = ("_base", "_operand", "_starts")

    def __init__(self, memory: Any, operand: Operand, starts: Sequence[Any], base: Any, name: str):
        self._base = base  # the offset of the array, where the memory holds a batch of them
        KernelRef.__init__(self, memory, name, operand.memory_space)
        self._operand, self._starts = operand, list(starts)
        self._shape_of = (operand.block_aval.shape, operand.block_aval.dtype)

    def _place(self, where: indexing.Index) -> tuple[Any, Any]:
        """The offsets of elements, and the mask of those that are inside of the array; None if all are known to be."""
        shape = where.shape
        seen = iter(zip(where.entries, where.positions(), strict=True))
        strides = [int(np.prod(self._operand.aval.shape[d + 1 :])) for d in range(self._operand.aval.ndim)]
        offsets: Any = None
        inside: Any = None
        for dim, start, stride in zip(self._operand.dims, self._starts, strides, strict=True):
            at = start
            if dim.is_seen:
                _, position = next(seen)
                at = position if isinstance(start, np.int32) and start == 0 else position + start
            if dim.before:
                at = at - np.int32(dim.before)
            if dim.padded != dim.size:
                fits = (at >= 0) & (at < np.int32(dim.size)) if dim.before else at < np.int32(dim.size)
                inside = fits if inside is None else inside & fits
            step = at if stride == 1 else at * np.int32(stride)
            offsets = step if offsets is None else offsets + step
        if self._base is not None:
            offsets = self._base if offsets is None else offsets + self._base
        offsets = jnp.zeros((), np.int32) if offsets is None else jnp.asarray(offsets, np.int32)
        offsets = jnp.broadcast_to(offsets, shape)
        return offsets, None if inside is None else jnp.broadcast_to(inside, shape)

    def _get(self, where: indexing.Index) -> Any:
        return self.loaded(where, None, None)

    def _get_where(self, where: indexing.Index, mask: Any, other: Any) -> Any:
        return self.loaded(where, mask, other)

    def loaded(self, where: indexing.Index, mask: Any, other: Any, **hints: Any) -> Any:
        """The elements at an index where a mask is true, `other` elsewhere."""
        memory = self._read()
        offsets, inside = self._place(where)
        chosen = inside if mask is None else mask if inside is None else mask & inside
        rest = []
        if chosen is not None:
            fill = of_dtype(0 if other is None else other, self.dtype)
            rest = [chosen, jnp.broadcast_to(fill, where.shape)]
        options = {"cache": None, "eviction": None, "volatile": False} | hints
        return load_p.bind(memory, offsets, *rest, **options)

    def _set(self, where: indexing.Index, value: Any) -> None:
        self.stored(where, value, None)

    def _set_where(self, where: indexing.Index, value: Any, mask: Any) -> None:
        self.stored(where, value, mask)

    def stored(self, where: indexing.Index, value: Any, mask: Any, eviction: str | None = None) -> None:
        """Writes the elements at an index where a mask is true."""
        memory = self._read()
        offsets, inside = self._place(where)
        chosen = inside if mask is None else mask if inside is None else mask & inside
        rest = [] if chosen is None else [chosen]
        self._write(store_p.bind(memory, offsets, value, *rest, eviction=eviction))

    def _load(self) -> Any:
        return self._get(self._index(...))

    def _store(self, array: Any) -> None:
        self._set(self._index(...), array)

    def atomic(self, operation: str, where: indexing.Index, value: Any, mask: Any) -> Any:
        """Combines elements with a value as one operation; what they were before."""
        memory = self._read()
        offsets, inside = self._place(where)
        chosen = inside if mask is None else mask if inside is None else mask & inside
        rest = [] if chosen is None else [chosen]
        after, before = atomic_p.bind(memory, offsets, value, *rest, operation=operation)
        self._write(after)
        return before

    def addupdate(self, value: Any, index: Any = ...) -> None:
        where = self._index(index)
        self._set(where, self._get(where) + jnp.broadcast_to(of_dtype(value, self.dtype), where.shape))


def starts_of(operand: Operand, ids: Sequence[Any]) -> list[Any]:
    """The first element of the block of a step, in each dimension of the array with its padding."""
    starts = []
    for dim, index in zip(operand.dims, operand.indices(ids, ()), strict=True):
        starts.append(np.int32(0) if operand.is_whole else dim.start(index))
    return starts
