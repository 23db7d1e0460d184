"""Convolution, in XLA's general form: any number of spatial axes, strides, padding, dilation and groups.

out[n, o, p] = Σ lhs[n, i, p·stride + q·rhs_dilation − padding] · rhs[o, i, q]   over i, q
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import is_symbolic_shape
from purax.core.primitive import Primitive, is_linear
from purax.primitives import layouts
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.products.contraction import check_preferred, precision_attributes
from purax.primitives.products.convolution_forms import emit_convolution
from purax.primitives.products.convolution_on_accelerators import emit_on_accelerator
from purax.primitives.shape.broadcasting import broadcast_in_dim, move_axis
from purax.primitives.shape.reshaping import reshape, rev
from purax.primitives.shape.slicing import pad, pad_p
from purax.xla.stablehlo import Builder, Value, booleans, integer_pairs, integers


class ConvDimensionNumbers(NamedTuple):
    """Which axes of the operands and the result are what.

    Attributes:
        lhs_spec: (batch axis, feature axis, spatial axes …) of the first operand.
        rhs_spec: (output feature axis, input feature axis, spatial axes …) of the kernel.
        out_spec: (batch axis, feature axis, spatial axes …) of the result.
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


class Settings(NamedTuple):
    """The parameters of a convolution, which most of its rules read and some change."""

    window_strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int
    batch_group_count: int
    precision: Any
    preferred_element_type: Any

    def convolve(self, lhs, rhs, **changes):
        """The convolution with these parameters, some of them changed."""
        return conv_general_dilated_p.bind(lhs, rhs, **self._replace(**changes)._asdict())

    def emit(self, builder: Builder, lhs: Value, rhs: Value, out: ShapedArray) -> Value:
        """Emits XLA's own operation."""
        if is_symbolic_shape([n for pair in self.padding for n in pair]):  # where StableHLO takes numbers
            config = [(0, 0, 0)] * lhs.ndim
            for axis, (low, high), spread in zip(
                self.dimension_numbers.lhs_spec[2:], self.padding, self.lhs_dilation, strict=True
            ):
                config[axis] = (low, high, spread - 1)
            zero = builder.constant(0, ShapedArray((), lhs.dtype))
            framed = pad_p.lower(builder, lhs, zero, padding_config=tuple(config))
            ones, none = (1,) * len(self.padding), ((0, 0),) * len(self.padding)
            return self._replace(padding=none, lhs_dilation=ones).emit(builder, framed, rhs, out)
        specs = [
            _spec_text(spec, letters)
            for spec, letters in zip(self.dimension_numbers, ("bf", "oi", "bf"), strict=True)
        ]
        attributes = (
            f"window_strides = {integers(self.window_strides)}, padding = {integer_pairs(self.padding)}, "
            f"lhs_dilation = {integers(self.lhs_dilation)}, rhs_dilation = {integers(self.rhs_dilation)}, "
            f"window_reversal = {booleans([False] * len(self.window_strides))}, "
            f"dimension_numbers = #stablehlo.conv<{specs[0]}x{specs[1]}->{specs[2]}>, "
            f"feature_group_count = {self.feature_group_count} : i64, "
            f"batch_group_count = {self.batch_group_count} : i64"
            f"{precision_attributes(self.precision, builder.platform, lhs.dtype, rhs.dtype, out.dtype)}"
        )
        return builder.op("convolution", (lhs, rhs), out, attributes)


class Sizes(NamedTuple):
    """Sizes along one spatial axis: of the operands and the result, spread out by their dilations."""

    lhs: int
    rhs: int
    out: int


