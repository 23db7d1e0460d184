"""Normalisations, softmax, activations and updates of weights as programs of a native kernel, which need no compiler.

XLA compiles a kernel, in some 15 ms, for every loop of a layer. In functions that are called several times all
that lies between products of matrices becomes instead a few calls of one kernel (`purax/native/row_program.cc`), which
runs a list of operations on rows of its operands while they are in the cache.

Equations are gathered into clusters by levels: what stands outside of a cluster and gives it operands has a lower
level, so that clusters never wait for each other in a circle. A cluster works on matrices of `rows` times `width`
numbers, on one number per row, on one row for all, and on scalars; what merely repeats or reshapes costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from purax.core.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var
from purax.lowering.cpu.even_shapes import with_even_shapes
from purax.lowering.cpu.row_program import (
    BOOL,
    ELEMENTWISE,
    FLOAT,
    Pattern,
    Space,
    Writer,
    bundle,
    is_read_inside,
    power_of,
    reduction_of,
)
from purax.primitives.elementwise.arithmetic import copy_p, integer_pow_p
from purax.primitives.elementwise.conversion import convert_element_type_p
from purax.primitives.elementwise.elementwise import is_uneven
from purax.primitives.elementwise.logic import select_n_p
from purax.primitives.shape.broadcasting import broadcast_in_dim_p
from purax.primitives.shape.reshaping import reshape_p, squeeze_p
from purax.primitives.stop_gradient import stop_gradient_p

_WIDEST = 4096  # numbers of a row; all rows of a program lie in the cache at once
_SMALLEST = 2
# An equation is done again in another cluster if that takes few cheap ones, and few arrays that are not read there yet.
_MOST_REPEATED, _MOST_ORIGINS = 8, 1
_VIEWS = (
    reshape_p,
    squeeze_p,
    stop_gradient_p,
    copy_p,
    broadcast_in_dim_p,
)  # pass on the numbers of their operand
_LEAST_WORK = 2048  # results of operations; a call takes half a microsecond more than one of compiled code


def with_row_programs(
    jaxpr: Jaxpr, is_wanted: Callable[[int], bool] | None = None, taken: Mapping[Var, Any] = {}
) -> Jaxpr:
    """`jaxpr` with calls of the native kernel for what it does to rows; itself if there is nothing to gain.

    Args:
        jaxpr: the program.
        is_wanted: whether the equation at a position may become part of a call. Without it all may, and if one can not
            that XLA would fuse with its neighbours, all is left to XLA.
        taken: for arguments of the program the result that takes over their memory.
    """
    plan = _Plan(with_even_shapes(jaxpr) if is_wanted is None else jaxpr, is_wanted, taken)
    return plan.program() if plan.is_worthwhile() else jaxpr


class _View(NamedTuple):
    """A variable that holds the numbers of another: in the same order, or repeated by a pattern."""

    source: Atom
    pattern: Pattern | None


def _joined(first: Space, second: Space) -> Space | None:
    """The space of both, or None."""
    if first.width and second.width:
        return first if first == second else None
    if second.width:
        first, second = second, first
    if not first.width:
        return first if first.rows == second.rows else None
    return first if second.rows in (first.rows, first.rows * first.width) else None


class _Cluster:
    def __init__(self, level: int, space: Space):
        self.level = level
        self.space = space
        self.eqns: list[int] = []
        self.repeated: set[int] = set()  # equations of other clusters that are cheaper done again than read
        self.merged: _Cluster | None = None

    def top(self) -> _Cluster:
        cluster = self
        while cluster.merged is not None:
            cluster = cluster.merged
        return cluster


class _Plan:
    """The clusters of a program."""

    def __init__(self, jaxpr: Jaxpr, is_wanted: Callable[[int], bool] | None, taken: Mapping[Var, Any]):
        self.jaxpr = jaxpr
        self.taken = taken
        self.takes_all = is_wanted is None
        self.views: dict[Var, _View] = {}
        self.home: dict[Var, _Cluster] = {}  # the cluster that computes a variable
        self.sealed: set[Var] = set()  # of these, those that their cluster itself can not read
        self.levels: dict[Var, int] = {}  # of what computes a variable
        self.apart: list[tuple[int, int]] = []  # level and position of equations outside of clusters
        self.clusters: list[_Cluster] = []
        self.readers: dict[tuple[int, Var], _Cluster] = {}  # by level and variable
        self.gives_up = False
        for i, eqn in enumerate(jaxpr.eqns):
            wanted = (is_wanted is None or is_wanted(i)) and not eqn.effects
            view = _view(eqn, self.views) if wanted else None
            if view is not None:
                self._look(eqn, view)
            elif not (wanted and self._gather(i, eqn)):
                self._leave(i, eqn)
        self.clusters = [c for c in self.clusters if c.merged is None]
        self._dissolve_small()
        self._place_views()

    def is_worthwhile(self) -> bool:
        return bool(self.clusters) and not self.gives_up

    def _resolve(self, atom: Atom) -> tuple[Atom, Pattern | None]:
        view = self.views.get(atom) if type(atom) is not Literal else None  # type: ignore[call-overload]
        return (atom, None) if view is None else (view.source, view.pattern)

    def _look(self, eqn: JaxprEqn, view: _View) -> None:
        self.views[eqn.outvars[0]] = view

    def _level(self, atom: Atom) -> int:
        source, _ = self._resolve(atom)
        if type(source) is Literal:
            return -1
        home = self.home.get(source)
        return home.top().level if home is not None else self.levels.get(source, -1)

    def _leave(self, i: int, eqn: JaxprEqn) -> None:
        """Leaves an equation to XLA."""
        if (
            self.takes_all
            and eqn.primitive.is_fused
            and any(v.aval.size >= _SMALLEST for v in eqn.outvars[:1])
        ):
            self.gives_up = True
        level = 1 + max((self._level(atom) for atom in eqn.invars), default=-1)
        self.levels.update((v, level) for v in eqn.outvars)
        self.apart.append((level, i))

    def _gather(self, i: int, eqn: JaxprEqn) -> bool:
        """Makes an equation part of a cluster, if it can be."""
        space = self._space(eqn)
        if space is None or space.width > _WIDEST:
            return False
        sources = [self._resolve(atom) for atom in eqn.invars]
        top = max(self._level(atom) for atom in eqn.invars)
        joined: list[_Cluster] = []
        for source, pattern in sources:
            if type(source) is Literal or self._level(source) != top:
                continue
            home = self.home.get(source)
            if home is None or source in self.sealed or not is_read_inside(source, pattern, space):
                joined = []
                top += 1
                break
            if home.top() not in joined:
                joined.append(home.top())
        else:
            joined = self._fitting(joined, space)
            if not joined:
                top += 1
        top = max(top, 0)
        # One that reads the same array, so that it is read once. Arguments are there all the time: what follows from
        # them had better be computed where it is needed.
        if not joined and top > 0:
            for source, _ in sources:
                sibling = self.readers.get((top, source)) if type(source) is not Literal else None  # type: ignore[arg-type]
                if sibling is not None and _joined(sibling.top().space, space) is not None:
                    joined = [sibling.top()]
                    break
        cluster = joined[0] if joined else _Cluster(top, space)
        if not joined:
            self.clusters.append(cluster)
        for own in (space, *(each.space for each in joined)):
            cluster.space = _joined(cluster.space, own) or cluster.space
        for other in joined[1:]:
            other.merged = cluster
            cluster.eqns += other.eqns
        cluster.eqns.append(i)
        for source, _ in sources:
            if type(source) is not Literal and self.home.get(source) is None:
                self.readers[top, source] = cluster  # type: ignore[index]
        self.home[eqn.outvars[0]] = cluster
        if reduction_of(eqn) == "column_sum":
            self.sealed.add(eqn.outvars[0])
        return True

    @staticmethod
    def _fitting(clusters: Sequence[_Cluster], space: Space) -> list[_Cluster]:
        """The clusters, if all of them can be one that works in `space`."""
        found = space
        for cluster in clusters:
            both = _joined(found, cluster.space)
            if both is None:
                return []
            found = both
        # What fits the first by its number of rows only must fit all the others after that.
        return list(clusters) if all(_joined(found, c.space) for c in clusters) else []

    def _space(self, eqn: JaxprEqn) -> Space | None:
        """What the equation works on, or None if it can not be part of a cluster."""
        if len(eqn.outvars) != 1 or not all(
            a.aval.dtype in (FLOAT, BOOL) for a in (*eqn.invars, *eqn.outvars)
        ):
            return None
        shape = eqn.outvars[0].aval.shape
        if reduction_of(eqn) is not None:
            source, pattern = self._resolve(eqn.invars[0])
            shape = eqn.invars[0].aval.shape
            if pattern is not None or type(source) is Literal or source.aval.dtype != FLOAT:
                return None
            return (
                Space(math.prod(shape[:-1]), shape[-1])
                if shape[-1] > 1 and math.prod(shape[:-1]) > 0
                else None
            )
        size = math.prod(shape)
        if size < _SMALLEST or not _is_elementwise(eqn):
            return None
        space = Space(size, 0)
        for atom in eqn.invars:
            _, pattern = self._resolve(atom)
            if pattern is not None and (pattern.wide or pattern.modulus > 1):
                space = Space(math.prod(shape[:-1]), shape[-1])
        return space if space.width != 1 else None

    def _dissolve_small(self) -> None:
        """Leaves to XLA what is so little work that a call of the kernel would take longer."""
        eqns = self.jaxpr.eqns
        alike: dict[Any, list[_Cluster]] = {}  # what probably becomes one call
        for cluster in self.clusters:
            operations = tuple(eqns[i].primitive for i in sorted(cluster.eqns))
            alike.setdefault((cluster.level, operations), []).append(cluster)
        for group in alike.values():
            if sum(eqns[i].outvars[0].aval.size for c in group for i in c.eqns) >= _LEAST_WORK:
                continue
            for cluster in group:
                self.clusters.remove(cluster)
                for i in cluster.eqns:
                    del self.home[eqns[i].outvars[0]]
                    self.levels[eqns[i].outvars[0]] = cluster.level
                    self.apart.append((cluster.level, i))

    def _place_views(self) -> None:
        """Leaves to XLA the views that somebody outside of clusters reads, and what they are views of."""
        eqns = self.jaxpr.eqns
        makers = {
            eqn.outvars[0]: i for i, eqn in enumerate(eqns) if eqn.outvars and eqn.outvars[0] in self.views
        }
        wanted = [a for _, i in self.apart for a in eqns[i].invars] + list(self.jaxpr.outvars)
        placed: set[Var] = set()
        while wanted:
            atom = wanted.pop()
            if type(atom) is Literal or atom not in makers or atom in placed:
                continue
            placed.add(atom)
            eqn = eqns[makers[atom]]
            self.apart.append((self._level(atom), makers[atom]))
            wanted += eqn.invars

    # --- the program

    def _taken_in(
        self, cluster: _Cluster, eqn: JaxprEqn, makers: Mapping[Var, int]
    ) -> list[tuple[Var, Pattern | None]]:
        """What an equation reads of other clusters."""
        found = []
        for atom in eqn.invars:
            source, pattern = self._resolve(atom)
            if type(source) is Literal or source not in makers or self.home[source].top() is cluster:
                continue
            if makers[source] in cluster.repeated and is_read_inside(source, pattern, cluster.space):
                continue
            found.append((source, pattern))
        return found

    def _repeat(self, cluster: _Cluster, makers: Mapping[Var, int]) -> None:
        """Finds what a cluster does again rather than read it, so that fewer numbers go through memory."""
        eqns = self.jaxpr.eqns
        wanted = [source for i in cluster.eqns for source in self._taken_in(cluster, eqns[i], makers)]
        read = {self._resolve(atom)[0] for i in cluster.eqns for atom in eqns[i].invars}
        for source, pattern in wanted:
            again: set[int] = set()
            space = [cluster.space]
            arrays = self._origins(source, pattern, cluster, makers, again, space)
            if arrays is not None and len(again) <= _MOST_REPEATED and len(arrays - read) <= _MOST_ORIGINS:
                cluster.repeated |= again
                cluster.space = space[0]
                read |= arrays

    def _origins(
        self,
        source: Var,
        pattern: Pattern | None,
        cluster: _Cluster,
        makers: Mapping[Var, int],
        again: set[int],
        space: list[Space],
    ) -> set[Var] | None:
        """The arrays of the size of `source` that it follows from by cheap equations, which are added to `again`.

        `space` holds what the cluster works on with these equations. None if the last equation is not cheap.
        """
        i = makers.get(source)
        if i is None or self.home[source].top() is cluster:
            return {source}
        eqn = self.jaxpr.eqns[i]
        own = self._space(eqn)
        if (
            not eqn.primitive.is_cheap_to_repeat
            or own is None
            or not is_read_inside(source, pattern, space[0])
        ):
            return None
        joined = _joined(own, space[0])
        if joined is None:
            return None
        space[0] = joined
        again.add(i)
        arrays: set[Var] = set()
        for atom in eqn.invars:
            inner, pattern = self._resolve(atom)
            if type(inner) is Literal:
                continue
            found = self._origins(inner, pattern, cluster, makers, again, space)
            if found is None:  # it is read instead
                found = {inner}
            arrays |= {v for v in found if v.aval.size >= source.aval.size}
        return arrays

    def program(self) -> Jaxpr:
        eqns = self.jaxpr.eqns
        makers = {eqns[i].outvars[0]: i for cluster in self.clusters for i in cluster.eqns}
        outside: set[Atom] = {a for _, i in self.apart for a in eqns[i].invars} | set(self.jaxpr.outvars)
        for cluster in self.clusters:
            self._repeat(cluster, makers)
            for i in (*cluster.eqns, *cluster.repeated):
                outside.update(source for source, _ in self._taken_in(cluster, eqns[i], makers))
        # What a position depends on stands before it, and has no higher level.
        made: list[tuple[int, int, JaxprEqn]] = [(level, i, eqns[i]) for level, i in self.apart]
        alike: dict[Any, list[tuple[int, JaxprEqn]]] = {}
        for cluster in self.clusters:
            cluster.eqns.sort()
            own = {eqns[i].outvars[0] for i in cluster.eqns} & outside
            writer = Writer(cluster.space, self._resolve, own.__contains__, self.taken)
            eqn = writer.equation(eqns[i] for i in sorted({*cluster.eqns, *cluster.repeated}))
            if eqn is not None:
                key = (cluster.level, *(eqn.params[name] for name in ("width", "scratch", "slots", "code")))
                alike.setdefault(key, []).append((cluster.eqns[0], eqn))
        for (level, *_), group in alike.items():
            made.append((level, min(first for first, _ in group), bundle([eqn for _, eqn in group])))
        made.sort(key=lambda each: each[:2])
        return self.jaxpr.replace(eqns=[eqn for _, _, eqn in made])


def _view(eqn: JaxprEqn, views: dict[Var, _View]) -> _View | None:
    """What the result of an equation is, if it only passes on the numbers of another variable."""
    if len(eqn.outvars) != 1 or not eqn.invars:
        return None
    primitive, out, operand = eqn.primitive, eqn.outvars[0], eqn.invars[0]
    if primitive is select_n_p:  # `where(p, True, False)`
        cases = eqn.invars[1:]
        chosen = [_truth(case, views) for case in cases]
        if chosen != [False, True] or operand.aval.shape != out.aval.shape:
            return None
    elif primitive is integer_pow_p:
        if eqn.params["y"] != 1:
            return None
    elif primitive is convert_element_type_p:
        if (operand.aval.dtype, out.aval.dtype) not in ((BOOL, FLOAT), (FLOAT, FLOAT)):
            return None
    elif primitive not in _VIEWS:
        return None
    if any(a.aval.dtype not in (FLOAT, BOOL) for a in (operand, out)) or out.aval.size < _SMALLEST:
        return None
    source, pattern = operand, None
    if type(operand) is not Literal and operand in views:
        source, pattern = views[operand]
    if primitive is broadcast_in_dim_p and operand.aval.size != out.aval.size:
        if pattern is not None and pattern != Pattern(False, 1, 1):
            return None
        own = Pattern(False, 1, 1) if source.aval.size == 1 else _pattern(eqn)
        return None if own is None else _View(source, own)
    if pattern not in (None, Pattern(False, 1, 1)) and operand.aval.shape != out.aval.shape:
        return None
    if pattern is None and source.aval.size == 1 < out.aval.size:
        return None
    return _View(source, pattern)


def _truth(atom: Atom, views: dict[Var, _View]) -> bool | None:
    """The value of a constant bool, or None."""
    if type(atom) is not Literal:
        atom = views[atom].source if atom in views else atom
    return bool(atom.val) if type(atom) is Literal and atom.aval.dtype == BOOL else None


def _pattern(eqn: JaxprEqn) -> Pattern | None:
    """How rows of the result of `broadcast_in_dim` read its operand."""
    shape, small = eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape
    last = len(shape) - 1
    if shape[last] == 1:
        return None
    kept = {d for d, n in zip(eqn.params["broadcast_dimensions"], small, strict=True) if n > 1}
    leading = sorted(kept - {last})
    if not leading:
        return Pattern(last in kept, 1, 1)
    first, after = leading[0], leading[-1] + 1
    if any(shape[d] > 1 and d not in kept for d in range(first, after)):
        return None
    return Pattern(last in kept, math.prod(shape[after:last]), math.prod(shape[first:after]))


def _is_elementwise(eqn: JaxprEqn) -> bool:
    if is_uneven([atom.aval.shape for atom in eqn.invars]):
        return False
    if power_of(eqn) is not None:
        return eqn.outvars[0].aval.dtype == FLOAT and power_of(eqn) in (-1, 2, 3, 4)
    if eqn.primitive is select_n_p:
        return len(eqn.invars) == 3 and eqn.invars[0].aval.dtype == BOOL
    operation = eqn.primitive.row_operation
    if operation in ("and", "or", "not"):
        return eqn.outvars[0].aval.dtype == BOOL
    return operation in ELEMENTWISE and all(atom.aval.dtype == FLOAT for atom in eqn.invars)
