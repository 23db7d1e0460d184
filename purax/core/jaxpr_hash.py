"""Structural identity of programs: two jaxprs with the same `fingerprint` compile to the same executable.

Names of variables, source lines and the Python functions they came from do not count, nor do parameters that a
primitive lists in `not_lowered` (derivative rules, names). A parameter may have a `fingerprint` of its own. Everything
else is numbered: a number is never given twice, so that a primitive which is gone cannot be mistaken for a new one.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np

from purax.core.exact import exact
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from purax.core.metadata import MARK, split_scope
from purax.core.phases import phase

_numbers: dict[Any, int] = {}
_count = itertools.count()
_MAX_NUMBERS = 100_000


def _number(key: Any) -> int:
    """A number for everything that is equal to `key`, and for nothing else ever."""
    number = _numbers.get(key)
    if number is None:
        if len(_numbers) >= _MAX_NUMBERS:  # what was forgotten gets another number when it is met again
            _numbers.clear()
        number = _numbers.setdefault(key, next(_count))
    return number


def fingerprint(closed: ClosedJaxpr) -> str:
    """A digest of the program, without the values of its constants."""
    try:
        return closed.derived["fingerprint"]
    except KeyError:
        with phase("hashing"):
            digest = closed.derived["fingerprint"] = _digest(closed.jaxpr)
        return digest


def _digest(jaxpr: Jaxpr) -> str:
    numbers: dict[Var, int] = {}
    text: list[str] = []
    for var in (*jaxpr.constvars, *jaxpr.invars):
        numbers[var] = len(numbers)
        text.append(f"{_number(var.aval)}")
    for eqn in jaxpr.eqns:
        text.append(f";{_number(eqn.primitive)}")
        if MARK in eqn.scope:
            text.append(f"{split_scope(eqn.scope)[1]}")
        skipped = eqn.primitive.not_lowered
        for name, value in eqn.params.items():
            if name not in skipped:
                text.append(f"{name}={parameter_text(value)}")
        for atom in eqn.invars:
            text.append(_of_literal(atom) if type(atom) is Literal else f"%{numbers[atom]}")
        for var in eqn.outvars:
            numbers[var] = len(numbers)
            text.append(f":{_number(var.aval)}")
    for atom in jaxpr.outvars:
        text.append(_of_literal(atom) if type(atom) is Literal else f"%{numbers[atom]}")
    return hashlib.sha256(" ".join(text).encode()).hexdigest()


def _of_literal(literal: Literal) -> str:
    return f"#{np.asarray(literal.val, literal.aval.dtype).tobytes().hex()}:{_number(literal.aval)}"


def parameter_text(value: Any) -> str:
    """What a parameter of an equation adds to the digest: the same text for the same parameter."""
    if isinstance(value, ClosedJaxpr):
        return fingerprint(value)
    if isinstance(value, tuple):
        kind = "" if type(value) is tuple else _number(type(value))
        return f"{kind}({','.join(map(parameter_text, value))})"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if type(value) is float and value == value:
        return value.hex()
    if value is None or type(value) in (bool, int, str):
        return f"{type(value).__name__}{value!r}"
    own = getattr(value, "fingerprint", None)
    if own is not None:
        return own
    return f"@{_number((type(value), exact(value)))}"  # any other parameter is hashable
