"""Costly functions of large arrays whose sizes XLA cannot share out evenly between the processors.

On the CPU it cuts a loop into as many equal parts as there are processors. Where the first axis does not divide, every
step asks whether it is still inside, and a loop along a short last axis has few steps: in both cases XLA
computes a function such as erf⁻¹ one element at a time, 15 times slower. Here such an array is seen as one long row,
filled up to a length that divides, and the function stays a loop of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from purax.config import config
from purax.core.avals import ShapedArray
from purax.primitives.outlined import outlined
from purax.xla.stablehlo import Builder, Value, integers

_LARGE = 1 << 14  # elements from which on XLA shares out a loop
_SHORT = 64  # steps that are too few for a loop


def evenly(builder: Builder, name: str, x: Value, emit: Callable[[Builder, Value], Value]) -> Value:
    """`emit(builder, x)`, a function of each element, on one even row where `x` would be computed slowly."""
    is_whole = builder.platform == "cpu" and builder.module.mesh is None  # blocks on devices are no row
    if not is_whole:
        return emit(builder, x)
    size = x.aval.size
    parts = config.cpu_threads or os.cpu_count() or 1
    is_even = x.shape[-1] >= _SHORT and (x.ndim > 1 or size % parts == 0) if x.ndim else True
    if size < _LARGE or is_even:
        return emit(builder, x)

    row = builder.reshape(x, (size,))
    missing = -size % parts
    if missing:
        zero = builder.constant(0, ShapedArray((), x.dtype))
        widths = f"edge_padding_low = {integers((0,))}, edge_padding_high = {integers((missing,))}, "
        widths += f"interior_padding = {integers((0,))}"
        row = builder.op("pad", (row, zero), ShapedArray((size + missing,), x.dtype), widths)
    row = outlined(builder, name, (row,), row.aval, "row", emit, alone=True)
    if missing:
        row = builder.cut(row, (0,), (size,), (1,))
    return builder.reshape(row, x.shape)
