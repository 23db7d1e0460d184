"""Convolutions by a kernel of our own: what it is told, and where it is called.

The kernel takes arrays as they lie, with their axes in any order; it is told the step of each axis in memory. Its
vectors run along the output features, so convolutions with very few of them are left to XLA.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from purax.core.avals import ShapedArray
from purax.xla import native
from purax.xla.stablehlo import Builder, Value

_AXES = 3  # spatial axes that the kernel has; those that are missing come first and have size 1
_MOST = (1 << 31) - 1  # of every number along a spatial axis, so that places have no more than 63 bits
_FEW_BYTES = 48  # of output features: less than a vector


def emit_native(builder: Builder, lhs: Value, rhs: Value, out: ShapedArray, at: Any) -> Value | None:
    """The convolution by the native kernel, or None where there is none.

    Args:
        lhs: the operand.
        rhs: the kernel.
        out: the type of the result.
        at: the `Settings` of the convolution.
    """
    if not native.serves(builder) or _has_few_outputs(rhs, out, at):
        return None
    lhs_spec, rhs_spec, out_spec = at.dimension_numbers
    sizes = (
        lhs.shape[lhs_spec[0]],
        lhs.shape[lhs_spec[1]],
        rhs.shape[rhs_spec[0]],
        at.feature_group_count,
        at.batch_group_count,
    )
    spatial = (
        _filled([lhs.shape[axis] for axis in lhs_spec[2:]], 1),
        _filled([rhs.shape[axis] for axis in rhs_spec[2:]], 1),
        _filled([out.shape[axis] for axis in out_spec[2:]], 1),
        _filled(at.window_strides, 1),
        _filled([low for low, _ in at.padding], 0),
        _filled(at.lhs_dilation, 1),
        _filled(at.rhs_dilation, 1),
    )
    numbers = list(itertools.chain(*spatial))
    if max(map(abs, numbers)) > _MOST:
        return None
    (result,) = native.call(
        builder,
        "convolution",
        (lhs, rhs),
        (out,),
        sizes=sizes,
        spatial=numbers,
        lhs_steps=_steps(lhs.shape, lhs_spec),
        rhs_steps=_steps(rhs.shape, rhs_spec),
        out_steps=_steps(out.shape, out_spec),
    )
    return result


def _has_few_outputs(rhs: Value, out: ShapedArray, at: Any) -> bool:
    """Whether vectors would be mostly empty and XLA has a fast way: no groups, at most two spatial axes, few taps."""
    _, rhs_spec, out_spec = at.dimension_numbers
    if len(at.window_strides) > 2 or at.feature_group_count * at.batch_group_count > 1:
        return False
    taps = math.prod(rhs.shape[axis] for axis in rhs_spec[2:])
    places = math.prod(out.shape[axis] for axis in out_spec[2:])
    if taps > places or (taps == 1 and out_spec[1] != out.ndim - 1):  # these have vectors along other axes
        return False
    return rhs.shape[rhs_spec[0]] * out.dtype.itemsize < _FEW_BYTES


def _filled(values: Sequence[int], value: int) -> list[int]:
    return [value] * (_AXES - len(values)) + list(values)


def _steps(shape: Sequence[int], spec: Sequence[int]) -> list[int]:
    steps = [math.prod(shape[axis + 1 :]) for axis in spec]
    return [*steps[:2], *_filled(steps[2:], 0)]


__all__ = ["emit_native"]