class ConvGeneralDilated(Primitive):
    """The convolution of `lhs` with the kernel `rhs`."""

    name = "conv_general_dilated"
    is_bilinear = True
    is_convolution = True
    is_heavy = True

    def infer(
        self,
        lhs,
        rhs,
        *,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision,
        preferred_element_type,
    ):
        numbers = dimension_numbers
        if lhs.dtype != rhs.dtype:
            raise TypeError(
                f"conv_general_dilated needs operands of one dtype, got {lhs.str_short()} and {rhs.str_short()}"
            )
        if lhs.ndim != rhs.ndim or lhs.ndim < 2:
            raise ValueError(
                "conv_general_dilated needs operands with as many axes each (batch, features, spatial axes), got "
                f"shapes {lhs.shape} and {rhs.shape}"
            )
        spatial = lhs.ndim - 2
        for name, value in (
            ("window_strides", window_strides),
            ("padding", padding),
            ("lhs_dilation", lhs_dilation),
            ("rhs_dilation", rhs_dilation),
        ):
            if len(value) != spatial:
                raise ValueError(
                    f"conv_general_dilated: {name} {value} needs an entry for each of the {spatial} spatial axes"
                )
        for name, value in (
            ("window_strides", window_strides),
            ("lhs_dilation", lhs_dilation),
            ("rhs_dilation", rhs_dilation),
        ):
            if any(n < 1 for n in value):
                raise ValueError(f"conv_general_dilated: {name} must be positive, got {value}")
        for name, spec in zip(("lhs", "rhs", "out"), numbers, strict=True):
            if sorted(spec) != list(range(lhs.ndim)):
                raise ValueError(
                    f"conv_general_dilated: {name}_spec {spec} is not an order of {lhs.ndim} axes"
                )
        batch, features = lhs.shape[numbers.lhs_spec[0]], lhs.shape[numbers.lhs_spec[1]]
        outputs, inputs = rhs.shape[numbers.rhs_spec[0]], rhs.shape[numbers.rhs_spec[1]]
        for name, count in (("feature_group_count", feature_group_count), ("batch_group_count", batch_group_count)):
            if count < 1:
                raise ValueError(f"conv_general_dilated {name} must be a positive integer, got {count}.")
        if feature_group_count > 1 and batch_group_count > 1:
            raise ValueError(
                "conv_general_dilated: At most one of batch_group_count and feature_group_count may be > 1, got "
                f"batch_group_count={batch_group_count} and feature_group_count={feature_group_count}"
            )
        if features != inputs * feature_group_count:
            fault = (
                f"feature_group_count must divide lhs feature dimension size, but {feature_group_count} does not "
                f"divide {features}"
                if features % feature_group_count
                else "lhs feature dimension size divided by feature_group_count must equal the rhs input feature "
                f"dimension size, but {features} // {feature_group_count} != {inputs}"
            )
            raise ValueError(
                f"conv_general_dilated {fault}: the operand of shape {lhs.shape} has {features} features, the kernel "
                f"of shape {rhs.shape} takes {inputs} in each of {feature_group_count} groups"
            )
        if batch % batch_group_count:
            raise ValueError(
                "conv_general_dilated batch_group_count must divide lhs batch dimension size, but "
                f"{batch_group_count} does not divide {batch}."
            )
        groups = feature_group_count * batch_group_count
        if outputs % groups:
            which = "feature" if feature_group_count > 1 else "batch"
            raise ValueError(
                f"conv_general_dilated rhs output feature dimension size must be a multiple of {which}_group_count, "
                f"but {outputs} is not a multiple of {groups}: the output features of the kernel are not divisible by "
                f"{groups} groups"
            )
        out = [0] * lhs.ndim
        out[numbers.out_spec[0]] = batch // batch_group_count
        out[numbers.out_spec[1]] = outputs
        for i in range(spatial):
            n = dilated(lhs.shape[numbers.lhs_spec[2 + i]], lhs_dilation[i]) + sum(padding[i])
            window = dilated(rhs.shape[numbers.rhs_spec[2 + i]], rhs_dilation[i])
            out[numbers.out_spec[2 + i]] = 0 if n < window else (n - window) // window_strides[i] + 1
        dtype = lhs.dtype
        if preferred_element_type is not None:
            check_preferred(self.name, dtype, preferred_element_type)
            dtype = preferred_element_type
        return ShapedArray(tuple(out), dtype, lhs.weak_type and rhs.weak_type)

    def lay_out(self, out, lhs, rhs, *, dimension_numbers, feature_group_count, batch_group_count, **params):
        (batch, *lhs_rest), (features, *rhs_rest), (out_batch, out_features, *_) = dimension_numbers
        layouts.check_whole(self.name, lhs, lhs_rest, "sums along")
        layouts.check_whole(self.name, rhs, rhs_rest, "sums along")
        if feature_group_count > 1 or batch_group_count > 1:
            layouts.check_whole(self.name, rhs, (features,), "groups")
            if batch_group_count > 1:
                layouts.check_whole(self.name, lhs, (batch,), "groups")
        entries = [None] * out.ndim
        entries[out_batch], entries[out_features] = lhs.spec[batch], rhs.spec[features]
        return entries

    def host_work(self, lhs, rhs, **params):
        out = self.infer(lhs, rhs, **params)
        return out.size * rhs.size // max(rhs.shape[params["dimension_numbers"].rhs_spec[0]], 1)

    def host(self, lhs, rhs, *, dimension_numbers, preferred_element_type, precision, **params):
        out_dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
        wide = _accumulator(out_dtype)
        a = np.transpose(lhs, dimension_numbers.lhs_spec).astype(wide, copy=False)
        b = np.transpose(rhs, dimension_numbers.rhs_spec).astype(wide, copy=False)
        out = _convolve(a, b, **params)
        return np.transpose(out, np.argsort(dimension_numbers.out_spec)).astype(out_dtype)

    def padded(self, at, avals, operands, **params):
        lhs_aval, rhs_aval = avals
        settings = Settings(**params)
        lhs_spec, rhs_spec, out_spec = settings.dimension_numbers
        groups = settings.feature_group_count * settings.batch_group_count
        batch = lhs_spec[:1] if settings.batch_group_count > 1 else ()
        if groups > 1 and at.padded_axes(rhs_aval.with_shape((rhs_aval.shape[rhs_spec[0]],))):
            at.refuse(self.name, avals, "its groups of features are padded")
        if any(at.is_padded(lhs_aval.shape[axis]) for axis in batch):
            at.refuse(self.name, avals, "its groups of examples are padded")
        lhs = at.filled(operands[0], lhs_aval, lhs_spec[1:], 0)
        rhs = at.filled(operands[1], rhs_aval, rhs_spec[1:], 0)
        out = self.infer(*avals, **params)
        config = [(0, 0, 0)] * lhs_aval.ndim
        starts: list[Any] = [0] * lhs_aval.ndim
        rooms = list(aval_of(lhs).shape)
        for i, axis in enumerate(lhs_spec[2:]):
            low, spread = settings.padding[i][0], settings.lhs_dilation[i]
            least, most = at.bounds(low)
            window = dilated(aval_of(rhs).shape[rhs_spec[2 + i]], settings.rhs_dilation[i])
            count = at.room(out.shape[out_spec[2 + i]])
            rooms[axis] = (count - 1) * settings.window_strides[i] + window if count else 0
            front = max(most, 0)
            wide = dilated(aval_of(lhs).shape[axis], spread)
            config[axis] = (front, max(rooms[axis] - least - wide, 0), spread - 1)
            starts[axis] = at.difference(front, low)
        framed = at.window(pad(lhs, np.zeros((), lhs_aval.dtype), config), starts, rooms)
        ones, none = (1,) * len(settings.padding), ((0, 0),) * len(settings.padding)
        return settings.convolve(framed, rhs, padding=none, lhs_dilation=ones)

    def lower(self, builder, lhs, rhs, **params):
        out = self.infer(lhs.aval, rhs.aval, **params)
        if not (
            lhs.aval.size and rhs.aval.size and out.size
        ):  # sums of nothing, some of which XLA refuses
            return builder.constant(0, out)
        at = Settings(**params)
        if builder.platform != "cpu":
            return emit_on_accelerator(builder, lhs, rhs, out, at)
        found = emit_convolution(builder, lhs, rhs, out, at)
        return at.emit(builder, lhs, rhs, out) if found is None else found

    def jvp(self, primals, tangents, **params):
        (lhs, rhs), (dlhs, drhs) = primals, tangents
        out = self.bind(lhs, rhs, **params)
        parts = []
        if type(dlhs) is not Zero:
            parts.append(self.bind(dlhs, rhs, **params))
        if type(drhs) is not Zero:
            parts.append(self.bind(lhs, drhs, **params))
        return out, parts[0] if len(parts) == 1 else add(*parts)

    def transpose(self, cotangent, lhs, rhs, **params):
        if is_linear(lhs):
            return convert(transpose_lhs(cotangent, lhs, rhs, Settings(**params)), lhs), None
        return None, convert(transpose_rhs(cotangent, lhs, rhs, Settings(**params)), rhs)

    def batch(self, operands, batch_axes, **params):
        avals = [aval_of(x) for x in operands]
        if any(axis is not None and not a.shape[axis] for a, axis in zip(avals, batch_axes, strict=True)):
            each = [
                a if axis is None else a.without_axis(axis) for a, axis in zip(avals, batch_axes, strict=True)
            ]
            out = self.infer(*each, **params)
            return broadcast_in_dim(np.zeros((), out.dtype), (0, *out.shape), ()), 0  # of no examples
        return batch_convolution(operands, batch_axes, Settings(**params))


