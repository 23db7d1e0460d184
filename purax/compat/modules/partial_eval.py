"""`jax.interpreters.partial_eval`: recording functions as programs, and cutting programs down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.compat.modules.linear_util import WrappedFun
from purax.core.avals import ShapedArray
from purax.core.jaxpr import Jaxpr
from purax.transforms.simplify import remove_dead_code, used_inputs
from purax.transforms.staging import StagedTracer as DynamicJaxprTracer
from purax.transforms.staging import StagingTrace as DynamicJaxprTrace
from purax.transforms.staging import stage

JaxprTracer = DynamicJaxprTracer

__all__ = ["DynamicJaxprTrace", "DynamicJaxprTracer", "JaxprTracer", "dce_jaxpr", "trace_to_jaxpr_dynamic"]


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[ShapedArray], **options: Any
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The program of a flat function.

    Args:
        fun: takes and returns flat lists of arrays.
        in_avals: the types of the arguments.
        **options: jax's, without effect.

    Returns:
        The program, the types of its results, and the values of its constants.
    """
    closed = stage(fun.call_wrapped, list(in_avals), fun.__name__)
    return closed.jaxpr, closed.out_avals, closed.consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """The program without the results that are not used, and what only they need.

    Args:
        jaxpr: the program.
        used_outputs: which results are used.
        instantiate: which arguments stay though nothing uses them.

    Returns:
        The program, and which arguments it still has.
    """
    if isinstance(used_outputs, bool):
        used_outputs = [used_outputs] * len(jaxpr.outvars)
    if isinstance(instantiate, bool):
        instantiate = [instantiate] * len(jaxpr.invars)
    smaller = remove_dead_code(jaxpr, list(used_outputs))
    kept = [used or wanted for used, wanted in zip(used_inputs(smaller), instantiate, strict=True)]
    invars = [v for v, keep in zip(smaller.invars, kept, strict=True) if keep]
    return smaller.replace(invars=invars), kept
