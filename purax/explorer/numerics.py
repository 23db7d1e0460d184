"""Ranges of values: a program is run equation by equation, and every result of floats is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var

FIELDS = ("least", "greatest", "smallest", "nan", "inf", "subnormal", "zero", "size")


def ranges(closed: ClosedJaxpr, arguments: Sequence[Any], numbers: dict[Jaxpr, int]) -> dict[str, dict[str, list]]:
    """For each program, by the number of its equation, what `FIELDS` names of all results of floats.

    "least" and "greatest" are of what is finite, "smallest" is the least absolute value that is not zero; the others
    are counts. Programs that are called are looked into; of a loop or a branch, the results as a whole.

    Args:
        closed: the program.
        arguments: arrays.
        numbers: the number of each program in the model.
    """
    found: dict[str, dict[str, list]] = {}
    _run(closed.jaxpr, closed.consts, arguments, numbers, found)
    return found


def _run(
    jaxpr: Jaxpr, constants: Sequence[Any], arguments: Sequence[Any], numbers: dict[Jaxpr, int], found: dict
) -> list[Any]:
    values: dict[Var, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *arguments), strict=True))

    def read(atom: Any) -> Any:
        return atom.array if isinstance(atom, Literal) else values[atom]

    number = numbers.get(jaxpr)
    rows = found.setdefault(str(number), {}) if number is not None else {}
    last = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars if isinstance(v, Var)}
    last.update({v: len(jaxpr.eqns) for v in jaxpr.outvars if isinstance(v, Var)})
    for i, eqn in enumerate(jaxpr.eqns):
        operands = [read(atom) for atom in eqn.invars]
        if eqn.primitive.is_call:
            inner = eqn.params["jaxpr"]
            results: Any = _run(inner.jaxpr, inner.consts, operands, numbers, found)
        else:
            results = eqn.primitive.bind(*operands, **eqn.params)
            results = results if eqn.primitive.multiple_results else [results]
        for v, x in zip(eqn.outvars, results, strict=True):
            values[v] = x
            row = None if eqn.primitive.is_call else range_of(x)
            if row is not None:
                rows[str(i)] = row if str(i) not in rows else _joined(rows[str(i)], row)
        for done in {*eqn.invars, *eqn.outvars}:
            if isinstance(done, Var) and last.get(done, i) <= i:
                values.pop(done, None)
    return [read(atom) for atom in jaxpr.outvars]


def range_of(x: Any) -> list[Any] | None:
    """The fields of one array; None if it has no floats, or no elements."""
    dtype = x.dtype
    if not dtypes.is_inexact(dtype) or not x.size or not isinstance(dtype, np.dtype):
        return None
    array = np.asarray(x)
    tiny = float(dtypes.finfo(dtype).tiny)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    elif array.dtype.kind != "f" or array.dtype.itemsize < 4:
        array = array.astype(np.float32)
    size = np.abs(array)
    finite = np.isfinite(array)
    known = array[finite]
    nonzero = size[finite & (size > 0)]
    return [
        float(known.min()) if known.size else None,
        float(known.max()) if known.size else None,
        float(nonzero.min()) if nonzero.size else None,
        int(np.isnan(array).sum()),
        int(np.isinf(array).sum()),
        int((nonzero < tiny).sum()),
        int((size == 0).sum()),
        int(array.size),
    ]


def _joined(a: list[Any], b: list[Any]) -> list[Any]:
    least = [x for x in (a[0], b[0]) if x is not None]
    greatest = [x for x in (a[1], b[1]) if x is not None]
    smallest = [x for x in (a[2], b[2]) if x is not None]
    bounds = [min(least, default=None), max(greatest, default=None), min(smallest, default=None)]
    return [*bounds, *(x + y for x, y in zip(a[3:], b[3:], strict=True))]
