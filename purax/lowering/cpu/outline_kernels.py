"""What XLA compiles anew for each call of a function, though all calls are alike: joining arrays.

In a function with several calls, arrays that products made and products or sums take, such as the cotangents of
queries, keys and values, are joined by a native kernel. Elsewhere XLA may fuse the joining with its neighbours,
which is better.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from purax.core import dtypes
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from purax.core.jaxpr_hash import fingerprint
from purax.core.primitive import Primitive
from purax.lowering.cpu.outline import number_equations
from purax.lowering.cpu.row_clusters import with_row_programs
from purax.primitives.elementwise.conversion import convert_element_type_p
from purax.primitives.shape.reshaping import concatenate_p
from purax.xla import native

_FEWEST_CALLS = 3


class Joined(Primitive):
    """`concatenate` by a native kernel; it exists in lowering only."""

    name = "joined"
    is_fused = False

    def infer(self, *avals, dimension):
        return concatenate_p.infer(*avals, dimension=dimension)

    def lower(self, builder, *operands, dimension):
        aval = self.infer(*[x.aval for x in operands], dimension=dimension)
        outer = math.prod(aval.shape[:dimension])
        return native.call(builder, "concatenate", operands, [aval], outer=outer)[0]


joined_p = Joined()


def share_kernels(jaxpr: Jaxpr, is_call: Callable[[JaxprEqn], bool], taken: Mapping[Var, Any]) -> Jaxpr:
    """`jaxpr` with functions that it calls several times in the form that needs the fewest kernels.

    Args:
        jaxpr: the program.
        is_call: whether an equation calls its parameter `jaxpr`, a function that stays one.
        taken: for arguments of the program the result that takes over their memory.
    """
    calls = [i for i, eqn in enumerate(jaxpr.eqns) if is_call(eqn)]
    if len(calls) < _FEWEST_CALLS:
        return jaxpr
    counts = Counter(fingerprint(jaxpr.eqns[i].params["jaxpr"]) for i in calls)
    eqns = list(jaxpr.eqns)
    for i in calls:
        closed = eqns[i].params["jaxpr"]
        if counts[fingerprint(closed)] >= _FEWEST_CALLS:
            shared = _shared_form(closed)
            if shared is not closed:
                eqns[i] = eqns[i].replace(params={**eqns[i].params, "jaxpr": shared})
    jaxpr = jaxpr.replace(eqns=eqns)
    numbers = number_equations(eqns)
    often = {number for number, count in Counter(numbers).items() if count >= _FEWEST_CALLS}
    return with_row_programs(jaxpr, lambda i: numbers[i] in often, taken)


def _shared_form(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program that is called several times, in the form that needs the fewest kernels."""
    if "shared" not in closed.derived:
        made = _with_joined(closed)
        rewritten = with_row_programs(made.jaxpr)
        closed.derived["shared"] = made if rewritten is made.jaxpr else ClosedJaxpr(rewritten, made.consts)
    return closed.derived["shared"]


def _with_joined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program that joins arrays by the native kernel where XLA would fuse nothing with that."""
    if "joined" not in closed.derived:
        jaxpr = closed.jaxpr
        places = [i for i, eqn in enumerate(jaxpr.eqns) if eqn.primitive is concatenate_p]
        places = [i for i in places if _stands_alone(jaxpr, i)] if places else []
        made = closed
        if places:
            eqns = list(jaxpr.eqns)
            for i in places:
                eqns[i] = eqns[i].replace(primitive=joined_p)
            made = ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts)
        closed.derived["joined"] = made
    return closed.derived["joined"]


def _stands_alone(jaxpr: Jaxpr, place: int) -> bool:
    """Whether neither what makes the operands of an equation nor what takes its result can be fused with it."""
    eqn = jaxpr.eqns[place]
    aval = eqn.outvars[0].aval
    if len(eqn.invars) < 2 or aval.size == 0 or dtypes.itemsize_bits(aval.dtype) < 8:
        return False
    made = {v: each for each in jaxpr.eqns[:place] for v in each.outvars}
    for atom in eqn.invars:
        if type(atom) is Literal:
            return False
        maker = made.get(atom)
        while maker is not None and _keeps_elements(maker) and type(maker.invars[0]) is Var:
            maker = made.get(maker.invars[0])
        if maker is None or not _has_own_kernel(maker):
            return False
    taken = set(eqn.outvars)
    for each in jaxpr.eqns[place + 1 :]:
        if taken.isdisjoint(v for v in each.invars if type(v) is Var):
            continue
        if _keeps_elements(each):
            taken.update(each.outvars)
        elif not _has_own_kernel(each):
            return False
    return True


def _keeps_elements(eqn: JaxprEqn) -> bool:
    """Whether an equation only arranges or converts all elements of its operand."""
    primitive = eqn.primitive
    if len(eqn.invars) != 1 or len(eqn.outvars) != 1 or eqn.invars[0].aval.size != eqn.outvars[0].aval.size:
        return False
    return primitive is convert_element_type_p or primitive.moves_elements and not primitive.is_fused


def _has_own_kernel(eqn: JaxprEqn) -> bool:
    """Whether XLA makes a kernel or a call of an equation, with which it fuses nothing."""
    return not eqn.primitive.is_fused and not eqn.primitive.moves_elements
