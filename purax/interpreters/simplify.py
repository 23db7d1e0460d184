"""Program -> smaller program with the same meaning: drops equations whose results nothing needs, and the products
with one that differentiation leaves behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.dtypes import float0
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from purax.primitives.elementwise.elementwise import mul_p
from purax.primitives.shape.broadcasting import broadcast_in_dim_p


def remove_dead_code(jaxpr: Jaxpr, wanted: Sequence[bool] | None = None) -> Jaxpr:
    """`jaxpr` without the results that are not wanted and the equations that only they need.

    The arguments stay. Equations with effects stay.
    """
    outvars = jaxpr.outvars
    if wanted is not None:
        outvars = [v for v, is_wanted in zip(outvars, wanted, strict=True) if is_wanted]
    needed: set[Var] = {v for v in outvars if type(v) is not Literal}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            needed.update(v for v in eqn.invars if type(v) is not Literal)
    kept.reverse()
    if len(kept) == len(jaxpr.eqns) and wanted is None:
        return jaxpr
    return jaxpr.replace(outvars=outvars, eqns=kept)


def without_effects(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without the equations that are there for their effects alone."""
    if not closed.effects:
        return closed
    if "without effects" not in closed.derived:
        eqns = []
        for eqn in closed.eqns:
            if eqn.effects:
                if not eqn.outvars:
                    continue
                inner = {
                    name: without_effects(value)
                    if isinstance(value, ClosedJaxpr)
                    else tuple(without_effects(x) if isinstance(x, ClosedJaxpr) else x for x in value)
                    if isinstance(value, tuple)
                    else value
                    for name, value in eqn.params.items()
                }
                eqn = eqn.replace(params=inner)
            eqns.append(eqn)
        closed.derived["without effects"] = ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)
    return closed.derived["without effects"]


def used_inputs(jaxpr: Jaxpr) -> list[bool]:
    """Which arguments an equation or a result uses."""
    used: set[Var] = {v for v in jaxpr.outvars if type(v) is not Literal}
    for eqn in jaxpr.eqns:
        used.update(v for v in eqn.invars if type(v) is not Literal)
    return [v in used for v in jaxpr.invars]


def hoist_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program whose first arguments are the constants of `closed`."""
    if not closed.consts:
        return closed
    key = "hoisted"
    if key not in closed.derived:
        jaxpr = closed.jaxpr
        closed.derived[key] = ClosedJaxpr(
            jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
        )
    return closed.derived[key]


def tidy(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` without dead code and without products with one, which the cotangent of a result begins as."""
    ones: set[Var] = set()
    same: dict[Var, Any] = {}
    kept = []

    def is_one(atom) -> bool:
        if type(atom) is not Literal:
            return atom in ones
        return atom.aval.dtype != float0 and bool(np.all(np.asarray(atom.val) == 1))

    for eqn in jaxpr.eqns:
        invars = [same.get(v, v) if type(v) is Var else v for v in eqn.invars]
        if any(new is not old for new, old in zip(invars, eqn.invars, strict=True)):
            eqn = eqn.replace(invars=invars)
        if eqn.primitive is broadcast_in_dim_p and is_one(invars[0]):
            ones.add(eqn.outvars[0])
        elif eqn.primitive is mul_p:
            x, y = invars
            out = eqn.outvars[0]
            if is_one(y) and x.aval is out.aval:  # also as weak, and lying as it does
                same[out] = x
                continue
            if is_one(x) and y.aval is out.aval:
                same[out] = y
                continue
        kept.append(eqn)
    outvars = [same.get(v, v) if type(v) is Var else v for v in jaxpr.outvars]
    return remove_dead_code(jaxpr.replace(eqns=kept, outvars=outvars))
