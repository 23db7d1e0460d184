"""What single primitives take; all other primitives of purax are free: they move data, or are fused with what does."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Sequence
from typing import Any

import numpy as np

import purax.api
import purax.callbacks
import purax.control_flow
import purax.execution
import purax.primitives
import purax.random
import purax.sharding
from purax.api.jit import jit_p
from purax.control_flow.annotated_call import compute_on_p, fused_p, metadata_call_p
from purax.control_flow.checkpoint import checkpoint_p
from purax.control_flow.composite import composite_p
from purax.control_flow.custom_jvp import custom_jvp_call_p
from purax.control_flow.custom_vjp import custom_vjp_call_p
from purax.control_flow.custom_vmap import custom_vmap_call_p
from purax.control_flow.linear_call import linear_call_p
from purax.control_flow.linear_solve import linear_solve_p
from purax.control_flow.scan import scan_p
from purax.core.jaxpr import inner_jaxprs
from purax.core.primitive import Primitive
from purax.experimental.roofline.roofline import (
    RooflineResult,
    RooflineRuleContext,
    RooflineShape,
    programs,
    register_roofline,
    register_standard_roofline,
    rules,
)
from purax.primitives.collective import collectives
from purax.primitives.elementwise.elementwise import Elementwise
from purax.primitives.elementwise.logic import select_n_p
from purax.primitives.products.contraction import dot_general_p
from purax.primitives.products.convolution import conv_general_dilated_p
from purax.primitives.reductions import cumulative, reduction
from purax.primitives.shape import broadcasting
from purax.sharding.shard_map import shard_map_p

__all__: list[str] = []


def _first_program(params: Any) -> Sequence[Any]:
    return list(inner_jaxprs(params))[:1]


for _call in (
    *(jit_p, checkpoint_p, custom_jvp_call_p, custom_vjp_call_p, custom_vmap_call_p, composite_p),
    *(linear_call_p, linear_solve_p, scan_p, shard_map_p, metadata_call_p, compute_on_p, fused_p),
):
    programs[_call] = _first_program


def _elementwise(context: RooflineRuleContext, *shapes: RooflineShape, **params: Any) -> RooflineResult:
    """One operation per element of the result; all operands are read, and the result is written."""
    out = RooflineShape.from_aval(context.avals_out[0])
    return RooflineResult(unfused_flops=out.size, unfused_hbm_bytes=sum(x.bytes for x in shapes) + out.bytes)


def _select(context: RooflineRuleContext, which: RooflineShape, *cases: Any, **params: Any) -> RooflineResult:
    """The choice is read and the result written: one of the cases comes with it."""
    return _elementwise(context, which)


def _reduction(context: RooflineRuleContext, x: RooflineShape, *rest: Any, **params: Any) -> RooflineResult:
    """n numbers need n − 1 operations to become one."""
    out = RooflineShape.from_aval(context.avals_out[0])
    return RooflineResult(unfused_flops=x.size - out.size, unfused_hbm_bytes=x.bytes + out.bytes)


def _cumulative(
    context: RooflineRuleContext, x: RooflineShape, *, axis: int, **params: Any
) -> RooflineResult:
    out = RooflineShape.from_aval(context.avals_out[0])
    return RooflineResult(unfused_flops=x.shape[axis], unfused_hbm_bytes=x.bytes + out.bytes)


@register_roofline(dot_general_p)
def _dot_general(
    context: RooflineRuleContext, lhs: RooflineShape, rhs: RooflineShape, *, dimension_numbers: Any, **_: Any
) -> RooflineResult:
    """A product and a sum for each pair of numbers that meet."""
    (contracted, _), (batch, _) = dimension_numbers
    out = RooflineShape.from_aval(context.avals_out[0])
    flops = 2 * out.size * math.prod(lhs.shape[axis] for axis in contracted)
    read = (0 if context.pin_lhs_in_vmem else lhs.bytes) + (0 if context.pin_rhs_in_vmem else rhs.bytes)
    return RooflineResult(
        flops=flops,
        unfused_flops=flops,
        hbm_bytes=read + out.bytes,
        unfused_hbm_bytes=lhs.bytes + rhs.bytes + out.bytes,
    )


@register_roofline(conv_general_dilated_p)
def _convolution(
    context: RooflineRuleContext,
    lhs: RooflineShape,
    rhs: RooflineShape,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    batch_group_count: int,
    **_: Any,
) -> RooflineResult:
    """A product and a sum wherever an element of the kernel meets one of the input, not where it meets padding."""
    out = RooflineShape.from_aval(context.avals_out[0])
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    meetings = 1
    for n, (left, right, result) in enumerate(zip(lhs_spec[2:], rhs_spec[2:], out_spec[2:], strict=True)):
        taps = np.arange(rhs.shape[right]) * rhs_dilation[n]
        places = np.arange(out.shape[result])[:, None] * window_strides[n] + taps - padding[n][0]
        last = (lhs.shape[left] - 1) * lhs_dilation[n]
        meetings *= int(((places >= 0) & (places <= last) & (places % lhs_dilation[n] == 0)).sum())
    features = rhs.shape[rhs_spec[0]] * rhs.shape[rhs_spec[1]]
    batch = lhs.shape[lhs_spec[0]] // batch_group_count
    return RooflineResult(
        unfused_flops=2 * meetings * features * batch,
        unfused_hbm_bytes=lhs.bytes + rhs.bytes + out.bytes,
    )


# -- collectives, on a ring of the devices along each axis


def _axes(context: RooflineRuleContext, axis_name: Any) -> list[tuple[str, int]]:
    names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
    return [(name, context.mesh.shape[name]) for name in names]


def _gathered(context: RooflineRuleContext, size: int, axis_name: Any) -> RooflineResult:
    """Each device gets `size` bytes of which it has a part; axis by axis the part grows."""
    axes = _axes(context, axis_name)
    part = size // math.prod(n for _, n in axes)
    sent, steps = {}, {}
    for name, n in axes:
        part *= n
        sent[str(name)], steps[str(name)] = part * (n - 1) // n, n
    return RooflineResult(ici_bytes=sent, ici_latency=steps)


@register_roofline(collectives.all_gather_p)
def _all_gather(
    context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **_: Any
) -> RooflineResult:
    return _gathered(context, RooflineShape.from_aval(context.avals_out[0]).bytes, axis_name)


@register_roofline(collectives.psum_scatter_p)
def _psum_scatter(
    context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **_: Any
) -> RooflineResult:
    return _gathered(context, x.bytes, axis_name)


def _all_reduce(
    context: RooflineRuleContext, *shapes: RooflineShape, axis_name: Any, **_: Any
) -> RooflineResult:
    """What is scattered as sums is gathered again."""
    total = RooflineResult.zeros()
    for x in shapes:
        once = _gathered(context, x.bytes, axis_name)
        total = total + once + once
    return total


for _primitive in (collectives.psum_p, collectives.pmax_p, collectives.pmin_p):
    rules[_primitive] = _all_reduce


@register_roofline(collectives.all_to_all_p)
def _all_to_all(
    context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, **_: Any
) -> RooflineResult:
    """On a ring with both directions, a part travels a quarter of the way round on average."""
    axes = _axes(context, axis_name)
    return RooflineResult(
        ici_bytes={str(name): x.bytes * n // 4 for name, n in axes},
        ici_latency={str(name): n // 2 for name, n in axes},
    )


@register_roofline(collectives.ppermute_p)
def _ppermute(
    context: RooflineRuleContext, x: RooflineShape, *, axis_name: Any, perm: Any, **_: Any
) -> RooflineResult:
    """As many steps as the farthest pair is apart, over the links that most pairs share."""
    axes = _axes(context, axis_name)
    ring = math.prod(n for _, n in axes)
    steps = max([min((b - a) % ring, (a - b) % ring) for a, b in perm], default=0)
    return RooflineResult(
        ici_bytes={str(name): x.bytes * steps for name, _ in axes},
        ici_latency={str(name): steps for name, _ in axes},
    )


def _register_all() -> None:
    """A rule for every primitive: by its family, or none of the counts."""
    for package in (
        purax.primitives,
        purax.api,
        purax.execution,
        purax.sharding,
        purax.control_flow,
        purax.callbacks,
        purax.random,
    ):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Primitive) and value not in rules and value not in programs:
                    if isinstance(value, Elementwise):
                        rules[value] = _elementwise
                    else:
                        register_standard_roofline(value)


_register_all()
rules[select_n_p] = _select
for _primitive in (
    *(broadcasting.reduce_sum_p, reduction.reduce_max_p, reduction.reduce_min_p, reduction.reduce_prod_p),
    *(reduction.reduce_and_p, reduction.reduce_or_p, reduction.reduce_xor_p),
):
    rules[_primitive] = _reduction
for _primitive in (
    *(cumulative.cumsum_p, cumulative.cumprod_p, cumulative.cummax_p, cumulative.cummin_p),
    cumulative.cumlogsumexp_p,
):
    rules[_primitive] = _cumulative
