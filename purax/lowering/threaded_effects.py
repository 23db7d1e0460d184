"""Threading values through programs: rewrites a program so that it takes some values, hands them from one
operation to the next, and gives them back at its end. Loops carry them, branches and calls pass them on: the rule
`thread`.

The order of effects (`lowering.ordered_effects`) and the first error (`experimental.checkify`) are such values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.trace import Trace, current, using
from purax.interpreters.staging import stage


class Threader:
    """What is threaded, and what the operations of a program do with it.

    Attributes:
        avals: the types of the values.
    """

    avals: Sequence[ShapedArray]

    def concerns(self, closed: ClosedJaxpr) -> bool:
        """Whether some operation of the program has to do with the values."""
        raise NotImplementedError

    def apply(self, state: list[Any], primitive, operands, params) -> tuple[list[Any], Any]:
        """One operation: the values after it, and its results."""
        raise NotImplementedError

    def merged(self, state: list[Any], axis_names: tuple[Any, ...]) -> list[Any]:
        """The values after a program on parts of arrays, of those that the devices along named axes have: the same."""
        return state

    def run(
        self, closed: ClosedJaxpr, state: Sequence[Any], operands: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Runs a program through the current trace: the values after it, and its results."""
        trace = ThreadTrace(current.trace, self, list(state))
        with using(trace):
            results = eval_jaxpr(closed.jaxpr, closed.consts, *operands)
        return trace.state, results

    def program(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """The program (values, arguments) -> (values, results) of one without constants."""
        if self not in closed.derived:
            count = len(self.avals)

            def run(*args):
                state, results = self.run(closed, args[:count], args[count:])
                return [*state, *results]

            closed.derived[self] = stage(run, [*self.avals, *closed.in_avals], closed.jaxpr.name)
        return closed.derived[self]


class ThreadTrace(Trace):
    """Hands values from one operation to the next."""

    __slots__ = ("state", "threader")
    name = "thread"

    def __init__(self, parent: Trace, threader: Threader, state: list[Any]):
        super().__init__(parent)
        self.threader = threader
        self.state = state

    def process(self, primitive, operands, params):
        with using(self.parent):
            self.state, results = self.threader.apply(self.state, primitive, operands, params)
        return results
