"""Small programs as straight-line NumPy programs: how short eager loops run, without an array object for every value.

The functions are those that the eager trace has planned for the equations, so the results are those of running the
equations one by one. Programs with effects, programs inside, or equations that are worth compiling have no such form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core.jaxpr import ClosedJaxpr, Literal
from purax.core.trace import current
from purax.execution import eager
from purax.xla.array import DeviceArray

quiet = eager._Quiet()  # `quiet.run(f, x)` calls f without NumPy's floating point warnings
HostProgram = Callable[..., list[np.ndarray]]
_PATIENCE = 3  # from how many uses on a program is worth being written out as Python


def host_program(closed: ClosedJaxpr) -> HostProgram | None:
    """`closed` as a function of NumPy arrays, to be called through `quiet.run`; None if it has no such form."""
    uses, run = closed.derived.get("host program", (0, None))
    if uses == 0:
        run = _interpreted(closed)
    elif uses == _PATIENCE and run is not None:
        run = host_function(closed)
    if uses <= _PATIENCE:
        closed.derived["host program"] = (uses + 1, run)
    return run


def host_function(closed: ClosedJaxpr) -> HostProgram | None:
    """`host_program`, written out as Python at once: for a program that is called often."""
    found = _steps(closed)
    if found is None:
        return None
    others, steps, results = found
    count = len(closed.in_avals)
    names: dict[str, Any] = {f"v{count + i}": value for i, value in enumerate(others) if value is not None}
    names["asarray"] = np.asarray
    lines = [f"def run({', '.join(f'v{i}' for i in range(count))}):"]
    for (function, operands, place), eqn in zip(steps, closed.eqns, strict=True):
        names[f"f{place}"] = function
        call = f"f{place}({', '.join(f'v{i}' for i in operands)})"
        lines.append(f"    v{place} = {call if eqn.outvars[0].aval.shape else f'asarray({call})'}")
    lines.append(f"    return [{', '.join(f'v{i}' for i in results)}]")
    exec("\n".join(lines), names)
    return names["run"]


def _interpreted(closed: ClosedJaxpr) -> HostProgram | None:
    found = _steps(closed)
    if found is None:
        return None
    others, steps, results = found

    def run(*arguments: np.ndarray) -> list[np.ndarray]:
        values: list[Any] = [*arguments, *others]
        for function, operands, place in steps:
            result = function(*[values[i] for i in operands])
            values[place] = result if type(result) is np.ndarray else np.asarray(result)
        return [values[i] for i in results]

    return run


def host_values(operands: Sequence[Any]) -> list[np.ndarray] | None:
    """The values of operands that are on the host, or cost nothing to get there, if the eager trace is in charge."""
    if current.trace is not eager.eager:
        return None
    values = []
    for x in operands:
        if type(x) is not DeviceArray:
            return None
        value = x._host
        if value is None and (value := x.peek()) is None:
            return None
        values.append(value)
    return values


def _steps(
    closed: ClosedJaxpr,
) -> tuple[list[np.ndarray | None], list[tuple[Any, list[int], int]], list[int]] | None:
    """What stands in the places after those of the arguments: literals, None for results; the steps, each a function,
    the places of its operands and that of its result; and the places of the results. None: it has no such form."""
    if closed.consts:
        return None
    jaxpr = closed.jaxpr
    places: dict[Any, int] = {v: i for i, v in enumerate(jaxpr.invars)}
    others: list[np.ndarray | None] = []  # literals, and places for results

    def place_of(atom: Any) -> int:
        if type(atom) is not Literal:
            return places[atom]
        others.append(np.asarray(atom.val, atom.aval.dtype))
        return len(jaxpr.invars) + len(others) - 1

    steps = []
    for eqn in jaxpr.eqns:
        primitive = eqn.primitive
        if primitive.runs_itself or primitive.multiple_results or primitive.effects(**eqn.params):
            return None
        plan = eager.plan_for(primitive, tuple([v.aval for v in eqn.invars]), eqn.params)
        if plan.host is None or plan.waits:  # as parts of a program, large operations are worth compiling
            return None
        operands = [place_of(v) for v in eqn.invars]
        places[eqn.outvars[0]] = len(jaxpr.invars) + len(others)
        others.append(None)
        steps.append((plan.host, operands, places[eqn.outvars[0]]))
    results = [place_of(v) for v in jaxpr.outvars]
    return others, steps, results
