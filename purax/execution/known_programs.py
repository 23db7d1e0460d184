"""Small programs that are met again: a fresh `lambda` on the same line of an eager program gives an equal program.

`known` gives the one that was there before, so that what was derived from it (`ClosedJaxpr.derived`: its derivative,
its form on the host) is there already. Programs are equal here down to names and source lines, so nobody can tell.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from typing import Any

import numpy as np

from purax.config import config
from purax.core.dtypes import ExtendedDtype
from purax.core.exact import exact, exact_items
from purax.core.jaxpr import ClosedJaxpr, Literal
from purax.core.memo import Memo
from purax.core.trace import current

_programs: Memo[tuple, ClosedJaxpr] = Memo(1024)
_MAX_EQUATIONS = 32
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.dtype, np.generic, enum.Enum, ExtendedDtype)


def known(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program that is equal to `closed`, which has no constants, if an eager program has met one; else `closed`.

    >>> import purax as px
    >>> known(px.make_jaxpr(lambda x: x + 1)(1.0)) is known(px.make_jaxpr(lambda x: x + 2)(1.0))
    False
    """
    if closed.consts or len(closed.eqns) > _MAX_EQUATIONS or not current.trace.ends_eager:
        return closed
    key = _key(closed)
    try:
        found = _programs.get(key)
    except TypeError:  # a parameter that cannot be hashed
        return closed
    if found is not None:
        return found
    if all(_is_plain(value) for eqn in closed.eqns for value in eqn.params.values()):
        _programs[key] = closed
    return closed


def _key(closed: ClosedJaxpr) -> tuple[Hashable, ...]:
    """What two programs that are equal have in common: variables count by their place."""
    jaxpr = closed.jaxpr
    places: dict[Any, int] = {v: i for i, v in enumerate(jaxpr.invars)}
    key: list[Any] = [config.trace_key, jaxpr.name, len(places)]
    key += [v.aval for v in jaxpr.invars]
    for eqn in jaxpr.eqns:
        key += (eqn.primitive, eqn.source, eqn.scope)
        key += [_literal(v) if type(v) is Literal else places[v] for v in eqn.invars]
        if eqn.params:
            key += exact_items(eqn.params)
        for v in eqn.outvars:
            places[v] = len(places)
            key.append(v.aval)
    key += [_literal(v) if type(v) is Literal else places[v] for v in jaxpr.outvars]
    return tuple(key)


def _literal(literal: Literal) -> tuple[Any, ...]:
    value = literal.val
    return value.tobytes() if isinstance(value, np.ndarray) else exact(value), type(value), literal.aval


def _is_plain(value: Any) -> bool:
    """Whether a parameter holds nothing of the user's, such as a function, that must not be kept alive."""
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))


for flag in ("host_products", "host_size_limit", "native_kernels"):  # what programs on the host are made by
    config.on_change(flag, lambda _: _programs.clear())
