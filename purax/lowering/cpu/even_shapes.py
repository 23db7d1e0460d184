"""Program -> program in which operands that meet element by element have one shape, or none.

Elementwise operations repeat operands along axes of size 1. That is how programs are written and transformed; what
looks for loops and repeated layers in them, before they are compiled, finds every repetition as an equation. The sums
over axes of size 1 that transposing leaves behind become what they are, other shapes of the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from purax.primitives.elementwise.elementwise import Elementwise, is_uneven
from purax.primitives.shape.broadcasting import broadcast_in_dim_p, reduce_sum_p
from purax.primitives.shape.reshaping import reshape_p


def with_even_shapes(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with operands of elementwise operations repeated by equations, also in the programs inside of it.

    Itself if there is nothing to repeat.
    """
    eqns: list[JaxprEqn] = []
    changed = False
    for eqn in jaxpr.eqns:
        if isinstance(eqn.primitive, Elementwise):
            if is_uneven([atom.aval.shape for atom in eqn.invars]):
                eqn = eqn.replace(invars=[_spread(atom, eqn, eqns) for atom in eqn.invars])
                changed = True
        elif eqn.primitive is reduce_sum_p and all(
            [eqn.invars[0].aval.shape[i] == 1 for i in eqn.params["axes"]]
        ):
            out = eqn.outvars[0].aval
            eqn = eqn.replace(primitive=reshape_p, params={"new_sizes": out.shape, "dimensions": None})
            changed = True
        else:
            params = {name: _inside(value) for name, value in eqn.params.items()}
            if any([params[name] is not value for name, value in eqn.params.items()]):
                eqn = eqn.replace(params=params)
                changed = True
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns) if changed else jaxpr


def _spread(atom: Any, eqn: JaxprEqn, eqns: list[JaxprEqn]) -> Any:
    """An operand of the shape of the result; the equation that repeats it goes to `eqns`."""
    shape = eqn.outvars[0].aval.shape
    if not atom.aval.shape or atom.aval.shape == shape:
        return atom
    params = {"shape": shape, "broadcast_dimensions": tuple(range(len(shape)))}
    repeated = Var(broadcast_in_dim_p.infer_checked((atom.aval,), params))
    eqns.append(JaxprEqn([atom], [repeated], broadcast_in_dim_p, params, eqn.source, eqn.scope))
    return repeated


def _inside(value: Any) -> Any:
    """A parameter with the programs in it changed; itself if there is nothing to change."""
    if isinstance(value, ClosedJaxpr):
        return _closed(value)
    if type(value) is tuple and value and any([isinstance(x, ClosedJaxpr) for x in value]):
        parts = tuple([_inside(x) for x in value])
        return parts if _differ(parts, value) else value
    return value


def _differ(now: Sequence[Any], before: Sequence[Any]) -> bool:
    return any([a is not b for a, b in zip(now, before, strict=True)])


def _closed(closed: ClosedJaxpr) -> ClosedJaxpr:
    if "even shapes" not in closed.derived:
        jaxpr = with_even_shapes(closed.jaxpr)
        # None stands for the program itself, which would be kept alive by what it keeps.
        closed.derived["even shapes"] = None if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)
    found = closed.derived["even shapes"]
    return closed if found is None else found
