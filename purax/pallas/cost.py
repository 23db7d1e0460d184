"""What a function costs: its operations, counted in its program, and the bytes of its arguments and results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from purax.api.jit import make_jaxpr
from purax.core.jaxpr import ClosedJaxpr, inner_jaxprs
from purax.pallas.specs import CostEstimate
from purax.primitives.elementwise import transcendental
from purax.primitives.elementwise.elementwise import Elementwise
from purax.primitives.products.contraction import dot_general_p


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """What a call of a function costs.

    Args:
        fun: the function.
        *args, **kwargs: its arguments, or their types.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> square = px.ShapeDtypeStruct((8, 8), jnp.float32)
    >>> pl.estimate_cost(lambda x, y: jnp.exp(x @ y), square, square)
    CostEstimate(flops=1024, transcendentals=64, bytes_accessed=768, remote_bytes_transferred=0)
    """
    closed = make_jaxpr(lambda *a: fun(*a, **kwargs))(*args)
    flops, transcendentals = _operations(closed)
    size = sum(aval.size * aval.dtype.itemsize for aval in [*closed.in_avals, *closed.out_avals])
    return CostEstimate(flops=flops, transcendentals=transcendentals, bytes_accessed=size)


def _operations(closed: ClosedJaxpr) -> tuple[int, int]:
    """The operations of a program, and how many of them are transcendental functions; loops count once."""
    flops = transcendentals = 0
    for eqn in closed.eqns:
        size = sum(v.aval.size for v in eqn.outvars)
        if eqn.primitive is dot_general_p:
            (contracted, _), _ = eqn.params["dimension_numbers"]
            flops += 2 * size * math.prod(eqn.invars[0].aval.shape[axis] for axis in contracted)
        elif isinstance(eqn.primitive, Elementwise):
            if type(eqn.primitive).__module__ == transcendental.__name__:
                transcendentals += size
            else:
                flops += size
        for inner in inner_jaxprs(eqn.params):
            inside = _operations(inner)
            flops, transcendentals = flops + inside[0], transcendentals + inside[1]
    return flops, transcendentals
