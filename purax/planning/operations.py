"""What single operations take: arithmetic of products and convolutions, and which operations are views."""

from __future__ import annotations

import math
from typing import Any

from purax.core.jaxpr import JaxprEqn
from purax.core.specs import names_of
from purax.planning.costs import Communication, Layout, Spec
from purax.planning.hardware import bytes_of
from purax.primitives.collective import collectives

_KINDS = {
    collectives.psum_p: "all-reduce",
    collectives.pmax_p: "all-reduce",
    collectives.pmin_p: "all-reduce",
    collectives.all_gather_p: "all-gather",
    collectives.psum_scatter_p: "reduce-scatter",
    collectives.all_to_all_p: "all-to-all",
    collectives.ppermute_p: "collective-permute",
}


def flops(eqn: JaxprEqn) -> float:
    """Operations of a product or convolution, over all devices; what else there is goes at the speed of memory."""
    primitive = eqn.primitive
    if primitive.is_matrix_product:
        lhs = eqn.invars[0].aval
        (summed, _), _ = eqn.params["dimension_numbers"]
        return 2.0 * math.prod(eqn.outvars[0].aval.shape) * math.prod(lhs.shape[axis] for axis in summed)
    if primitive.is_convolution:
        # Each element of the result is a sum over the kernel, apart from the axis of its features.
        rhs = eqn.invars[1].aval
        features = eqn.params["dimension_numbers"][1][0]
        return 2.0 * math.prod(eqn.outvars[0].aval.shape) * math.prod(rhs.shape) / max(rhs.shape[features], 1)
    return 0.0


def is_view(eqn: JaxprEqn) -> bool:
    """Whether an operation only looks at its operand in another way."""
    primitive = eqn.primitive
    if not primitive.moves_elements or not eqn.invars:
        return False
    sizes = [math.prod(v.aval.shape) for v in (eqn.invars[0], eqn.outvars[0])]
    return primitive.host_is_cheap and sizes[0] == sizes[1]


def as_spec(spec: Any, ndim: int, layout: Layout) -> Spec:
    """A `PartitionSpec` for `ndim` axes; axes that the mesh does not have are none."""
    entries = [tuple(n for n in names_of(entry) if n in layout.sizes) for entry in spec]
    return (*entries, *((),) * (ndim - len(entries)))


def communications(eqn: JaxprEqn, layout: Layout) -> list[Communication]:
    """What a collective operation inside of a `shard_map` sends."""
    kind, names = _KINDS.get(eqn.primitive), eqn.params["axis_name"]
    axes = tuple(n for n in (names if isinstance(names, tuple) else (names,)) if n in layout.sizes)
    devices = layout.parts(axes)
    if kind is None or devices == 1:
        return []
    arrays = eqn.outvars if kind == "all-gather" else eqn.invars
    sizes = [int(math.prod(v.aval.shape) * bytes_of(v.aval.dtype)) for v in arrays]
    return [Communication(kind, axes, size, devices, 1, eqn.source) for size in sizes]
