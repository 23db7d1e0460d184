"""When the memory of a device is fullest: the lives of the values of one program, after fusion.

A value lives from the operation that makes it to the last one that reads it. An elementwise operation, or one that
moves elements, whose result one operation reads is done by that one as it reads: its result is never in memory, and
its operands live as long as that takes. What costs no more than to read it is done again by each that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from purax.core.jaxpr import DropVar, Jaxpr, JaxprEqn, Literal, Var
from purax.core.primitive import has_programs
from purax.planning import operations
from purax.planning.costs import Resident
from purax.primitives.elementwise.elementwise import Elementwise


def may_fuse(eqn: JaxprEqn) -> bool:
    """Whether an operation can be done while its result is read."""
    primitive = eqn.primitive
    if primitive.multiple_results or has_programs(eqn.params) or primitive.is_heavy:
        return False
    if primitive.is_matrix_product or primitive.is_convolution:
        return False
    return isinstance(primitive, Elementwise) or primitive.is_cheap_to_repeat


def reads_fused(eqn: JaxprEqn) -> bool:
    """Whether an operation can compute its operands while it reads them."""
    primitive = eqn.primitive
    if has_programs(eqn.params):
        return False
    return may_fuse(eqn) or (primitive.is_fused and not primitive.multiple_results)


class Lives:
    """When values begin and end, and which are never in memory, however they are sharded.

    Arguments:
        jaxpr: the program.
        freed: which of its arguments' memory may be used again.
    """

    def __init__(self, jaxpr: Jaxpr, freed: Mapping[Var, bool]):
        self.jaxpr = jaxpr
        self.made: dict[Var, JaxprEqn] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        self.end = len(jaxpr.eqns)
        readers: dict[Var, list[int]] = {}
        for i, eqn in enumerate(jaxpr.eqns):
            for v in eqn.invars:
                if not isinstance(v, Literal):
                    readers.setdefault(v, []).append(i)
        outs = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
        self.fused: set[Var] = set()
        done = list(range(self.end))  # when the operands of an operation have been read
        for i in range(self.end - 1, -1, -1):
            eqn = jaxpr.eqns[i]
            made = eqn.outvars[0] if len(eqn.outvars) == 1 else None
            users = [] if made is None else readers.get(made, [])
            if made is None or made in outs or not users or not may_fuse(eqn):
                continue
            few = len(users) == 1 or eqn.primitive.is_cheap_to_repeat
            if few and (operations.is_view(eqn) or all(reads_fused(jaxpr.eqns[j]) for j in users)):
                self.fused.add(made)
                done[i] = max(done[j] for j in users)
        self.last: dict[Var, int] = {}
        for v, users in readers.items():
            self.last[v] = max(done[j] for j in users)
        for v in (*jaxpr.invars, *jaxpr.constvars):
            if not freed.get(v, False):
                self.last[v] = self.end
        for v in outs:
            self.last[v] = self.end


class Timeline:
    """The lives of values and of copies of them on one device.

    Arguments:
        lives: those of the program.
    """

    def __init__(self, lives: Lives):
        self.jaxpr, self.end = lives.jaxpr, lives.end
        self.made, self.fused, self.last = lives.made, lives.fused, lives.last
        self._copies: dict[Any, list[float]] = {}
        self._inner: dict[int, tuple[float, Any, list[Resident]]] = {}

    def is_fused(self, v: Var) -> bool:
        """Whether a value is never in memory."""
        return v in self.fused

    def add_copy(self, key: Any, i: int, size: float) -> None:
        """Notes another copy of a value, as it is needed by operation `i`."""
        self._copies[key] = [i, i, size]

    def keep_copy(self, key: Any, i: int) -> None:
        """Notes that operation `i` needs a copy, too."""
        if key in self._copies:
            self._copies[key][1] = i

    def add_inner(self, i: int, size: float, where: Any, residents: list[Resident]) -> None:
        """Notes what the program inside of operation `i` needs besides its operands and results."""
        self._inner[i] = (size, where, residents)

    def peak(self, sizes: Mapping[Var, int]) -> tuple[float, int, list[Var]]:
        """The most bytes at once, the operation where that is, and the values that are there."""
        change = [0.0] * (self.end + 3)
        births = {v: i for i, eqn in enumerate(self.jaxpr.eqns) for v in eqn.outvars}
        lives = {}
        for v, size in sizes.items():
            if v in self.fused or (isinstance(v, DropVar) and v not in births):
                continue
            begin = births.get(v, -1)
            lives[v] = begin, max(self.last.get(v, begin), begin)
            change[begin + 1] += size
            change[lives[v][1] + 2] -= size
        for i, eqn in enumerate(self.jaxpr.eqns):
            change_at = self._in_place(i, eqn, sizes, lives)
            change[i + 1] -= change_at
            change[i + 2] += change_at
        for first, last, size_of_copy in self._copies.values():
            change[int(first) + 1] += size_of_copy
            change[int(last) + 2] -= size_of_copy
        most, at, now = 0.0, -1, 0.0
        for i in range(-1, self.end + 1):
            now += change[i + 1]
            there = now + self._inner.get(i, (0.0, None, []))[0]
            if there > most:
                most, at = there, i
        return most, at, [v for v, (begin, end) in lives.items() if begin <= at <= end and begin >= 0]

    def _in_place(
        self, i: int, eqn: JaxprEqn, sizes: Mapping[Var, int], lives: Mapping[Var, tuple[int, int]]
    ) -> float:
        """The bytes of a result that take the place of an operand which is read for the last time."""
        v = eqn.outvars[0] if eqn.outvars else None
        if v is None or v in self.fused or not may_fuse(eqn):
            return 0.0
        for operand in self._read_by(eqn):
            if lives.get(operand, (0, -1))[1] == i and sizes.get(operand) == sizes.get(v):
                return float(sizes[v])
        return 0.0

    def _read_by(self, eqn: JaxprEqn) -> list[Var]:
        """The values in memory that an operation reads, through those that are fused with it."""
        found = []
        waiting = [v for v in eqn.invars if not isinstance(v, Literal)]
        while waiting:
            v = waiting.pop()
            if v in self.fused:
                waiting += [u for u in self.made[v].invars if not isinstance(u, Literal)]
            else:
                found.append(v)
        return found

    def inner_residents(self, at: int) -> list[Resident]:
        """What is there inside of the operation where memory is fullest."""
        return list(self._inner.get(at, (0.0, None, []))[2])

    def line(self, at: int) -> Any:
        """The user's line of an operation."""
        inner = self._inner.get(at)
        if inner is not None and inner[0] > 0 and inner[1] is not None:
            return inner[1]
        at = min(max(at, 0), self.end - 1)
        return self.jaxpr.eqns[at].source if self.end else None
