"""`rng_uniform`: random numbers from XLA's own state, different in each run. Use `purax.random`, which gives the
same numbers for the same key, unless nothing else is quick enough.
"""

from __future__ import annotations

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.effects import io
from purax.core.primitive import Primitive
from purax.primitives.elementwise.arithmetic import floor, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.shape.broadcasting import batch_size, batch_to_front, broadcast_in_dim

_INT64 = np.dtype(np.int64)
_INT32 = np.dtype(np.int32)
_FLOAT32 = np.dtype(np.float32)
_generator = np.random.default_rng()
_draws = frozenset({io})


class RngUniform(Primitive):
    """Numbers of the given shape, spread evenly over [low, high)."""

    name = "rng_uniform"

    def infer(self, low, high, *, shape):
        if low.shape or high.shape:
            raise TypeError(
                f"rng_uniform needs scalars as bounds, got {low.str_short()} and {high.str_short()}"
            )
        if low.dtype != high.dtype or dtypes.kind(low.dtype) not in ("integer", "float"):
            raise TypeError(
                f"rng_uniform needs bounds of one real dtype, got {low.str_short()} and {high.str_short()}; convert "
                "one of them with `.astype`"
            )
        return ShapedArray(shape, low.dtype, low.weak_type and high.weak_type)

    def host(self, low, high, *, shape):
        if dtypes.is_integer(low.dtype):
            first, last = int(low), int(high)
            return _generator.integers(first, max(last, first + 1), shape).astype(low.dtype)
        first, last = float(low), float(high)
        return (first + (last - first) * _generator.random(shape)).astype(low.dtype)

    def lower(self, builder, low, high, *, shape):
        dtype = low.dtype
        wide = dtype
        if dtypes.itemsize_bits(dtype) < 32:
            wide = _FLOAT32 if dtypes.is_inexact(dtype) else _INT32
        sizes = builder.constant(np.array(shape, _INT64), ShapedArray((len(shape),), _INT64))
        operands = (builder.convert(low, wide), builder.convert(high, wide), sizes)
        attributes = "rng_distribution = #stablehlo<rng_distribution UNIFORM>"
        return builder.convert(builder.op("rng", operands, ShapedArray(shape, wide), attributes), dtype)

    def effects(self, *, shape):
        return _draws

    def jvp(self, primals, tangents, *, shape):
        out = self.bind(*primals, shape=shape)
        return out, Zero.like(out)

    def batch(self, operands, batch_axes, *, shape):
        size = batch_size(operands, batch_axes)
        dtype = aval_of(operands[0]).dtype
        is_whole = dtypes.is_integer(dtype)
        wide = np.dtype(np.float64) if is_whole else dtype
        full_shape = (size, *shape)
        low, high = (
            broadcast_in_dim(convert_element_type(batch_to_front(x, axis, size), wide), full_shape, (0,))
            for x, axis in zip(operands, batch_axes, strict=True)
        )
        share = self.bind(np.zeros((), wide), np.ones((), wide), shape=full_shape)
        numbers = add(low, mul(share, sub(high, low)))
        return convert_element_type(floor(numbers) if is_whole else numbers, dtype), 0


rng_uniform_p = RngUniform()
