"""The specification of jaxprs, executable: `check_jaxpr` raises where a program breaks a law of the language.

The laws: variables are assigned once, before use; operands, parameters and results fit what the primitive's `infer`
says; results are defined; inner programs obey the same laws and capture nothing.
"""

from __future__ import annotations

from typing import Any

from purax.core import jaxpr_format  # noqa: F401  (gives equations their printed form)
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, inner_jaxprs
from purax.errors import JaxprTypeError, shown


def check_jaxpr(program: Jaxpr | ClosedJaxpr) -> None:
    """Raises `JaxprTypeError` unless `program` is a well-formed jaxpr."""
    if isinstance(program, ClosedJaxpr):
        for var, value in zip(program.jaxpr.constvars, program.consts, strict=True):
            if not same_type(var.aval, aval_of(value)):
                raise JaxprTypeError(f"constant {var} is bound to a value of type {aval_of(value)}")
        program = program.jaxpr
    defined: set[Var] = set()
    for var in (*program.constvars, *program.invars):
        _define(var, defined, "an argument")
    for eqn in program.eqns:
        check_equation(eqn, defined)
    for atom in program.outvars:
        _check_use(atom, defined, "the results")


def check_equation(eqn: JaxprEqn, defined: set[Var]) -> None:
    """Checks one equation and adds its results to `defined`."""
    for atom in eqn.invars:
        _check_use(atom, defined, eqn)
    for closed in inner_jaxprs(eqn.params):
        check_jaxpr(closed)
    inferred: Any = eqn.primitive.infer(*[atom.aval for atom in eqn.invars], **eqn.params)
    expected = list(inferred) if eqn.primitive.multiple_results else [inferred]
    if len(expected) != len(eqn.outvars):
        raise JaxprTypeError(f"{eqn}\n  has {len(eqn.outvars)} results, `infer` says {len(expected)}")
    for var, aval in zip(eqn.outvars, expected, strict=True):
        if not same_type(var.aval, aval):
            raise JaxprTypeError(f"{eqn}\n  {var} should have type {aval}")
        _define(var, defined, eqn)


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether two types hold the same values (weak types are a matter of promotion only)."""
    return a is b or (a.shape == b.shape and a.dtype == b.dtype)


def _define(var: Var, defined: set[Var], where: str | JaxprEqn) -> None:
    if type(var) is DropVar:
        return
    if not isinstance(var, Var):
        raise JaxprTypeError(f"{where}: {shown(var)} is not a variable")
    if var in defined:
        raise JaxprTypeError(f"{where}: {var} is assigned twice")
    defined.add(var)


def _check_use(atom, defined: set[Var], where: str | JaxprEqn) -> None:
    if isinstance(atom, Literal):
        if atom.aval.shape != ():
            raise JaxprTypeError(f"{where}: literal {atom} is not a scalar")
    elif type(atom) is DropVar or atom not in defined:
        raise JaxprTypeError(f"{where}: {atom} is used before it is defined")
