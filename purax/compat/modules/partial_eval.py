"""`jax.interpreters.partial_eval`: recording functions as programs, and cutting programs down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax.compat.modules.linear_util import WrappedFun
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, dependent_results, eval_jaxpr
from purax.interpreters.simplify import remove_dead_code, used_inputs
from purax.interpreters.staging import StagedTracer as DynamicJaxprTracer
from purax.interpreters.staging import StagingTrace as DynamicJaxprTrace
from purax.interpreters.staging import stage

JaxprTracer = DynamicJaxprTracer
Val = Any

# Rules that libraries register for primitives of their own. Cutting a program and removing dead code follow from what a
# primitive is here (`depends`, `apart`, its effects), so that these tables are kept and not asked.
custom_partial_eval_rules: dict[Any, Callable] = {}
partial_eval_jaxpr_custom_rules: dict[Any, Callable] = {}
dce_rules: dict[Any, Callable] = {}

__all__ = [
    "DynamicJaxprTrace",
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "Val",
    "custom_partial_eval_rules",
    "dce_jaxpr",
    "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule",
    "dce_jaxpr_consts",
    "dce_rules",
    "partial_eval_jaxpr_custom_rules",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]


class PartialVal(tuple):
    """A value that is known, `(None, value)`, or of which only the type is, `(aval, None)`."""

    __slots__ = ()

    def __new__(cls, xs: tuple[Any, Any]) -> PartialVal:
        return super().__new__(cls, xs)

    @classmethod
    def known(cls, value: Any) -> PartialVal:
        return cls((None, value))

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        return cls((aval, None))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        return self[1]

    def get_aval(self) -> ShapedArray:
        return aval_of(self[1]) if self[0] is None else self[0]


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """The program of a flat function in the arguments that are not known; what needs only the others is computed.

    Args:
        fun: takes and returns flat lists of arrays.
        pvals: the arguments.
        instantiate: which results belong to the program even if they can be computed.

    Returns:
        The program, the results as known or unknown values, and the values of its constants. The program returns the
        unknown ones.
    """

    def call(*unknown: Any) -> Any:
        rest = iter(unknown)
        return fun.call_wrapped(*(p.get_known() if p.is_known() else next(rest) for p in pvals))

    closed = stage(call, [p.get_aval() for p in pvals if not p.is_known()], fun.__name__)
    jaxpr = closed.jaxpr
    flags = [instantiate] * len(jaxpr.outvars) if isinstance(instantiate, bool) else list(instantiate)
    needs = dependent_results(jaxpr, [True] * len(jaxpr.invars))
    unknown = [need or flag for need, flag in zip(needs, flags, strict=True)]
    first = remove_dead_code(jaxpr, [not flag for flag in unknown])
    known = iter(eval_jaxpr(first.replace(constvars=[], invars=first.constvars), [], *closed.consts))
    results = [
        PartialVal.unknown(v.aval) if flag else PartialVal.known(next(known))
        for v, flag in zip(jaxpr.outvars, unknown, strict=True)
    ]
    return remove_dead_code(jaxpr, unknown), results, closed.consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun,
    in_avals: Sequence[ShapedArray],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The program of a flat function.

    Args:
        fun: takes and returns flat lists of arrays.
        in_avals: the types of the arguments.
        keep_inputs: accepted, without effect: every argument stays one of the program.
        lower: accepted, without effect: programs have no values of user-defined types.
        auto_dce: whether equations that no result needs are left out.

    Returns:
        The program, the types of its results, and the values of its constants.
    """
    closed = stage(fun.call_wrapped, list(in_avals), fun.__name__)
    jaxpr = remove_dead_code(closed.jaxpr, [True] * len(closed.jaxpr.outvars)) if auto_dce else closed.jaxpr
    return jaxpr, closed.out_avals, closed.consts


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


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """`dce_jaxpr` that also drops constants; returns which constants and which arguments the program still has."""
    whole = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    flags = [instantiate] * len(jaxpr.invars) if isinstance(instantiate, bool) else list(instantiate)
    count = len(jaxpr.constvars)
    smaller, kept = dce_jaxpr(whole, used_outputs, [False] * count + flags)
    used = sum(kept[:count])
    cut = smaller.replace(constvars=smaller.invars[:used], invars=smaller.invars[used:])
    return cut, kept[:count], kept[count:]


def dce_jaxpr_call_rule(used_outputs: Sequence[bool], eqn: JaxprEqn) -> tuple[list[bool], JaxprEqn | None]:
    """The equation of a call without the results that are not used, and which of its operands it still takes."""
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    name = next(key for key in ("call_jaxpr", "jaxpr") if key in eqn.params)
    inner = eqn.params[name]
    jaxpr, kept = dce_jaxpr(getattr(inner, "jaxpr", inner), used_outputs)
    changed = ClosedJaxpr(jaxpr, inner.consts) if isinstance(inner, ClosedJaxpr) else jaxpr
    return kept, eqn.replace(
        invars=[v for v, keep in zip(eqn.invars, kept, strict=True) if keep],
        outvars=[v for v, used in zip(eqn.outvars, used_outputs, strict=True) if used],
        params={**eqn.params, name: changed},
    )


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule
