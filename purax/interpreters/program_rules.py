"""`ProgramCall`: the family of primitives that call one program, and what differentiating and vectorizing a call means:
calling the differentiated or vectorized program in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.core.avals import Zero
from purax.core.jaxpr import ClosedJaxpr, dependent_results
from purax.core.primitive import LinearOperand, Primitive
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.transpose import transpose_jaxpr
from purax.interpreters.vmap import batch_jaxpr
from purax.primitives.shape.broadcasting import batch_size, move_axis


class ProgramCall(Primitive):
    """Calls the program `jaxpr`, which has no constants, on its operands."""

    multiple_results = True
    runs_itself = True

    def infer(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def padded(self, at, avals, operands, *, jaxpr, **params):
        return at.evaluate(jaxpr, operands)

    def depends(self, flags, *, jaxpr, **params):
        return dependent_results(jaxpr.jaxpr, flags)

    def call(
        self, closed: ClosedJaxpr, operands: Sequence[Any], params: dict[str, Any], role: str = ""
    ) -> list[Any]:
        """Calls a program made from another in the same way; its constants become operands."""
        changed = self.params_for(role, params)
        return self.bind(*closed.consts, *operands, jaxpr=hoist_constants(closed), **changed)

    def params_for(self, role: str, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a call whose program is the `role` ("jvp", "linear", "transpose", "vmap") of another's."""
        return params

    def jvp(self, primals, tangents, *, jaxpr, **params):
        moving = [type(t) is not Zero for t in tangents]
        derivative, out_moving = jvp_jaxpr(jaxpr, moving)
        results = self.call(
            derivative, [*primals, *(t for t in tangents if type(t) is not Zero)], params, "jvp"
        )
        return with_tangents(results[: len(out_moving)], results[len(out_moving) :], out_moving)

    def transpose(self, cotangents, *operands, jaxpr, **params):
        linear = [type(x) is LinearOperand for x in operands]
        given = [type(c) is not Zero for c in cotangents]
        transposed, flowing = transpose_jaxpr(jaxpr, linear, given)
        fixed = [x for x in operands if type(x) is not LinearOperand]
        results = self.call(
            transposed, [*fixed, *(c for c in cotangents if type(c) is not Zero)], params, "transpose"
        )
        return by_operand(operands, flowing, results)

    def batch(self, operands, batch_axes, **params):
        return self.batch_collective(batch_size(operands, batch_axes), None, operands, batch_axes, **params)

    def names_axis(self, axis_name, *, jaxpr, **params):
        return uses_axis(jaxpr, axis_name)

    def batch_collective(self, size, axis_name, operands, batch_axes, *, jaxpr, **params):
        batched = [axis is not None for axis in batch_axes]
        moved = [
            x if axis is None else move_axis(x, axis, 0) for x, axis in zip(operands, batch_axes, strict=True)
        ]
        vectorized, out_batched = batch_jaxpr(jaxpr, batched, size, axis_name)
        return self.call(vectorized, moved, params, "vmap"), [0 if b else None for b in out_batched]

    def effects(self, *, jaxpr, **params):
        return jaxpr.effects

    def thread(self, threader, state, operands, *, jaxpr, **params):
        results = self.call(threader.program(jaxpr), [*state, *operands], params)
        return results[: len(state)], results[len(state) :]


def with_tangents(
    out: Sequence[Any], tangents: Sequence[Any], moving: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    """Results and their tangents, of which only those of moving results are given."""
    given = iter(tangents)
    return list(out), [next(given) if moves else Zero.like(y) for y, moves in zip(out, moving, strict=True)]


def by_operand(operands: Sequence[Any], flowing: Sequence[bool], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the operands, given those of the linear operands that a cotangent flows to."""
    flows, given = iter(flowing), iter(cotangents)
    return [
        (next(given) if next(flows) else Zero(x.aval)) if type(x) is LinearOperand else None for x in operands
    ]


def uses_axis(closed: ClosedJaxpr, axis_name: Any) -> bool:
    """Whether a program communicates over a named axis."""
    key = ("uses_axis", axis_name)
    if key not in closed.derived:
        closed.derived[key] = any(eqn.primitive.names_axis(axis_name, **eqn.params) for eqn in closed.eqns)
    return closed.derived[key]
