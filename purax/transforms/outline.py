"""Finds what a program does again and again, such as the layers that a user wrote as a Python loop, and makes each
repetition a call of one shared program.

Equations are numbered so that equal numbers mean the same operation on the same types. A stretch of the program in
which these numbers have a period is cut into pieces where the fewest bytes cross, and pieces that are wired alike
become calls. Values, their order and effects stay as they were: equations with effects are never part of a piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from purax.core.jaxpr_hash import parameter_text
from purax.core.primitive import Primitive

# Elementwise work is faster in one fused loop than in several calls, so that a piece must have something heavy in it.
_HEAVY = frozenset({"dot_general", "conv_general_dilated"})
_FEWEST_PIECES = 3
_SHORTEST_PIECE = 12
_WINDOW = 8  # equations that must recur for a period to be tried
_MOST_PERIODS = 16  # tried at one place
_STRIDE = 4
_PRIME = (1 << 61) - 1


def outline(jaxpr: Jaxpr, call: Primitive) -> Jaxpr:
    """`jaxpr` with repeated stretches of equations as calls; itself if there are none.

    Args:
        jaxpr: the program.
        call: the primitive of the calls, with the parameters `jaxpr` and `name`.
    """
    if len(jaxpr.eqns) < _FEWEST_PIECES * _SHORTEST_PIECE:
        return jaxpr
    numbers = number_equations(jaxpr.eqns)
    stretches = [s for s in find_stretches(numbers) if _is_heavy(jaxpr.eqns, s)]
    if not stretches:
        return jaxpr
    last_use: dict[Var, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        for atom in eqn.invars:
            if type(atom) is not Literal:
                last_use[atom] = i
    for atom in jaxpr.outvars:
        if type(atom) is not Literal:
            last_use[atom] = len(jaxpr.eqns)
    eqns: list[JaxprEqn] = []
    done = 0
    for start, stop, period in stretches:
        for first, after, piece in _calls(jaxpr.eqns, start, stop, period, last_use, call):
            eqns += [*jaxpr.eqns[done:first], piece]
            done = after
    return jaxpr.replace(eqns=[*eqns, *jaxpr.eqns[done:]])


def number_equations(eqns: Sequence[JaxprEqn]) -> list[int]:
    """For each equation a number, the same for equations that compute the same function of the same types."""
    known: dict[Any, int] = {}
    numbers = []
    for eqn in eqns:
        primitive = eqn.primitive
        if eqn.effects:
            numbers.append(known.setdefault(eqn, len(known)))
            continue
        key: list[Any] = [primitive]
        if eqn.params:
            skipped = primitive.not_lowered
            key += [parameter_text(value) for name, value in eqn.params.items() if name not in skipped]
        for atom in eqn.invars:
            key.append(atom.aval)
            if type(atom) is Literal:
                key.append(np.asarray(atom.val, atom.aval.dtype).tobytes())
        key.append(None)
        key += [v.aval for v in eqn.outvars]
        numbers.append(known.setdefault(tuple(key), len(known)))
    return numbers


def find_stretches(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """The stretches (start, stop, period) in which `numbers` repeat at least `_FEWEST_PIECES` times, in order."""
    n = len(numbers)
    sums, powers = [0] * (n + 1), [1] * (n + 1)
    for i, number in enumerate(numbers):
        sums[i + 1] = (sums[i] * 1_000_003 + number + 1) % _PRIME
        powers[i + 1] = powers[i] * 1_000_003 % _PRIME

    def digest(start: int, stop: int) -> int:
        return (sums[stop] - sums[start] * powers[stop - start]) % _PRIME

    # The next place at which the same window of equations starts.
    following, seen = [n] * n, {}
    for i in range(n - _WINDOW, -1, -1):
        window = digest(i, i + _WINDOW)
        following[i] = seen.get(window, n)
        seen[window] = i
    array = np.asarray(numbers)
    stretches = []
    i, done = 0, 0
    while i < n:
        best = None
        place = following[i]
        for _ in range(_MOST_PERIODS):
            period = place - i
            matched = (_FEWEST_PIECES - 1) * period
            if i + period + matched > n:
                break
            if digest(i, i + matched) == digest(i + period, i + period + matched):
                same = array[i : n - period] == array[i + period :]
                length = (n - period - i if same.all() else int(same.argmin())) + period
                if best is None or length > best[0] + period:  # a multiple of the period adds nothing
                    best = (length, period)
            place = following[place]
        if best is None:
            i += _STRIDE
            continue
        length, period = best
        start = i
        while start > done and numbers[start - 1] == numbers[start - 1 + period]:
            start -= 1
        i = done = i + length
        stretches.append((start, done, period))
    return stretches


def _is_heavy(eqns: Sequence[JaxprEqn], stretch: tuple[int, int, int]) -> bool:
    start, _, period = stretch
    return any(_has_heavy(eqn) for eqn in eqns[start : start + period])


def _has_heavy(eqn: JaxprEqn) -> bool:
    inner = eqn.params.get("jaxpr")
    if isinstance(inner, ClosedJaxpr):
        return any(map(_has_heavy, inner.eqns))
    return eqn.primitive.name in _HEAVY


def _calls(
    eqns: Sequence[JaxprEqn], start: int, stop: int, period: int, last_use: dict[Var, int], call: Primitive
) -> list[tuple[int, int, JaxprEqn]]:
    """The calls that a stretch is made of, each with the positions of the equations that it stands for."""
    count = period * -(-_SHORTEST_PIECE // period)
    if stop - start < _FEWEST_PIECES * count:
        return []
    start += _best_cut(eqns, start, stop, period)
    groups: dict[Any, list[tuple[int, list[Var], list[Var]]]] = {}
    for first in range(start, stop - count + 1, count):
        wiring, operands, results = _boundary(eqns, first, first + count, last_use)
        groups.setdefault(wiring, []).append((first, operands, results))
    calls = []
    for pieces in groups.values():
        if len(pieces) < _FEWEST_PIECES:
            continue
        first, operands, results = pieces[0]
        shared = ClosedJaxpr(Jaxpr([], operands, results, eqns[first : first + count], "repeated"))
        for first, operands, results in pieces:
            params = {"jaxpr": shared, "name": "repeated"}
            calls.append(
                (first, first + count, JaxprEqn(operands, results, call, params, eqns[first].source))
            )
    return sorted(calls, key=lambda piece: piece[0])


def _best_cut(eqns: Sequence[JaxprEqn], start: int, stop: int, period: int) -> int:
    """How far after `start` to cut, so that the values that go from one piece to the next are small."""
    middle = start + (stop - start) // period // 2 * period - period
    defined: dict[Var, int] = {}
    reach: dict[Var, int] = {}
    for i in range(middle, min(middle + 2 * period, stop)):
        for atom in eqns[i].invars:
            if type(atom) is not Literal and atom in defined and i - defined[atom] < period:
                reach[atom] = i
        if i < middle + period:
            defined.update((v, i) for v in eqns[i].outvars)
    crossing = [0] * (2 * period + 1)  # differences of the bytes that are alive at each cut
    for v, last in reach.items():
        size = v.aval.size * v.aval.dtype.itemsize + 1
        crossing[defined[v] + 1 - middle] += size
        crossing[last + 1 - middle] -= size
    alive = np.cumsum(crossing[: 2 * period])
    folded = alive[:period] + alive[period:]
    return int((np.argmin(folded) + middle - start) % period)


def _boundary(
    eqns: Sequence[JaxprEqn], first: int, stop: int, last_use: dict[Var, int]
) -> tuple[tuple, list[Var], list[Var]]:
    """How the equations of a piece are wired, what they take from outside, and which results are used outside."""
    inside: dict[Var, int] = {}
    outside: dict[Var, int] = {}
    wiring: list[int] = []
    results: list[Var] = []
    for eqn in eqns[first:stop]:
        for atom in eqn.invars:
            if type(atom) is Literal:
                continue
            place = inside.get(atom)
            wiring.append(-1 - outside.setdefault(atom, len(outside)) if place is None else place)
        for v in eqn.outvars:
            inside[v] = len(inside)
            if type(v) is not DropVar and last_use.get(v, -1) >= stop:
                results.append(v)
    wiring += [inside[v] for v in results]
    return tuple(wiring), list(outside), results
