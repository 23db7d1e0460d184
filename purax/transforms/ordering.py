"""Ordered effects: a program whose ordered effects follow one another by data dependence.

The engine runs operations when their operands are there. So each ordered effect takes a number from the one before it
and gives one to the next, through loops, branches and calls: the rule `in_order` of primitives that can have effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import effects
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from purax.core.trace import Trace, current, using
from purax.transforms.staging import stage

ORDER = ShapedArray((), np.dtype(np.int32))
_START = np.zeros((), np.int32)


class OrderTrace(Trace):
    """Hands the order from one ordered effect to the next."""

    __slots__ = ("order",)
    name = "order"

    def __init__(self, parent: Trace, order: Any):
        super().__init__(parent)
        self.order = order

    def process(self, primitive, operands, params):
        with using(self.parent):  # type: ignore[arg-type]
            if not effects.any_ordered(primitive.effects(**params)):
                return self.parent.process(primitive, operands, params)  # type: ignore[union-attr]
            self.order, results = primitive.in_order(self.order, operands, **params)
            return results


def run_in_order(jaxpr: Jaxpr, order: Any, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Runs a program without constants through the current trace, its ordered effects after `order`."""
    trace = OrderTrace(current.trace, order)
    with using(trace):
        results = eval_jaxpr(jaxpr, (), *operands)
    return trace.order, results


def with_order(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program (order, arguments) -> (order, results) of one without constants."""
    if "with order" not in closed.derived:

        def run(order, *operands):
            order, results = run_in_order(closed.jaxpr, order, operands)
            return [order, *results]

        closed.derived["with order"] = stage(run, [ORDER, *closed.in_avals], closed.jaxpr.name)
    return closed.derived["with order"]


def in_order(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program without constants, with its ordered effects one after the other; itself if it has none."""
    if not effects.any_ordered(closed.effects):
        return closed
    return stage(
        lambda *operands: run_in_order(closed.jaxpr, _START, operands)[1], closed.in_avals, closed.jaxpr.name
    )
