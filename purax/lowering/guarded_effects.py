"""Programs whose effects happen only if a condition holds.

`vmap` runs a branch, or a turn of a loop, for all examples and takes the results of those that it is for. Their effects
alone must happen: the condition is threaded through the program to the operations with effects.
"""

from __future__ import annotations

import numpy as np

from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, inner_jaxprs
from purax.lowering.threaded_effects import Threader


class Guard(Threader):
    """Threads the condition through the operations with effects."""

    avals = (ShapedArray((), np.dtype(np.bool_)),)

    def concerns(self, closed):
        return bool(closed.effects)

    def apply(self, state, primitive, operands, params):
        if not primitive.effects(**params):
            return state, primitive.bind(*operands, **params)
        if any(True for _ in inner_jaxprs(params)):
            return primitive.thread(self, state, operands, **params)
        return state, primitive.guarded(state[0], operands, **params)


_guard = Guard()


def guarded(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program (condition, arguments) -> results of one without constants."""
    if "guarded" not in closed.derived:
        program = _guard.program(closed)
        jaxpr = program.jaxpr.replace(outvars=program.jaxpr.outvars[1:])
        closed.derived["guarded"] = ClosedJaxpr(jaxpr, program.consts)
    return closed.derived["guarded"]
