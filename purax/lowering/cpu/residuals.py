"""Makes less cross from one called function to a later one: what a backward piece needs of a forward piece is
computed again where that is cheap, from the fewest bytes that suffice.

XLA does the same within one function, by fusing cheap operations into all their users; it does not look through
calls. The values to hand over are a minimum cut of the producer's equations, of which cheap ones may be computed on
both sides. Results stay as they were, and so do effects: equations that have some are never computed again. Nor is what
is tested for equality, as the derivative of a maximum does: the two sides may round differently, and no element would
equal the maximum any more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from purax.core import dtypes
from purax.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, inner_jaxprs
from purax.core.jaxpr_hash import fingerprint
from purax.interpreters.minimum_cut import minimum_cut
from purax.interpreters.simplify import remove_dead_code, used_inputs

_OF_A_CALL = 64  # bytes that one operand more is worth
# Results of cheap operations are mostly fused away; one that is handed over needs a kernel.
_OF_A_KERNEL = 1.25
_MOST_ENDS = 2  # calls whose results are computed again in the caller, so that no call has to give them


class _Function:
    """A program that is called in several places: its parts, which change, and the positions of the calls."""

    def __init__(self, closed: ClosedJaxpr):
        self.closed = closed
        self.eqns = list(closed.eqns)
        self.operands = list(closed.jaxpr.invars)
        self.results: list[Atom] = list(closed.jaxpr.outvars)
        self.calls: list[int] = []
        self.changed = False
        self.again: set[Var] = set()  # what others compute again
        self.defined = {v: eqn for eqn in self.eqns for v in eqn.outvars}

    def program(self) -> ClosedJaxpr:
        jaxpr = self.closed.jaxpr.replace(invars=self.operands, outvars=self.results, eqns=self.eqns)
        return ClosedJaxpr(remove_dead_code(jaxpr))


def trim_residuals(jaxpr: Jaxpr, is_call: Callable[[JaxprEqn], bool]) -> Jaxpr:
    """`jaxpr` with fewer bytes going from call to call; itself if nothing is to be gained.

    Args:
        jaxpr: the program.
        is_call: whether an equation calls its parameter `jaxpr`, a function that stays one.
    """
    functions: dict[str, _Function] = {}
    callee: dict[int, _Function] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        if is_call(eqn) and not eqn.effects and not eqn.params["jaxpr"].consts:
            closed = eqn.params["jaxpr"]
            key = fingerprint(closed)
            if key not in functions:
                functions[key] = _Function(closed)
            functions[key].calls.append(i)
            callee[i] = functions[key]
    if len(functions) < 2:
        return jaxpr
    caller = _Caller(jaxpr, callee)
    for function in functions.values():
        caller.trim(function)
    return caller.program(functions.values()) if any(f.changed for f in functions.values()) else jaxpr


class _Caller:
    """The program that calls functions: the operands and results of each call, which change."""

    def __init__(self, jaxpr: Jaxpr, callee: dict[int, _Function]):
        self.jaxpr = jaxpr
        self.callee = callee
        self.arguments = {*jaxpr.constvars, *jaxpr.invars}
        self.operands: dict[int, list[Atom]] = {i: list(jaxpr.eqns[i].invars) for i in callee}
        self.results: dict[int, list[Var]] = {i: list(jaxpr.eqns[i].outvars) for i in callee}
        self.uses: dict[Var, int] = defaultdict(int)
        self.renamed: dict[Var, Any] = {}
        self.following: dict[int, list[JaxprEqn]] = {}
        self.origin = {v: (i, place) for i in callee for place, v in enumerate(self.results[i])}

    def trim(self, function: _Function) -> None:
        """Makes `function` compute again what it takes from other functions, where fewer bytes serve for it."""
        origins: list[list[Any]] = [
            [self._origin(atom) for atom in self.operands[call]] for call in function.calls
        ]
        first = origins[0]
        tested = _tested(function.eqns)
        taken = [
            n
            for n, origin in enumerate(first)
            if origin is not None
            and function.operands[n] not in tested
            and self.callee[origin[0]] is not function
            and all(
                other[n] is not None
                and other[n][1] == origin[1]
                and self.callee[other[n][0]] is self.callee[origin[0]]
                for other in origins
            )
        ]
        # Which operands come from one call must be the same wherever the function is called.
        by_makers: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for n in taken:
            by_makers[tuple(each[n][0] for each in origins)].append(n)
        replaced: dict[Var, Any] = {}
        equations: list[JaxprEqn] = []
        for makers, places in by_makers.items():
            producer = self.callee[makers[0]]
            wanted = {n: producer.results[first[n][1]] for n in places}
            self._take_less(function, producer, makers, wanted, replaced, equations)
        if not replaced:
            return
        function.eqns = equations + [_renamed(eqn, replaced) for eqn in function.eqns]
        function.results = [replaced.get(v, v) if type(v) is Var else v for v in function.results]
        function.defined = {v: eqn for eqn in function.eqns for v in eqn.outvars}
        kept = [n for n, v in enumerate(function.operands) if v not in replaced]
        function.operands = [function.operands[n] for n in kept]
        for call in function.calls:
            self.operands[call] = [self.operands[call][n] for n in kept]
        function.changed = True

    def _origin(self, atom: Atom) -> tuple[int, int] | None:
        return None if type(atom) is Literal else self.origin.get(atom)

    def _take_less(
        self,
        function: _Function,
        producer: _Function,
        makers: Sequence[int],
        wanted: dict[int, Atom],
        replaced: dict[Var, Var],
        equations: list[JaxprEqn],
    ) -> None:
        """Makes `function` take what the values `wanted` by operand follow from, all of them results of `producer`.

        Adds to `replaced` the operands that are no longer taken, and to `equations` what makes them again. `makers` are
        the calls of `producer` whose results the calls of `function` take.
        """
        place = {v: n for n, v in enumerate(producer.operands)}

        def cost(v: Var) -> float:
            n = place.get(v)
            if n is not None and all(
                type(atom) is Literal or atom in self.arguments or atom in self.operands[call]
                for call, atom in zip(function.calls, (self.operands[i][n] for i in makers), strict=True)
            ):
                return _OF_A_CALL
            scale = _OF_A_KERNEL if _is_cheap(producer.defined.get(v)) else 1
            return _OF_A_CALL + scale * v.aval.size * v.aval.dtype.itemsize

        # In an order that is the same in each process, so that the text is, by which programs are kept on disk.
        sinks = list(dict.fromkeys(v for v in wanted.values() if type(v) is Var))
        stored, again = minimum_cut(sinks, producer.defined, cost, _repeat)
        if again.isdisjoint(sinks) or sum(map(cost, stored)) >= sum(map(cost, sinks)):
            return
        producer.again |= again
        fresh: dict[Var, Any] = {v: Var(v.aval) for v in stored}
        equations += _copies(producer, again, fresh)
        replaced.update((function.operands[n], fresh[v]) for n, v in wanted.items() if type(v) is Var)
        for v in stored:
            function.operands.append(fresh[v])
            if v not in place and v not in producer.results:
                producer.results.append(v)
                producer.changed = True
                for call in producer.calls:
                    made = Var(v.aval)
                    self.origin[made] = (call, len(self.results[call]))
                    self.results[call].append(made)
            for call, maker in zip(function.calls, makers, strict=True):
                given = self.operands[maker][place[v]] if v in place else None
                self.operands[call].append(given or self.results[maker][producer.results.index(v)])

    def _compute_ends(self, functions: Iterable[_Function]) -> None:
        """Computes again in the caller what it uses of the ends of a row of calls, if it is otherwise not needed."""
        tested = _tested(self.jaxpr.eqns)
        for function in functions:
            if not function.again or len(function.calls) <= _MOST_ENDS:
                continue
            users = [i for i in function.calls if any(v in self.uses for v in self._given(function, i))]
            if len(users) > _MOST_ENDS:
                continue
            for i in users:
                known = dict(zip(function.operands, self.operands[i], strict=True))
                known.update(
                    (v, made)
                    for v, made in zip(function.results, self.results[i], strict=True)
                    if type(v) is Var and v not in function.again
                )
                wanted = {
                    v: made
                    for v, made in zip(function.results, self.results[i], strict=True)
                    if v in function.again and made in self.uses
                }
                if not tested.isdisjoint(wanted.values()):
                    continue
                needed = _ancestors(wanted, function, known)
                if needed is None:
                    continue
                self.following[i] = _copies(function, needed, known)
                for v, made in wanted.items():
                    self.renamed[made] = known[v]

    def _given(self, function: _Function, call: int) -> list[Var]:
        """The results of a call that others compute again."""
        pairs = zip(function.results, self.results[call], strict=True)
        return [made for v, made in pairs if v in function.again]

    def program(self, functions: Iterable[_Function]) -> Jaxpr:
        """The program with the calls as they are now, without operands and results that nothing needs."""
        uses = self.uses

        def count(atoms: Iterable[Atom], by: int) -> None:
            for atom in atoms:
                if type(atom) is not Literal:
                    uses[atom] += by

        count(self.jaxpr.outvars, 1)
        for i, eqn in enumerate(self.jaxpr.eqns):
            count(self.operands.get(i, eqn.invars), 1)
        self._compute_ends(functions)
        for made, new in self.renamed.items():
            uses[new] += uses.pop(made)
        for equations in self.following.values():
            for eqn in equations:
                count(eqn.invars, 1)
        for operands in self.operands.values():
            operands[:] = [v if type(v) is Literal else self.renamed.get(v, v) for v in operands]
        eqns = [
            eqn if i in self.callee else _renamed(eqn, self.renamed) for i, eqn in enumerate(self.jaxpr.eqns)
        ]
        for function in sorted(functions, key=lambda function: -function.calls[-1]):
            needed = [
                n
                for n in range(len(function.results))
                if any(uses[self.results[i][n]] for i in function.calls)
            ]
            if not function.changed and len(needed) == len(function.results):
                continue
            function.results = [function.results[n] for n in needed]
            closed = function.program()
            used = used_inputs(closed.jaxpr)
            closed.jaxpr.invars = [v for v, is_used in zip(closed.jaxpr.invars, used, strict=True) if is_used]
            for i in function.calls:
                operands, results = self.operands[i], self.results[i]
                count((v for v, is_used in zip(operands, used, strict=True) if not is_used), -1)
                eqns[i] = eqns[i].replace(
                    invars=[v for v, is_used in zip(operands, used, strict=True) if is_used],
                    outvars=[results[n] for n in needed],
                    params={**eqns[i].params, "jaxpr": closed},
                )
        for i in sorted(self.following, reverse=True):
            eqns[i + 1 : i + 1] = self.following[i]
        outvars = [v if type(v) is Literal else self.renamed.get(v, v) for v in self.jaxpr.outvars]
        return self.jaxpr.replace(eqns=eqns, outvars=outvars)


def _copies(function: _Function, wanted: set[Var], names: dict[Var, Atom]) -> list[JaxprEqn]:
    """The equations of a function that make the values `wanted`, on the values that `names` gives, with new results."""
    copies = []
    for eqn in function.eqns:
        if not wanted.isdisjoint(eqn.outvars):
            made = {v: Var(v.aval) for v in eqn.outvars}
            copies.append(_renamed(eqn, names).replace(outvars=list(made.values())))
            names.update((v, new) for v, new in made.items() if v not in names)
    return copies


def _ancestors(wanted: Iterable[Var], function: _Function, known: dict[Var, Atom]) -> set[Var] | None:
    """What must be computed again to have the values `wanted` of a function, or None if some are not to be had."""
    needed: set[Var] = set()
    waiting = list(wanted)
    while waiting:
        v = waiting.pop()
        if v in needed or v in known:
            continue
        if v not in function.again or not _is_cheap(function.defined.get(v)):
            return None
        needed.add(v)
        waiting += [atom for atom in function.defined[v].invars if type(atom) is not Literal]
    return needed


def _renamed(eqn: JaxprEqn, names: dict[Var, Atom]) -> JaxprEqn:
    if not any(type(v) is not Literal and v in names for v in eqn.invars):
        return eqn
    return eqn.replace(invars=[v if type(v) is Literal else names.get(v, v) for v in eqn.invars])


def _is_cheap(eqn: JaxprEqn | None) -> bool:
    return eqn is not None and eqn.primitive.is_cheap_to_repeat and not _tests_equality(eqn)


def _tested(eqns: Sequence[JaxprEqn]) -> set[Atom]:
    """The values that a test for equality depends on."""
    tested: set[Atom] = set()
    for eqn in reversed(eqns):
        if _tests_equality(eqn) or not tested.isdisjoint(eqn.outvars):
            tested.update(atom for atom in eqn.invars if type(atom) is not Literal)
    return tested


def _tests_equality(eqn: JaxprEqn) -> bool:
    """Whether an equation, or one inside of it, tests whether numbers that are rounded are equal."""
    if eqn.primitive.tests_equality:
        x, y = eqn.invars
        return x is not y and dtypes.is_inexact(x.aval.dtype)
    return any(_tests_equality(inner) for closed in inner_jaxprs(eqn.params) for inner in closed.eqns)


def _repeat(eqn: JaxprEqn) -> float:
    return 0.0 if _is_cheap(eqn) else math.inf
