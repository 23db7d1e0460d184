"""Structural identity of programs: two jaxprs with the same `fingerprint` compile to the same executable.

Names of variables, source lines and the Python functions they came from do not count, nor do parameters that a
primitive lists in `not_lowered` (derivative rules, names). A parameter may have a `fingerprint` of its own. Types and
primitives are interned for the life of the process, so their identity stands for them.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from purax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var

_numbers: dict[Any, int] = {}


def fingerprint(closed: ClosedJaxpr) -> str:
    """A digest of the program, without the values of its constants."""
    try:
        return closed.derived["fingerprint"]
    except KeyError:
        digest = closed.derived["fingerprint"] = _digest(closed.jaxpr)
        return digest


def _digest(jaxpr: Jaxpr) -> str:
    numbers: dict[Var, int] = {}
    text: list[str] = []
    for var in (*jaxpr.constvars, *jaxpr.invars):
        numbers[var] = len(numbers)
        text.append(f"{id(var.aval)}")
    for eqn in jaxpr.eqns:
        text.append(f";{id(eqn.primitive)}")
        skipped = eqn.primitive.not_lowered
        for name, value in eqn.params.items():
            if name not in skipped:
                text.append(f"{name}={parameter_text(value)}")
        for atom in eqn.invars:
            text.append(_of_literal(atom) if type(atom) is Literal else f"%{numbers[atom]}")
        for var in eqn.outvars:
            numbers[var] = len(numbers)
            text.append(f":{id(var.aval)}")
    for atom in jaxpr.outvars:
        text.append(_of_literal(atom) if type(atom) is Literal else f"%{numbers[atom]}")
    return hashlib.sha256(" ".join(text).encode()).hexdigest()


def _of_literal(literal: Literal) -> str:
    return f"#{np.asarray(literal.val, literal.aval.dtype).tobytes().hex()}:{id(literal.aval)}"


def parameter_text(value: Any) -> str:
    """What a parameter of an equation adds to the digest: the same text for the same parameter."""
    if isinstance(value, ClosedJaxpr):
        return fingerprint(value)
    if isinstance(value, tuple):
        return f"({','.join(map(parameter_text, value))})"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, float):
        return value.hex()
    if value is None or isinstance(value, (bool, int, str)):
        return f"{type(value).__name__}{value!r}"
    own = getattr(value, "fingerprint", None)
    if own is not None:
        return own
    # Any other parameter is hashable: equal values share a number, which stays theirs.
    return f"@{_numbers.setdefault((type(value), value), len(_numbers))}"
