"""How `jvp`, `linearize`, `transpose` and `batch` rules run on the host: what the traces of the interpreters are given.

For each kind of trace, how a rule is recorded as a straight-line NumPy program (`execution.host_rules`), and what its
tracers are made of. A linearized operation is one `HostStep` on the tape, which runs backwards as such a program, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core.avals import ShapedArray
from purax.core.jaxpr import JaxprEqn, Var
from purax.core.primitive import Primitive, native
from purax.core.trace import current, using
from purax.execution.eager import eager
from purax.execution.host_program import host_function, quiet
from purax.execution.host_rules import MOVING, NUMBER, HostRules, one_operation
from purax.interpreters.jvp import JVPTrace, JVPTracer, jvp_jaxpr
from purax.interpreters.linearize import (
    HostStep,
    LinearizeTrace,
    LinearizeTracer,
    LinearRule,
    LinearTracer,
    TapeTrace,
    linearize_jaxpr,
)
from purax.interpreters.staging import stage
from purax.interpreters.transpose import transpose_jaxpr
from purax.interpreters.vmap import BatchTrace, BatchTracer
from purax.primitives.elementwise.elementwise import add_p
from purax.xla.array import DeviceArray


def jvp_rule(
    primitive: Primitive, marks: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> tuple | None:
    """The jvp of an operation as a `host_rules` rule: on operands, then tangents of the moving ones; last the type of
    the tangent of the result, None if that is zero."""
    moving = [mark is MOVING for mark in marks]
    program, (moves,) = jvp_jaxpr(one_operation(primitive, avals, params), moving)
    run = host_function(program)
    return None if run is None else (run, program.out_avals[0], program.out_avals[1] if moves else None, None)


def jvp_result(
    trace: JVPTrace, out: Any, results: Sequence[Any], tracers: Any, aval: Any, _: None
) -> JVPTracer:
    """The result of a rule of `jvp_rule` whose tangent has the type `aval`."""
    return JVPTracer(trace, out, DeviceArray(aval, results[1]))


JVPTrace.host_rules = HostRules("jvp", JVPTracer, "primal", "tangent", jvp_rule, jvp_result)


def linearize_rule(
    primitive: Primitive, marks: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> tuple | None:
    """A linearized operation as a `host_rules` rule, from operands to the result and residuals; last the `LinearRule`
    (None if the tangent of the result is zero), and which of the tangents of the operands the tangent of the result
    is, if it is one."""
    moving = [mark is MOVING for mark in marks]
    primal, linear, (moves,), count = linearize_jaxpr(one_operation(primitive, avals, params), moving)
    run = host_function(primal)
    if run is None or not moves:
        return None if run is None else (run, primal.out_avals[0], None, None)
    numbers = {v for v, mark in zip(primal.jaxpr.invars, marks, strict=True) if mark is NUMBER}
    rule = LinearRule(linear, [v in numbers for v in primal.jaxpr.outvars[1:]])
    tangents, out = linear.jaxpr.invars[count:], linear.jaxpr.outvars[0]
    return run, primal.out_avals[0], rule, tangents.index(out) if out in tangents else None


def linearize_result(
    trace: LinearizeTrace,
    out: DeviceArray,
    results: list[np.ndarray],
    tracers: Sequence[LinearizeTracer],
    rule: LinearRule,
    forwarded: int | None,
) -> LinearizeTracer:
    """The result of a rule of `linearize_rule` that has a tangent."""
    if forwarded is not None:
        return LinearizeTracer(trace, out, tracers[forwarded].tangent)
    var = Var(out.aval)
    trace.tape.equations.append(HostStep(rule, results[1:], [x.tangent.variable for x in tracers], [var]))
    return LinearizeTracer(trace, out, LinearTracer(trace.tape, var))


LinearizeTrace.host_rules = HostRules(
    "linearize", LinearizeTracer, "primal", "tangent", linearize_rule, linearize_result
)


def batch_rule(
    primitive: Primitive, marks: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> tuple | None:
    """An operation over a batch as a `host_rules` rule; last the batch axis of the result and its type without that,
    None if it has none."""
    axes = [mark if type(mark) is int else None for mark in marks]
    out_axis = None

    def batched(*operands):
        nonlocal out_axis
        out, out_axis = primitive.batch(operands, axes, **params)
        return [out]

    program = stage(batched, avals, primitive.name)
    run = host_function(program)
    if run is None:
        return None
    (aval,) = program.out_avals
    return run, aval, out_axis, None if out_axis is None else aval.without_axis(out_axis)


def batch_result(
    trace: BatchTrace, out: Any, results: Any, tracers: Any, axis: int, aval: ShapedArray
) -> BatchTracer:
    """The result of a rule of `batch_rule` that has a batch axis."""
    return BatchTracer(trace, out, axis, aval)


BatchTrace.host_rules = HostRules("batch", BatchTracer, "value", "axis", batch_rule, batch_result)


def run_on_host_backwards(equations: Sequence[JaxprEqn | HostStep], count: int, known: dict[Var, Any]) -> int:
    """Runs the first `count` equations backwards with NumPy, from the last of them down to one that is no such step,
    or whose cotangent is not on the host; how many are left."""
    if not current.trace.ends_eager:
        return count
    while count:
        step = equations[count - 1]
        if type(step) is not HostStep:
            break
        cotangent = known.get(step.outvars[0])
        if cotangent is not None:
            back = step.rule.back
            if back is None or back[0] is None or step.rule.trace_key is not config.trace_key:
                break
            if type(cotangent) is not DeviceArray or (value := cotangent.peek()) is None:
                break
            del known[step.outvars[0]]
            results = quiet.run(back[0], *step.residuals, value)
            # In the order in which its equations would run backwards: that of an addition's operands matters.
            for v, aval in zip(reversed(step.invars), reversed(back[1]), strict=True):
                if aval is not None:
                    part = DeviceArray(aval, results.pop())
                    known[v] = add_p.bind(known[v], part) if v in known else part
        count -= 1
    return count


def transposed_rule(rule: LinearRule) -> tuple[Any, list[ShapedArray | None]]:
    """The transpose of the linear part of a rule on the host, or None; the types of cotangents, None for zeros."""
    count = len(rule.numbers)
    flags = [i >= count for i in range(len(rule.linear.in_avals))]
    with using(eager):
        transposed, flowing = transpose_jaxpr(rule.linear, flags, [True])
    if rule.trace_key is not config.trace_key:
        return None, []
    avals = iter(transposed.out_avals)
    return host_function(transposed), [next(avals) if flows else None for flows in flowing]


HostStep.transposed = staticmethod(transposed_rule)
HostStep.run_backwards = staticmethod(run_on_host_backwards)
if native is not None:
    native.set_tape(LinearizeTrace, TapeTrace, LinearTracer, HostStep, LinearRule)
    native.set_addition(add_p)
    HostStep.run_backwards = staticmethod(native.run_on_host_backwards)  # the same
