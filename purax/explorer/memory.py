"""What lives while a program runs, if its equations run one after the other and nothing is fused.

Programs that are called are followed step by step; loops and branches are steps, to which the peak of the programs
inside adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from purax.core.jaxpr import DropVar, Jaxpr, JaxprEqn, Literal, Var, inner_jaxprs
from purax.explorer.costs import bytes_of

_SHOWN = 200  # arrays of the list of those that live at the peak
_MOST_STEPS = 50_000  # past which calls are steps, too


class Value(NamedTuple):
    """An array of one call of a program: the variable, and the number of the call."""

    var: Var
    call: int


class Step(NamedTuple):
    """An equation of one call of a program.

    Attributes:
        jaxpr: the program.
        number: of the equation in it.
        read: the arrays that it reads.
        made: the arrays that it makes.
    """

    jaxpr: Jaxpr
    number: int
    read: list[Value]
    made: list[Value]

    @property
    def eqn(self) -> JaxprEqn:
        return self.jaxpr.eqns[self.number]


class Usage(NamedTuple):
    """The memory of a program over time.

    Attributes:
        timeline: bytes that live during each step.
        steps: the steps.
        peak: the number of the step at which most lives; −1 if that is at the beginning.
        alive: what lives there, the largest first, each with the step that made it, or None for an argument.
        around: bytes of arguments and constants, which live throughout: their memory is the caller's.
    """

    timeline: list[int]
    steps: list[Step]
    peak: int
    alive: list[tuple[Var, Step | None]]
    around: int


class Memory:
    """Finds the memory of programs; what was found of a program is remembered, since many loops may share it."""

    def __init__(self) -> None:
        self._extra: dict[Jaxpr, int] = {}

    def usage(self, jaxpr: Jaxpr) -> Usage:
        """The memory of a program over time."""
        steps, results = _steps_of(jaxpr)
        kept = {Value(v, 0) for v in (*jaxpr.constvars, *jaxpr.invars)} | results
        last: dict[Value, int] = {}
        for i, step in enumerate(steps):
            last.update(dict.fromkeys((*step.read, *step.made), i))
        alive: dict[Value, Step | None] = {Value(v, 0): None for v in (*jaxpr.constvars, *jaxpr.invars)}
        now = highest = around = sum(bytes_of(value.var.aval) for value in alive)
        timeline: list[int] = []
        peak, at_peak = -1, dict(alive)
        for i, step in enumerate(steps):
            for value in step.made:
                if value not in alive and not isinstance(value.var, DropVar):
                    alive[value] = step
                    now += bytes_of(value.var.aval)
            during = now + self._inside(step.eqn)
            timeline.append(during)
            if during > highest:
                peak, highest, at_peak = i, during, dict(alive)
            for value in {*step.read, *step.made}:
                if value in alive and value not in kept and last[value] <= i:
                    del alive[value]
                    now -= bytes_of(value.var.aval)
        rows = sorted(at_peak.items(), key=lambda row: -bytes_of(row[0].var.aval))
        return Usage(timeline, steps, peak, [(value.var, maker) for value, maker in rows[:_SHOWN]], around)

    def _inside(self, eqn: JaxprEqn) -> int:
        """What the programs of a loop or a branch need beside its operands and results, at most."""
        if not eqn.params:
            return 0
        return max((self._more(program.jaxpr) for program in inner_jaxprs(eqn.params)), default=0)

    def _more(self, jaxpr: Jaxpr) -> int:
        if jaxpr not in self._extra:
            usage = self.usage(jaxpr)
            results = sum(bytes_of(v.aval) for v in {v for v in jaxpr.outvars if isinstance(v, Var)})
            self._extra[jaxpr] = max(max(usage.timeline, default=0) - usage.around - results, 0)
        return self._extra[jaxpr]


def _steps_of(jaxpr: Jaxpr) -> tuple[list[Step], set[Value]]:
    """The equations of a program and of those that it calls, in order, and the values of its results."""
    steps: list[Step] = []
    opens = _size(jaxpr, {}) <= _MOST_STEPS
    calls = 0

    def walk(inner: Jaxpr, call: int, arguments: Sequence[Value | None]) -> list[Value | None]:
        """The values of the results; None for literals."""
        nonlocal calls
        same: dict[Var, Value | None] = dict(zip((*inner.constvars, *inner.invars), arguments, strict=True))

        def read(atom: Any) -> Value | None:
            return None if isinstance(atom, Literal) else same.get(atom, Value(atom, call))

        for number, eqn in enumerate(inner.eqns):
            if opens and eqn.primitive.is_call:
                calls += 1
                called = eqn.params["jaxpr"].jaxpr
                given = [None] * len(called.constvars) + [read(atom) for atom in eqn.invars]
                results = walk(called, calls, given)
                # What a call gives back may be an argument or a literal: then it is not an array of its own.
                same.update(zip(eqn.outvars, results, strict=True))
            else:
                made = [Value(v, call) for v in eqn.outvars]
                steps.append(Step(inner, number, [v for v in map(read, eqn.invars) if v is not None], made))
        return [read(atom) for atom in inner.outvars]

    own: list[Value | None] = [Value(v, 0) for v in (*jaxpr.constvars, *jaxpr.invars)]
    return steps, {value for value in walk(jaxpr, 0, own) if value is not None}


def _size(jaxpr: Jaxpr, known: dict[Jaxpr, int]) -> int:
    """How many steps a program has if calls are followed."""
    if jaxpr not in known:
        called: Iterator[Any] = (eqn for eqn in jaxpr.eqns if eqn.primitive.is_call)
        known[jaxpr] = len(jaxpr.eqns) + sum(_size(eqn.params["jaxpr"].jaxpr, known) for eqn in called)
    return known[jaxpr]