conv_general_dilated_p = ConvGeneralDilated()


def convert(x, like):
    return convert_element_type(x, like.dtype) if aval_of(x).dtype != like.dtype else x


def dilated(size: int, dilation: int) -> int:
    """The size of an axis with dilation − 1 holes between elements."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def _spec_text(spec: Sequence[int], letters: str) -> str:
    names = [""] * len(spec)
    names[spec[0]], names[spec[1]] = list(letters)
    for i, axis in enumerate(spec[2:]):
        names[axis] = str(i)
    return f"[{', '.join(names)}]"


def _accumulator(dtype: Any) -> Any:
    """The dtype in which NumPy sums products of `dtype`."""
    if dtypes.is_floating(dtype) and dtype.itemsize < 4:
        return np.dtype(np.float32)
    if dtypes.is_integer(dtype) and dtype.kind == "V":  # NumPy does no arithmetic with integers of four bits
        return np.dtype(np.int32)
    return dtype


def _convolve(
    a, b, *, window_strides, padding, lhs_dilation, rhs_dilation, feature_group_count, batch_group_count
):
    """Convolution of arrays with axes (batch, features, spatial …) and (outputs, inputs, spatial …)."""
    spread = np.zeros(
        (*a.shape[:2], *(dilated(n, d) for n, d in zip(a.shape[2:], lhs_dilation, strict=True))), a.dtype
    )
    spread[(slice(None), slice(None), *(slice(None, None, d) for d in lhs_dilation))] = a
    spread = np.pad(spread, [(0, 0), (0, 0), *((max(lo, 0), max(hi, 0)) for lo, hi in padding)])
    crop = [slice(max(-lo, 0), spread.shape[2 + i] - max(-hi, 0)) for i, (lo, hi) in enumerate(padding)]
    spread = spread[(slice(None), slice(None), *crop)]
    window = [dilated(n, d) for n, d in zip(b.shape[2:], rhs_dilation, strict=True)]
    sizes = [
        0 if n < w else (n - w) // s + 1
        for n, w, s in zip(spread.shape[2:], window, window_strides, strict=True)
    ]
    groups = feature_group_count * batch_group_count
    batch = a.shape[0] // batch_group_count
    out = np.zeros((batch, b.shape[0], *sizes), a.dtype)
    if out.size == 0 or b.size == 0:
        return out
    for g in range(groups):
        rows = spread[g * batch : (g + 1) * batch] if batch_group_count > 1 else spread
        width = a.shape[1] // feature_group_count
        rows = rows[:, g * width : (g + 1) * width] if feature_group_count > 1 else rows
        outputs = b.shape[0] // groups
        kernel = b[g * outputs : (g + 1) * outputs]
        total = np.zeros((batch, outputs, math.prod(sizes)), a.dtype)
        for offset in itertools.product(*map(range, b.shape[2:])):
            taken = rows[
                (
                    slice(None),
                    slice(None),
                    *(
                        slice(q * d, q * d + (n - 1) * s + 1, s)
                        for q, d, n, s in zip(offset, rhs_dilation, sizes, window_strides, strict=True)
                    ),
                )
            ]
            total += np.einsum(
                "oi,nip->nop", kernel[(..., *offset)], taken.reshape(batch, taken.shape[1], -1)
            )
        out[:, g * outputs : (g + 1) * outputs] = total.reshape(batch, outputs, *sizes)
    return out


def spatial_sizes(lhs, rhs, out, at: Settings) -> list[Sizes]:
    """The spread out sizes along each spatial axis; `out` counts as dilated by the strides."""
    numbers = at.dimension_numbers
    return [
        Sizes(
            dilated(lhs.shape[numbers.lhs_spec[2 + i]], at.lhs_dilation[i]),
            dilated(rhs.shape[numbers.rhs_spec[2 + i]], at.rhs_dilation[i]),
            dilated(out.shape[numbers.out_spec[2 + i]], at.window_strides[i]),
        )
        for i in range(len(at.window_strides))
    ]


def transpose_lhs(cotangent, lhs, rhs, at: Settings):
    """The cotangent of the first operand: a convolution with the reversed kernel, inputs and outputs exchanged."""
    lhs_spec, rhs_spec, out_spec = at.dimension_numbers
    pads = []
    for n, (low, _) in zip(spatial_sizes(lhs, rhs, aval_of(cotangent), at), at.padding, strict=True):
        before = n.rhs - low - 1
        pads.append((before, n.lhs + n.rhs - 1 - n.out - before))
    groups = at.feature_group_count * at.batch_group_count
    kernel = rhs
    if groups > 1:  # each group has its own inputs and outputs: (g·o, i) becomes (o, g·i)
        kernel = move_group(kernel, rhs_spec[0], rhs_spec[1], groups)
    result = at.convolve(
        convert(cotangent, rhs),
        rev(kernel, rhs_spec[2:]),
        window_strides=at.lhs_dilation,
        padding=tuple(pads),
        lhs_dilation=at.window_strides,
        dimension_numbers=ConvDimensionNumbers(out_spec, (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]), lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
    )
    if at.batch_group_count > 1:  # the groups came out as features, and belong to the batch
        result = move_group(result, lhs_spec[1], lhs_spec[0], at.batch_group_count)
    return result


def transpose_rhs(cotangent, lhs, rhs, at: Settings):
    """The cotangent of the kernel: a convolution of the operand with the cotangent, batch and features exchanged."""
    lhs_spec, rhs_spec, out_spec = at.dimension_numbers
    sizes = spatial_sizes(lhs, rhs, aval_of(cotangent), at)
    pads = tuple(
        (low, n.out + n.rhs - n.lhs - 1 - low) for n, (low, _) in zip(sizes, at.padding, strict=True)
    )
    swapped = ConvDimensionNumbers(
        (lhs_spec[1], lhs_spec[0], *lhs_spec[2:]),
        (out_spec[1], out_spec[0], *out_spec[2:]),
        (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]),
    )
    return at.convolve(
        lhs,
        convert(cotangent, lhs),
        window_strides=at.rhs_dilation,
        padding=pads,
        rhs_dilation=at.window_strides,
        dimension_numbers=swapped,
        feature_group_count=at.batch_group_count,
        batch_group_count=at.feature_group_count,
    )


def move_group(x, source: int, destination: int, groups: int):
    """Takes the leading factor `groups` out of axis `source` and makes it the leading factor of axis `destination`."""
    return merge_axis(split_axis(x, source, groups), 0, destination)


def split_axis(x, axis: int, size: int):
    """Splits the leading factor `size` off an axis, as a new first axis."""
    shape = aval_of(x).shape
    cut = reshape(x, (*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))
    return move_axis(cut, axis, 0)


def merge_axis(x, source: int, destination: int):
    """Removes axis `source` and makes it the leading factor of axis `destination`, counted after the removal."""
    x = move_axis(x, source, destination)
    shape = aval_of(x).shape
    return reshape(
        x, (*shape[:destination], shape[destination] * shape[destination + 1], *shape[destination + 2 :])
    )


def batch_convolution(operands, batch_axes, at: Settings):
    """Batches become part of the batch axis, the output features, or the groups."""
    (lhs, rhs), (lhs_axis, rhs_axis) = operands, batch_axes
    lhs_spec, rhs_spec, out_spec = at.dimension_numbers
    if lhs_axis is not None and rhs_axis is not None:
        size = aval_of(lhs).shape[lhs_axis]
        rhs = merge_axis(rhs, rhs_axis, rhs_spec[0])
        if at.batch_group_count > 1:
            lhs = merge_axis(lhs, lhs_axis, lhs_spec[0])
            out = at.convolve(lhs, rhs, batch_group_count=at.batch_group_count * size)
        else:
            lhs = merge_axis(lhs, lhs_axis, lhs_spec[1])
            out = at.convolve(lhs, rhs, feature_group_count=at.feature_group_count * size)
        return split_axis(out, out_spec[1], size), 0
    if lhs_axis is not None:
        size = aval_of(lhs).shape[lhs_axis]
        if at.batch_group_count == 1:
            lhs = merge_axis(lhs, lhs_axis, lhs_spec[0])
        else:  # the batch must vary faster than the group: (g, size, n) along the batch axis
            grouped = split_axis(move_axis(lhs, lhs_axis, 0), lhs_spec[0] + 1, at.batch_group_count)
            lhs = merge_axis(merge_axis(grouped, 1, lhs_spec[0] + 1), 0, lhs_spec[0])
        return split_axis(at.convolve(lhs, rhs), out_spec[0], size), 0
    size = aval_of(rhs).shape[rhs_axis]
    groups = at.feature_group_count * at.batch_group_count
    if groups == 1:
        return split_axis(at.convolve(lhs, merge_axis(rhs, rhs_axis, rhs_spec[0])), out_spec[1], size), 0
    # Output features are grouped: (g, size, o) along the output axis.
    grouped = split_axis(move_axis(rhs, rhs_axis, 0), rhs_spec[0] + 1, groups)
    rhs = merge_axis(merge_axis(grouped, 1, rhs_spec[0] + 1), 0, rhs_spec[0])
    by_group = split_axis(at.convolve(lhs, rhs), out_spec[1], groups)  # (g, …, size·o, …)
    by_size = split_axis(by_group, out_spec[1] + 1, size)  # (size, g, …, o, …)
    return merge_axis(by_size, 1, out_spec[1] + 1), 0
