"""Programs that run without a compiler, inside of callbacks: an operation means there what its lowering says, too.

An operation of purax's own has one meaning. One that was added in jax's manner may do something else where it is run
at once than where it is compiled, as one that reports how it is lowered. Its lowering, if that is a Python function,
is traced once for a program, as it would be for a compiled one.
"""

from __future__ import annotations

from typing import Any

from purax.core.jaxpr import ClosedJaxpr, JaxprEqn, Var, eval_jaxpr, inner_jaxprs
from purax.core.trace import current
from purax.interpreters.staging import stage


def opened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` with the programs of operations in their places; itself if no operation has one."""
    if "opened" not in closed.derived:
        # None stands for the program itself, which would be kept alive by what it keeps.
        closed.derived["opened"] = _opened(closed) if has_rules_of_others(closed) else None
    found = closed.derived["opened"]
    return closed if found is None else found


def has_rules_of_others(closed: ClosedJaxpr) -> bool:
    """Whether some operation of a program, or of one inside of it, is lowered by a function of the user's."""
    key = "rules of others"
    if key not in closed.derived:
        closed.derived[key] = any([_is_of_others(eqn) for eqn in closed.eqns])
    return closed.derived[key]


def _is_of_others(eqn: JaxprEqn) -> bool:
    return eqn.primitive.may_be_opened or any([has_rules_of_others(x) for x in inner_jaxprs(eqn.params)])


def _opened(closed: ClosedJaxpr) -> ClosedJaxpr:
    def run(*arguments: Any) -> list[Any]:
        jaxpr = closed.jaxpr
        values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*closed.consts, *arguments), strict=True))

        def read(atom: Any) -> Any:
            return values[atom] if isinstance(atom, Var) else atom.array

        for eqn in jaxpr.eqns:
            operands = tuple(map(read, eqn.invars))
            inner = eqn.primitive.opened(tuple([atom.aval for atom in eqn.invars]), eqn.params)
            if inner is not None:
                results = eval_jaxpr(inner.jaxpr, inner.consts, *operands)
            else:
                params = {name: _inside(value) for name, value in eqn.params.items()}
                result = current.trace.process(eqn.primitive, operands, params)
                results = result if eqn.primitive.multiple_results else [result]
            values.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    return stage(run, closed.in_avals, closed.jaxpr.name)


def _inside(value: Any) -> Any:
    """A parameter with the programs in it opened."""
    if isinstance(value, ClosedJaxpr):
        return opened(value)
    return tuple(map(_inside, value)) if type(value) is tuple else value
