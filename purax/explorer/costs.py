"""What an equation costs: operations on numbers, and bytes that it reads and writes if nothing is fused.

The counts are those of `purax.experimental.roofline`; what has no rule there moves data and computes nothing.
"""

from __future__ import annotations

from typing import Any

from purax.core.avals import ShapedArray
from purax.core.jaxpr import JaxprEqn, Literal
from purax.experimental.roofline.roofline import RooflineRuleContext, RooflineShape, rules


def is_counted(aval: Any) -> bool:
    """Whether the number of elements is known: not where a dimension is symbolic."""
    return isinstance(aval, ShapedArray) and all(isinstance(n, int) for n in aval.shape)


def bytes_of(aval: Any) -> int:
    """How much memory an array takes; 0 if that is not known."""
    return RooflineShape.from_aval(aval).bytes if is_counted(aval) else 0


def cost_of(eqn: JaxprEqn, mesh: Any = None) -> tuple[int, int]:
    """Operations and bytes of one equation without programs inside.

    Args:
        eqn: the equation.
        mesh: the mesh around it, whose axes collective operations name.
    """
    read = {v for v in eqn.invars if not isinstance(v, Literal)}
    moved = sum(bytes_of(v.aval) for v in (*read, *eqn.outvars))
    rule = rules.get(eqn.primitive)
    avals = [v.aval for v in (*eqn.invars, *eqn.outvars)]
    if rule is None or not all(map(is_counted, avals)):
        return 0, moved
    try:
        found = rule(_context(eqn, mesh), *[RooflineShape.from_aval(v.aval) for v in eqn.invars], **eqn.params)
    except (AttributeError, KeyError):  # a collective whose axes are those of a `vmap`
        return 0, moved
    return found.unfused_flops, found.unfused_hbm_bytes or moved


def _context(eqn: JaxprEqn, mesh: Any) -> RooflineRuleContext:
    return RooflineRuleContext(
        name_stack=eqn.scope,
        primitive=eqn.primitive,
        avals_in=[v.aval for v in eqn.invars],
        avals_out=[v.aval for v in eqn.outvars],
        jaxpr_eqn_ctx=None,
        mesh=mesh,
        pin_lhs_in_vmem=False,
        pin_rhs_in_vmem=False,
    )
