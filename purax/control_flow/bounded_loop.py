"""Loops with a bound on their steps, which makes reverse differentiation possible.

They run as `while` loops. To be linearized, a loop becomes a scan over segments of steps, √bound segments of √bound
steps. Only what a segment begins with is kept; its steps are computed again in the backward pass, so memory grows
with the root of the bound. Segments after the end of the loop are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from purax.control_flow.branches import cond
from purax.control_flow.checkpoint import checkpoint
from purax.control_flow.scan import scan
from purax.core.avals import Zero
from purax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var, eval_jaxpr
from purax.interpreters.arguments import exact_array
from purax.interpreters.linearize import linearize_jaxpr
from purax.interpreters.program_rules import ProgramCall, with_tangents
from purax.interpreters.staging import stage
from purax.lowering import jaxpr_to_stablehlo


class BoundedLoop(ProgramCall):
    """A program with `while` loops among its equations that do at most `max_steps` steps."""

    name = "bounded_loop"

    def run(self, *operands, jaxpr, max_steps):
        results = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *operands)
        return [exact_array(y, aval) for y, aval in zip(results, jaxpr.out_avals, strict=True)]

    def lower(self, builder, *operands, jaxpr, max_steps):
        return jaxpr_to_stablehlo.lower_body(builder, jaxpr.jaxpr, operands)

    def linearize(self, primals, tangents, *, jaxpr, max_steps):
        moving = [type(t) is not Zero for t in tangents]
        primal, linear, out_moving, _ = linearize_jaxpr(in_segments(jaxpr, max_steps), moving)
        results = eval_jaxpr(primal.jaxpr, primal.consts, *primals)
        out, residuals = results[: len(out_moving)], results[len(out_moving) :]
        if not any(out_moving):
            return with_tangents(out, (), out_moving)
        given = [t for t in tangents if type(t) is not Zero]
        return with_tangents(out, eval_jaxpr(linear.jaxpr, linear.consts, *residuals, *given), out_moving)

    def transpose(self, cotangents, *operands, jaxpr, max_steps):
        return super().transpose(
            cotangents, *operands, jaxpr=in_segments(jaxpr, max_steps), max_steps=max_steps
        )


bounded_loop_p = BoundedLoop()


def in_segments(closed: ClosedJaxpr, max_steps: int) -> ClosedJaxpr:
    """The program with its loops as scans of segments."""
    key = ("in segments", max_steps)
    if key not in closed.derived:
        jaxpr = closed.jaxpr

        def run(*arguments):
            values: dict[Var, Any] = dict(zip(jaxpr.invars, arguments, strict=True))
            values.update(zip(jaxpr.constvars, closed.consts, strict=True))

            def read(atom):
                return atom.array if type(atom) is Literal else values[atom]

            for eqn in jaxpr.eqns:
                operands = [read(atom) for atom in eqn.invars]
                if eqn.primitive.repeats(**eqn.params) is None:  # a `while`
                    results = scan_segments(eqn, operands, max_steps)
                else:
                    results = eqn.primitive.bind(*operands, **eqn.params)
                    results = results if eqn.primitive.multiple_results else [results]
                values.update(zip(eqn.outvars, results, strict=True))
            return [read(atom) for atom in jaxpr.outvars]

        closed.derived[key] = stage(run, closed.in_avals, jaxpr.name)
    return closed.derived[key]


def scan_segments(eqn: JaxprEqn, operands: Sequence[Any], max_steps: int) -> list[Any]:
    """A `while` equation of at most `max_steps` steps as a scan of segments."""
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    first = eqn.params["cond_nconsts"]
    start = first + eqn.params["body_nconsts"]
    cond_consts, body_consts, carry = operands[:first], operands[first:start], operands[start:]
    length = max(math.isqrt(max(max_steps - 1, 0)) + 1, 1)

    def goes_on(values):
        return eval_jaxpr(condition.jaxpr, condition.consts, *cond_consts, *values)[0]

    def step(values, _):
        def advance(*xs):
            return eval_jaxpr(body.jaxpr, body.consts, *body_consts, *xs)

        return cond(goes_on(values), advance, lambda *xs: list(xs), *values), None

    @checkpoint
    def segment(*values):
        return scan(step, list(values), None, length)[0]

    def segment_if_any(values, _):
        return cond(goes_on(values), segment, lambda *xs: list(xs), *values), None

    return scan(segment_if_any, list(carry), None, -(-max_steps // length))[0]
