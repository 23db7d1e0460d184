"""Ordered effects: a program whose ordered effects follow one another by data dependence.

XLA runs operations when their operands are there. So each ordered effect takes a number from the one before it
and gives one to the next, through loops, branches and calls.
"""

from __future__ import annotations

import numpy as np

from purax.core import effects
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, inner_jaxprs
from purax.interpreters.staging import stage
from purax.lowering.threaded_effects import Threader
from purax.primitives.collective.collectives import pmax_p

ORDER = ShapedArray((), np.dtype(np.int32))
_START = np.zeros((), np.int32)


class Order(Threader):
    """Threads the order through the operations with ordered effects."""

    avals = (ORDER,)

    def concerns(self, closed):
        return effects.any_ordered(closed.effects)

    def apply(self, state, primitive, operands, params):
        if not effects.any_ordered(primitive.effects(**params)):
            return state, primitive.bind(*operands, **params)
        if any(True for _ in inner_jaxprs(params)):
            return primitive.thread(self, state, operands, **params)
        order, results = primitive.in_order(state[0], operands, **params)
        return [order], results

    def merged(self, state, axis_names):
        """What comes next comes after the effects of all devices."""
        return [pmax_p.bind(state[0], axis_name=axis_names, axis_index_groups=None)]


_order = Order()


def in_order(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program without constants, with its ordered effects one after the other; itself if it has none."""
    if not _order.concerns(closed):
        return closed
    return stage(lambda *xs: _order.run(closed, [_START], xs)[1], closed.in_avals, closed.jaxpr.name)
