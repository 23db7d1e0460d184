"""Cutting a window out of an array and setting an array into a larger frame: `slice` and `pad`, at positions known
when the program is written. Each is the transpose of the other. Windows at computed positions are in
`purax.primitives.shape.dynamic_slicing`.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np

from purax.core.avals import ShapedArray, aval_of
from purax.core.dimensions import is_symbolic_shape
from purax.core.primitive import is_linear
from purax.errors import ShapeError
from purax.primitives.elementwise.logic import select
from purax.primitives.shape.broadcasting import Linear, batch_to_front, broadcast_in_dim, full, reduce_sum
from purax.xla.stablehlo import integers

_cut = builtins.slice


class Slice(Linear):
    """The elements of `x` from `start_indices` up to, not including, `limit_indices`, every `strides`-th of them."""

    name = "slice"
    moves_elements = True
    is_cheap_to_repeat = True
    is_fused = False
    host_is_cheap = True

    def infer(self, x, *, start_indices, limit_indices, strides):
        steps = (1,) * x.ndim if strides is None else strides
        if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
            raise TypeError(
                f"slice needs a start, a limit and a stride for each axis of an array of shape {x.shape}, got "
                f"start_indices {start_indices}, limit_indices {limit_indices}, strides {strides}"
            )
        for start, limit, step, n in zip(start_indices, limit_indices, steps, x.shape, strict=True):
            if not (0 <= start <= limit <= n and step > 0):
                raise TypeError(
                    f"slice: need 0 <= start <= limit <= size and a stride > 0 along each axis of shape {x.shape}, "
                    f"got start_indices {start_indices}, limit_indices {limit_indices}, strides {strides}"
                )
        sizes = zip(start_indices, limit_indices, steps, strict=True)
        return x.with_shape(tuple(-((start - limit) // step) for start, limit, step in sizes))

    def lay_out(self, out, x, *, start_indices, limit_indices, strides):
        return x.spec

    def host(self, x, *, start_indices, limit_indices, strides):
        if strides is None:
            return x[tuple(map(_cut, start_indices, limit_indices))]
        return x[tuple(map(_cut, start_indices, limit_indices, strides))]

    def padded(self, at, avals, operands, *, start_indices, limit_indices, strides):
        (x,), steps = operands, strides or (1,) * len(start_indices)
        sizes = zip(start_indices, limit_indices, steps, strict=True)
        counts = [(end - start + step - 1) // step for start, end, step in sizes]
        extents = [(at.room(n) - 1) * step + 1 if at.room(n) else 0 for n, step in zip(counts, steps, strict=True)]
        window = at.window(x, start_indices, extents)
        return slice(window, [0] * len(extents), extents, steps)

    def lower(self, builder, x, *, start_indices, limit_indices, strides):
        return builder.cut(x, start_indices, limit_indices, (1,) * x.ndim if strides is None else strides)

    def transpose(self, cotangent, x, *, start_indices, limit_indices, strides):
        config = []
        steps = (1,) * x.ndim if strides is None else strides
        taken = aval_of(cotangent).shape
        for start, step, m, n in zip(start_indices, steps, taken, x.shape, strict=True):
            end = start + (m - 1) * step + 1 if m else start
            config.append((start, n - end, step - 1))
        return (pad(cotangent, np.zeros((), x.dtype), config),)

    def batch(self, operands, batch_axes, *, start_indices, limit_indices, strides):
        (x,), (axis,) = operands, batch_axes
        starts = insert(start_indices, axis, 0)
        limits = insert(limit_indices, axis, aval_of(x).shape[axis])
        steps = None if strides is None else insert(strides, axis, 1)
        return slice(x, starts, limits, steps), axis


class Pad(Linear):
    """`x` in a frame of `padding_value`: for each axis `padding_config` has (low, high, interior), the padding before,
    after and between the elements. Negative low and high cut elements off.
    """

    name = "pad"
    moves_elements = True

    def infer(self, x, padding_value, *, padding_config):
        if x.dtype != padding_value.dtype or padding_value.shape:
            raise ShapeError(
                f"pad: padding_value must be a scalar of dtype {x.dtype}; got {padding_value.str_short()}, "
                f"np.shape(padding_value)={padding_value.shape}"
            )
        if len(padding_config) != x.ndim:
            raise TypeError(
                "pad: length of padding_config must equal the number of axes of operand, got padding_config "
                f"{padding_config} for operand shape {x.shape}"
            )
        if any(len(entry) != 3 or entry[2] < 0 for entry in padding_config):
            raise ValueError(
                "pad: entries of padding_config are (low, high, interior), and interior padding in padding_config "
                f"must be nonnegative, got padding_config {padding_config}"
            )
        shape = _padded_shape(x.shape, padding_config)
        if any(n < 0 for n in shape):
            raise ValueError(
                f"Dimension size after padding is not at least 0, got result shape {shape}, for padding_config "
                f"{padding_config} and operand shape {x.shape}: pad cuts more than there is"
            )
        return ShapedArray(shape, x.dtype, x.weak_type and padding_value.weak_type)

    def lay_out(self, out, x, padding_value, *, padding_config):
        return x.spec

    def host(self, x, padding_value, *, padding_config):
        out = np.empty(_padded_shape(x.shape, padding_config), x.dtype)
        out[...] = padding_value
        source, target = [], []
        for n, m, (low, _, interior) in zip(x.shape, out.shape, padding_config, strict=True):
            step = interior + 1
            first = max(
                0, -(low // step)
            )  # the elements that fall inside of the frame: 0 <= low + i·step < m
            end = max(first, min(n, -((low - m) // step)))
            source.append(_cut(first, end))
            start = low + first * step
            target.append(_cut(start, start + (end - first) * step, step) if end > first else _cut(0, 0))
        out[tuple(target)] = x[tuple(source)]
        return out

    def padded(self, at, avals, operands, *, padding_config):
        (x, value), aval = operands, avals[0]
        if at.padded_axes(avals[1]):
            at.refuse(self.name, avals)
        axes = [axis for axis, entry in enumerate(padding_config) if tuple(entry) != (0, 0, 0)]
        x = at.filled(x, aval, axes, value)
        out = self.infer(*avals, padding_config=padding_config)
        config, starts = [], []
        for n, size, (low, _, interior) in zip(aval_of(x).shape, out.shape, padding_config, strict=True):
            least, most = at.bounds(low)
            front = max(most, 0)  # from which the window that begins at the true place is taken
            spread = n + max(n - 1, 0) * interior
            config.append((front, max(at.room(size) - least - spread, 0), interior))
            starts.append(at.difference(front, low))
        return at.window(pad(x, value, config), starts, out.shape)

    def lower(self, builder, x, padding_value, *, padding_config):
        aval = self.infer(x.aval, padding_value.aval, padding_config=padding_config)
        low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
        if is_symbolic_shape((*low, *high, *aval.shape)):
            widths = [builder.shape_value(sizes) for sizes in (low, high, interior)]
            return builder.op("dynamic_pad", (x, padding_value, *widths), aval)
        attributes = (
            f"edge_padding_low = {integers(low)}, edge_padding_high = {integers(high)}, "
            f"interior_padding = {integers(interior)}"
        )
        return builder.op("pad", (x, padding_value), aval, attributes)

    def transpose(self, cotangent, x, padding_value, *, padding_config):
        zero = np.zeros((), aval_of(cotangent).dtype)
        dx = dvalue = None
        if is_linear(x):
            dx = pad(cotangent, zero, [(-low, -high, 0) for low, high, _ in padding_config])
            if any(interior for _, _, interior in padding_config):
                steps = [interior + 1 for _, _, interior in padding_config]
                dx = slice(dx, [0] * x.ndim, aval_of(dx).shape, steps)
        if is_linear(padding_value):
            is_padding = pad(full(x.shape, False, np.bool_), np.array(True), padding_config)
            dvalue = reduce_sum(select(is_padding, cotangent, zero), range(len(padding_config)))
        return dx, dvalue

    def batch(self, operands, batch_axes, *, padding_config):
        (x, value), (axis, value_axis) = operands, batch_axes
        if value_axis is None:
            return pad(x, value, insert(padding_config, axis, (0, 0, 0))), axis
        size = aval_of(value).shape[value_axis]
        x = batch_to_front(x, axis, size)
        config = ((0, 0, 0), *padding_config)
        padded = pad(x, np.zeros((), aval_of(x).dtype), config)
        is_padding = pad(full(aval_of(x).shape, False, np.bool_), np.array(True), config)
        return select(is_padding, broadcast_in_dim(value, aval_of(padded).shape, (0,)), padded), 0


slice_p = Slice()
pad_p = Pad()


def slice(
    x, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
):
    """A window of `x`; see `Slice`."""
    starts, limits = tuple(start_indices), tuple(limit_indices)
    steps = None if strides is None or all(step == 1 for step in strides) else tuple(strides)
    if steps is None and limits == aval_of(x).shape and starts == (0,) * len(limits):
        return x
    return slice_p.bind(x, start_indices=starts, limit_indices=limits, strides=steps)


def slice_axis(x, start: int, limit: int, axis: int, stride: int = 1):
    """The elements from `start` up to `limit` along one axis."""
    shape = aval_of(x).shape
    starts = [0] * len(shape)
    limits = list(shape)
    starts[axis], limits[axis] = start, limit
    return slice(
        x, starts, limits, None if stride == 1 else [1 if a != axis else stride for a in range(len(shape))]
    )


def pad(x, padding_value, padding_config: Sequence[tuple[int, int, int]]):
    """`x` in a frame of `padding_value`; see `Pad`."""
    config = tuple((low, high, interior) for low, high, interior in padding_config)
    if not any(n.__class__ is not int or n for sizes in config for n in sizes):
        return x
    return pad_p.bind(x, padding_value, padding_config=config)


def insert(values: Sequence, position: int, value) -> tuple:
    """`values` with one more at `position`."""
    return (*values[:position], value, *values[position:])


def _padded_shape(shape: tuple[int, ...], padding_config) -> tuple[int, ...]:
    return tuple(
        low + n + max(n - 1, 0) * interior + high
        for n, (low, high, interior) in zip(shape, padding_config, strict=True)
    )
