"""Finds what a program does again and again, such as the layers that a user wrote as a Python loop, and makes each
repetition a call of one shared program, or all of them one loop if each takes nothing but what the last one gave.

Equations are numbered so that equal numbers mean the same operation on the same types. A stretch of the program in
which these numbers have a period is cut into pieces where the fewest bytes cross, and pieces that are wired alike
become calls. Results stay as they were, and so do effects: equations that have some are never part of a piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, inner_jaxprs
from purax.core.jaxpr_hash import parameter_text
from purax.core.primitive import Primitive
from purax.lowering.cpu.outline_boundaries import Ends, Piece
from purax.primitives.barrier import optimization_barrier_p
from purax.primitives.shape.dynamic_slicing import dynamic_slice_p
from purax.primitives.shape.slicing import slice_p

_FEWEST_PIECES = 3
_SHORTEST_LOOP = 8
_SHORTEST_PIECE = 12
_WINDOW = 8  # equations that must recur for a period to be tried
_MOST_PERIODS = 16  # tried at one place
_PRIME = (1 << 61) - 1
_INDEX = ShapedArray((), np.dtype(np.int32))


def outline(jaxpr: Jaxpr, call: Primitive, loop: Primitive) -> Jaxpr:
    """`jaxpr` with repeated stretches of equations as calls and loops; itself if there are none.

    Args:
        jaxpr: the program.
        call: the primitive of calls, with the parameter `jaxpr`.
        loop: the primitive of loops, with the parameters `jaxpr`, `length`, and `carried`: for each operand the
            position of the result that takes its place in the next turn, or −1.
    """
    if len(jaxpr.eqns) < _FEWEST_PIECES * _SHORTEST_PIECE:
        return jaxpr
    eqns = jaxpr.eqns
    numbers = number_equations(eqns)
    stretches = [s for s in find_stretches(numbers) if _is_worthwhile(eqns, s)]
    if not stretches:
        return jaxpr
    last_use: dict[Var, int] = {
        atom: i for i, eqn in enumerate(eqns) for atom in eqn.invars if type(atom) is not Literal
    }
    last_use.update((atom, len(eqns)) for atom in jaxpr.outvars if type(atom) is not Literal)
    ends = Ends(eqns, numbers, last_use)
    limits = [*(start for start, _, _ in stretches[1:]), len(eqns)]
    made: list[JaxprEqn] = []
    done = 0
    for (start, stop, period), limit in zip(stretches, limits, strict=True):
        for first, after, eqn in _replacements(
            eqns, start, stop, period, done, limit, last_use, ends, call, loop
        ):
            made += [*eqns[done:first], eqn]
            done = after
    return jaxpr.replace(eqns=[*made, *eqns[done:]]) if made else jaxpr


def number_equations(eqns: Sequence[JaxprEqn]) -> list[int]:
    """For each equation a number, the same for equations that compute the same function of the same types.

    Slices count as the same wherever they start: the start can be an operand.
    """
    known: dict[Any, int] = {}
    texts: dict[int, str] = {}  # of parameters by identity, which many equations share
    numbers = []
    for eqn in eqns:
        primitive, params = eqn.primitive, eqn.params
        if type(primitive).effects is not Primitive.effects and eqn.effects:
            numbers.append(known.setdefault(eqn, len(known)))
            continue
        key: list[Any] = [primitive]
        if params and not _is_window(eqn):
            skipped = primitive.not_lowered
            for name, value in params.items():
                if name not in skipped:
                    text = texts.get(id(value))
                    if text is None:
                        text = texts[id(value)] = parameter_text(value)
                    key.append(text)
        for atom in eqn.invars:
            key.append(atom.aval)
            if type(atom) is Literal:
                key.append(np.asarray(atom.val, atom.aval.dtype).tobytes())
        key.append(None)
        key += [v.aval for v in eqn.outvars]
        numbers.append(known.setdefault(tuple(key), len(known)))
    return numbers


def _is_window(eqn: JaxprEqn) -> bool:
    """Whether the equation takes neighbouring elements out of an array."""
    strides = eqn.params.get("strides")
    return eqn.primitive is slice_p and (strides is None or all(n == 1 for n in strides))


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
    following: list[int] = [n] * n
    seen: dict[int, int] = {}
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
            i += 1
            continue
        length, period = best
        start = i
        while start > done and numbers[start - 1] == numbers[start - 1 + period]:
            start -= 1
        i = done = i + length
        stretches.append((start, done, period))
    return stretches


def _is_worthwhile(eqns: Sequence[JaxprEqn], stretch: tuple[int, int, int]) -> bool:
    """Whether pieces of a stretch are to be calls.

    Elementwise work is faster in one fused loop than in several calls, so that a product of matrices must be in it.
    Convolutions in a called function are several times slower: XLA for CPUs finds no good layout for them there.
    """
    start, _, period = stretch
    operations = operations_in(eqns[start : start + period])
    return any(each.is_matrix_product for each in operations) and not any(
        each.is_convolution for each in operations
    )


def may_be_called(closed: ClosedJaxpr) -> bool:
    """Whether a program runs as fast in a function of its own as in the midst of another program."""
    if "may be called" not in closed.derived:
        closed.derived["may be called"] = not any(each.is_convolution for each in operations_in(closed.eqns))
    return closed.derived["may be called"]


def operations_in(eqns: Sequence[JaxprEqn]) -> set[Primitive]:
    """The operations of equations and of the programs inside them."""
    found = {eqn.primitive for eqn in eqns}
    for eqn in eqns:
        for inner in inner_jaxprs(eqn.params):
            found |= operations_in(inner.eqns)
    return found


def _replacements(
    eqns: Sequence[JaxprEqn],
    start: int,
    stop: int,
    period: int,
    earliest: int,
    latest: int,
    last_use: dict[Var, int],
    ends: Ends,
    call: Primitive,
    loop: Primitive,
) -> list[tuple[int, int, JaxprEqn]]:
    """The calls and loops that a stretch is made of, each with the positions of the equations that it stands for.

    The ends of the stretch are looked for between `earliest` and `latest`.
    """
    count = period * -(-_SHORTEST_PIECE // period)
    if stop - start < _FEWEST_PIECES * count:
        return []
    start += _best_cut(eqns, start, stop, period)
    groups: dict[Any, list[Piece]] = {}
    for first in range(start, stop - count + 1, count):
        wiring, piece = _piece(eqns, first, first + count, last_use)
        groups.setdefault(wiring, []).append(piece)
    made = []
    for pieces in groups.values():
        if len(pieces) < _FEWEST_PIECES:
            continue
        head, last = pieces[0], pieces[-1]
        body, starts, start_operands = _move_windows(eqns, pieces)
        shared = ClosedJaxpr(Jaxpr([], [*head.operands, *starts], head.results, body, "repeated"))
        carried = None if starts else _carried(pieces, last_use)
        if carried is not None:
            params = {"jaxpr": shared, "length": len(pieces), "carried": carried}
            eqn = JaxprEqn(head.operands, last.results, loop, params, eqns[head.first].source)
            made.append((head.first, last.stop, eqn))
            continue
        if not starts:
            ends.remember(pieces)
            if len(groups) == 1:
                pieces = [*filter(None, (ends.before(pieces, earliest), ends.after(pieces, latest))), *pieces]
            ends.remember(pieces)
            start_operands = [[] for _ in pieces]
        for piece, literals in zip(pieces, start_operands, strict=True):
            source = eqns[piece.first].source
            indices = [Var(literal.aval) for literal in literals]
            if indices:  # XLA must not see the constants, or it makes a kernel for each of them
                barrier = JaxprEqn(literals, indices, optimization_barrier_p, {}, source)
                made.append((piece.first, piece.first, barrier))
            eqn = JaxprEqn([*piece.operands, *indices], piece.results, call, {"jaxpr": shared}, source)
            made.append((piece.first, piece.stop, eqn))
    return sorted(made, key=lambda each: each[:2])


def _move_windows(
    eqns: Sequence[JaxprEqn], pieces: Sequence[Piece]
) -> tuple[list[JaxprEqn], list[Var], list[list[Literal]]]:
    """The equations that pieces share, in which slices that start elsewhere in each piece take their start as operand.

    Returns:
        The equations, the variables of the starts, and for each piece their values.
    """
    body = list(eqns[pieces[0].first : pieces[0].stop])
    variables: list[Var] = []
    values: list[list[Literal]] = [[] for _ in pieces]
    for i, eqn in enumerate(body):
        if not _is_window(eqn):
            continue
        starts = [eqns[piece.first + i].params["start_indices"] for piece in pieces]
        if all(start == starts[0] for start in starts):
            continue
        indices: list[Atom] = []
        for along in zip(*starts, strict=True):
            literals = [Literal(np.int32(start), _INDEX) for start in along]
            if len(set(along)) == 1:
                indices.append(literals[0])
                continue
            variables.append(Var(_INDEX))
            indices.append(variables[-1])
            for value, literal in zip(values, literals, strict=True):
                value.append(literal)
        body[i] = eqn.replace(
            primitive=dynamic_slice_p,
            invars=[eqn.invars[0], *indices],
            params={"slice_sizes": eqn.outvars[0].aval.shape},
        )
    return body, variables, values


def _carried(pieces: Sequence[Piece], last_use: dict[Var, int]) -> tuple[int, ...] | None:
    """For each operand of pieces that form a loop the result that it becomes, or −1; None if they form none.

    In a loop every piece takes only values that all take and the results of the piece before, all of which it takes.
    """
    if len(pieces) < _SHORTEST_LOOP or any(a.stop != b.first for a, b in pairwise(pieces)):
        return None
    first, second = pieces[0], pieces[1]
    place = {v: i for i, v in enumerate(first.results)}
    carried = tuple(place.get(v, -1) for v in second.operands)
    taken = [result for result in carried if result >= 0]
    if sorted(taken) != list(range(len(first.results))):
        return None
    for before, after in pairwise(pieces):
        if any(last_use[v] >= after.stop for v in before.results):
            return None
        for previous, operand, result in zip(before.operands, after.operands, carried, strict=True):
            if operand is not (previous if result < 0 else before.results[result]):
                return None
    return carried


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
    # Of equal cuts the one with which the stretch begins or ends, since what remains there is part of one more piece.
    cuts = (np.flatnonzero(folded == folded.min()) + middle - start) % period
    return int(min(cuts, key=lambda cut: min(cut, (stop - start - cut) % period)))


def _piece(eqns: Sequence[JaxprEqn], first: int, stop: int, last_use: dict[Var, int]) -> tuple[tuple, Piece]:
    """The piece of the equations from `first` up to `stop`, and how they are wired."""
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
            if last_use.get(v, -1) >= stop:
                results.append(v)
    wiring += [inside[v] for v in results]
    return tuple(wiring), Piece(first, stop, list(outside), results)
