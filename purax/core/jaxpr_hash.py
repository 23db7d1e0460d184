"""Structural identity of programs: two jaxprs with the same `fingerprint` compile to the same executable.

Names of variables, source lines and the Python functions they came from do not count, nor do parameters that a
primitive lists in `not_lowered` (derivative rules, names). A parameter may have a `fingerprint` of its own. What means
the same in every process (types, numbers, primitives of purax) is written out; everything else is numbered: a number
is never given twice, so that a primitive which is gone cannot be mistaken for a new one. A program without such
numbers has a `portable_fingerprint`, which also counts the names that its text will have.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.core.exact import exact
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from purax.core.memories import MemorySpace
from purax.core.metadata import MARK, split_scope
from purax.core.phases import phase
from purax.core.primitive import Primitive

_texts: dict[Any, str] = {}
_count = itertools.count()
_MAX_TEXTS = 100_000
_NUMBERED = "\0"  # begins what only this process understands; no other text holds it


def _text(key: Any) -> str:
    """A text for everything that is equal to `key`, and for nothing else ever."""
    text = _texts.get(key)
    if text is None:
        if len(_texts) >= _MAX_TEXTS:  # what was forgotten gets another number when it is met again
            _texts.clear()
        text = _texts.setdefault(key, _portable_text(key) or f"{_NUMBERED}{next(_count)}")
    return text


def _portable_text(key: Any) -> str | None:
    """A text that says in every process what `key` is; None if there is none."""
    if isinstance(key, ShapedArray):
        if key.vma or key.layout is not None or not isinstance(key.dtype, np.dtype):
            return None
        if key.memory_space is not MemorySpace.Device:
            return None
        dtype = _portable_text(key.dtype)
        return dtype and f"{dtype}[{'x'.join(map(str, key.shape))}]{'weak' * key.weak_type}"
    if isinstance(key, np.dtype):
        return f"{key.str}{key.name}" if key.type.__module__ in ("numpy", "ml_dtypes") else None
    if isinstance(key, Primitive):
        return _place_of(key, type(key).__module__)
    if isinstance(key, type):
        return _place_of(key, key.__module__)
    if isinstance(key, tuple) and isinstance(key[1], enum.Enum):
        kind = _place_of(key[0], key[0].__module__)
        return kind and f"{kind}.{key[1].name}"
    return None


def _place_of(value: Any, module: str) -> str | None:
    """Where in purax an object is defined; None if a user made it, or a function."""
    if not module.startswith("purax."):
        return None
    names = [name for name, found in vars(sys.modules[module]).items() if found is value]
    return f"{module}.{min(names)}" if names else None


def fingerprint(closed: ClosedJaxpr) -> str:
    """A digest of the program, without the values of its constants."""
    try:
        return closed.derived["fingerprint"]
    except KeyError:
        with phase("hashing"):
            digest = _Digest()
            digest.add_program(closed.jaxpr)
            closed.derived["names"] = digest.names_digest()
            found = closed.derived["fingerprint"] = digest.digest()
        return found


def portable_fingerprint(closed: ClosedJaxpr) -> str | None:
    """A digest that only programs have which are lowered to the same text, in whatever process of the same purax.

    None if a part of the program means something in this process only: a callback, a primitive of the user's, an
    object among the parameters.
    """
    structure = fingerprint(closed)
    names = closed.derived["names"]
    return None if names is None or closed.consts else f"{structure}{names}"


def portable_operation(
    primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]
) -> str | None:
    """The `portable_fingerprint` of a program that is one operation."""
    digest = _Digest()
    digest.add_operation(primitive, params)
    digest.text += map(_text, avals)
    names = digest.names_digest()
    return None if names is None else f"{digest.digest()}{names}"


class _Digest:
    """Writes down a program: what it computes, and what its operations are called."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.names: list[str] = []
        self._is_portable = True

    def add_program(self, jaxpr: Jaxpr) -> None:
        """Adds the equations of a program."""
        numbers: dict[Var, int] = {}
        text = self.text
        self.names.append(jaxpr.name or "")
        for var in (*jaxpr.constvars, *jaxpr.invars):
            numbers[var] = len(numbers)
            text.append(_text(var.aval))
        for eqn in jaxpr.eqns:
            if eqn.scope:
                self.names.append(eqn.scope)
                if MARK in eqn.scope:
                    text.append(f"{split_scope(eqn.scope)[1]}")
            self.add_operation(eqn.primitive, eqn.params)
            for atom in eqn.invars:
                text.append(_of_literal(atom) if type(atom) is Literal else f"%{numbers[atom]}")
            for var in eqn.outvars:
                numbers[var] = len(numbers)
                text.append(f":{_text(var.aval)}")
        for atom in jaxpr.outvars:
            text.append(_of_literal(atom) if type(atom) is Literal else f"%{numbers[atom]}")

    def add_operation(self, primitive: Primitive, params: Mapping[str, Any]) -> None:
        """Adds a primitive and its parameters."""
        self.text.append(f";{_text(primitive)}")
        skipped = primitive.not_lowered
        for name, value in params.items():
            if name not in skipped:
                self.text.append(f"{name}={self.parameter(value)}")
            elif type(value) is str:
                self.names.append(value)
        self.names.append(";")

    def parameter(self, value: Any) -> str:
        """What a parameter of an equation adds: the same text for the same parameter."""
        if isinstance(value, ClosedJaxpr):
            inner = fingerprint(value)
            names = value.derived["names"]
            self._is_portable &= names is not None and not value.consts
            self.names.append(names or "")
            return inner
        if isinstance(value, tuple):
            parts = ",".join(map(self.parameter, value))
            if type(value) is tuple:
                return f"({parts})"
            if hasattr(value, "_fields"):
                return f"{_text(type(value))}({parts})"
            return f"{_text((type(value), value))}({parts})"  # it may hold more than its elements
        if isinstance(value, np.ndarray):
            return f"{_text(value.dtype)}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
        if type(value) is float and value == value:
            return value.hex()
        if value is None or type(value) in (bool, int, str):
            return f"{type(value).__name__}{value!r}"
        own = getattr(value, "fingerprint", None)
        if own is not None:
            self._is_portable = False  # it may hold numbers of this process
            return own
        if isinstance(value, ShapedArray | np.dtype):
            return _text(value)
        if isinstance(value, enum.Enum):
            return _text((type(value), value))
        return _text((type(value), exact(value)))  # any other parameter is hashable

    def digest(self) -> str:
        return hashlib.sha256(" ".join(self.text).encode()).hexdigest()

    def names_digest(self) -> str | None:
        """A digest of the names; None if a part of the program is known to this process only."""
        if not self._is_portable or _NUMBERED in " ".join(self.text):
            return None
        return hashlib.sha256(repr(self.names).encode()).hexdigest()


def _of_literal(literal: Literal) -> str:
    return f"#{np.asarray(literal.val, literal.aval.dtype).tobytes().hex()}:{_text(literal.aval)}"


def parameter_text(value: Any) -> str:
    """What a parameter of an equation adds to the digest: the same text for the same parameter."""
    return _Digest().parameter(value)
