"""Forward differentiation: carries a tangent along with every value.

jvp(f)(x, dx) = f(x), f'(x) dx
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax.config import config
from purax.core.avals import Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.leaks import check_leaks
from purax.core.trace import Trace, Tracer, current
from purax.interpreters.plain_numbers import settled_all
from purax.interpreters.staging import stage
from purax.primitives.shape.broadcasting import materialize
from purax.xla.array import DeviceArray, as_operand


class JVPTracer(Tracer):
    """A value and its tangent; a value whose tangent is zero needs no tracer."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any):
        self.owner = trace
        self.primal = primal
        self.tangent = tangent
        self.aval = aval_of(primal)

    def concrete_or_none(self):
        primal = self.primal
        return primal.concrete_or_none() if isinstance(primal, Tracer) else primal

    def settled(self, settle):
        primal, tangent = settle(self.primal), settle(self.tangent)
        if primal is self.primal and tangent is self.tangent:
            return self
        return JVPTracer(self.owner, primal, tangent)


class JVPTrace(Trace):
    """Applies `jvp` rules; `linearize` rules inside of a rule whose tangents are variables of a linear program."""

    __slots__ = ("is_linear",)
    name = "jvp"
    passes_on = True

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self.on_host = self.host_rules if self.ends_eager else None
        trace: Trace | None = parent
        while trace is not None and not trace.records_tangents:
            trace = trace.parent
        self.is_linear = trace is not None

    def process(self, primitive, operands, params):
        if self.on_host is not None:
            result = self.on_host(self, primitive, operands, params)
            if result is not None:
                return result
        primals, tangents = [], []
        moves = False
        for x in operands:
            if type(x) is JVPTracer and x.owner is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                moves = True
            else:
                primals.append(x if type(x) is DeviceArray else as_operand(x))
                tangents.append(Zero.like(x))
        current.trace = self.parent
        try:
            if not moves:
                return self.parent.process(primitive, operands, params)
            rule = primitive.linearize if self.is_linear else primitive.jvp
            out, tangent = rule(primals, tangents, **params)
            if not (primitive.opens_on_tape or primitive.may_be_opened):
                out, tangent = settled_all(out), settled_all(tangent)
        finally:
            current.trace = self
        if primitive.multiple_results:
            return [
                y if type(dy) is Zero else JVPTracer(self, y, dy) for y, dy in zip(out, tangent, strict=True)
            ]
        return out if type(tangent) is Zero else JVPTracer(self, out, tangent)


def jvp_flat(function: Callable, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
    """The results of `function`, on flat lists, and their tangents; both may contain symbolic zeros."""
    outer = current.trace
    trace = JVPTrace(outer)
    arguments = [
        x if type(dx) is Zero else JVPTracer(trace, x, dx) for x, dx in zip(primals, tangents, strict=True)
    ]
    current.trace = trace
    try:
        results = function(*arguments)
    finally:
        current.trace = outer
        trace.alive = False
    out, out_tangents = [], []
    for y in results:
        own = type(y) is JVPTracer and y.owner is trace
        out.append(y.primal if own else y)
        out_tangents.append(y.tangent if own else Zero.like(y))
    if config.check_tracer_leaks:
        arguments.clear()
        y = results = None
        check_leaks([trace], "a function under jvp")
    return out, out_tangents


def jvp_jaxpr(
    closed: ClosedJaxpr, moving: Sequence[bool], force: Sequence[bool] | None = None
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program of the derivative: (arguments, tangents of the moving ones) -> (results, their non-zero tangents).

    Args:
        closed: a program without constants.
        moving: which arguments have a tangent.
        force: which results get a tangent even if it is zero.

    Returns:
        The program, and which results have a tangent.
    """
    key = ("jvp", tuple(moving), None if force is None else tuple(force))
    if key not in closed.derived:
        out_moving: list[bool] = []
        forced = [False] * len(closed.out_avals) if force is None else force

        def derivative(*args):
            primals = args[: len(moving)]
            given = iter(args[len(moving) :])
            tangents = [
                next(given) if moves else Zero.like(x) for x, moves in zip(primals, moving, strict=True)
            ]
            out, out_tangents = jvp_flat(
                lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents
            )
            out_moving.extend(type(t) is not Zero or f for t, f in zip(out_tangents, forced, strict=True))
            return [*out, *(materialize(t) for t, m in zip(out_tangents, out_moving, strict=True) if m)]

        avals = closed.in_avals
        tangent_avals = [aval for aval, moves in zip(avals, moving, strict=True) if moves]
        program = stage(derivative, [*avals, *tangent_avals], f"jvp_{closed.jaxpr.name}")
        closed.derived[key] = program, out_moving
    return closed.derived[key]


def instantiate(tangents: Sequence[Any]) -> list[Any]:
    """Tangents as arrays."""
    return [materialize(t) for t in tangents]
