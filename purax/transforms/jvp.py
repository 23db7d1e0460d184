"""Forward differentiation: carries a tangent along with every value.

jvp(f)(x, dx) = f(x), f'(x) dx
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core.avals import Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.leaks import check_leaks
from purax.core.primitive import Primitive
from purax.core.trace import Trace, Tracer, current
from purax.ops.broadcasting import materialize
from purax.transforms.host_program import host_function, quiet
from purax.transforms.host_rules import learn, one_operation, rules, split_types
from purax.transforms.staging import stage
from purax.xla.array import DeviceArray


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


class JVPTrace(Trace):
    """Applies `jvp` rules."""

    __slots__ = ()
    name = "jvp"
    passes_on = True

    def process(self, primitive, operands, params):
        if self.ends_eager and (result := self.process_on_host(primitive, operands, params)) is not None:
            return result
        primals, tangents = [], []
        moves = False
        for x in operands:
            if type(x) is JVPTracer and x.owner is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                moves = True
            else:
                primals.append(x)
                tangents.append(Zero.like(x))
        current.trace = self.parent
        try:
            if not moves:
                return self.parent.process(primitive, operands, params)
            out, tangent = primitive.jvp(primals, tangents, **params)
        finally:
            current.trace = self
        if primitive.multiple_results:
            return [
                y if type(dy) is Zero else JVPTracer(self, y, dy) for y, dy in zip(out, tangent, strict=True)
            ]
        return out if type(tangent) is Zero else JVPTracer(self, out, tangent)

    def process_on_host(self, primitive, operands, params) -> Any:
        """`process` by a rule that `host_rules` knows; None if it knows none, or a value is not on the host."""
        parts: list[Any] = ["jvp", config.trace_key, primitive]
        values, directions = [], []
        for x in operands:
            if type(x) is JVPTracer and x.owner is self:
                dx, x = x.tangent, x.primal
                if type(dx) is not DeviceArray or dx.aval is not x.aval or (value := dx.peek()) is None:
                    return None
                directions.append(value)
                parts.append(None)  # marks what moves
            if type(x) is DeviceArray:
                value = x._host
                if value is None and (value := x.peek()) is None:
                    return None
                parts.append(x.aval)
            elif type(x) is np.ndarray and not x.shape:  # a number
                value = x
                parts.append(aval_of(x))
            else:
                return None
            values.append(value)
        if not directions:
            return None
        key = (*parts, *params.items())
        try:
            rule = rules.get(key, 0)
        except TypeError:  # a parameter that cannot be hashed
            return None
        if type(rule) is int:
            rule = learn(key, make_rule, primitive, parts[3:], params)
        if rule is None:
            return None
        run, out_aval, tangent_aval = rule
        if tangent_aval is None:
            return DeviceArray(out_aval, quiet.run(run, *values, *directions)[0])
        out, tangent = quiet.run(run, *values, *directions)
        return JVPTracer(self, DeviceArray(out_aval, out), DeviceArray(tangent_aval, tangent))


def make_rule(primitive: Primitive, types: Sequence[Any], params: dict[str, Any]) -> tuple | None:
    """The jvp of an operation on operands of `types`, each with a None before it if the operand has a tangent.

    Returns:
        The function of operands and tangents on the host, the types of the result and its tangent (None if that is
        zero); or None where an operation has none.
    """
    if primitive.runs_itself or primitive.multiple_results:
        return None
    avals, moving = split_types(types)
    program, (moves,) = jvp_jaxpr(one_operation(primitive, avals, params), moving)
    run = host_function(program)
    return None if run is None else (run, program.out_avals[0], program.out_avals[1] if moves else None)


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
