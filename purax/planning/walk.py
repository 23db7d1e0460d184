"""The walk over a program on paper: how every value is sharded, what that costs, and when memory is fullest.

Shardings flow from the arguments forwards along `links`, once more backwards to where nothing was said, and forwards
again, as in XLA's partitioner: where axes of a mesh are wanted twice by one operation, activations win over
parameters, and axes that remain over those that are summed. What does not fit is gathered, sums of parts are reduced,
to parts if parts are what is wanted. Elementwise operations with one consumer are fused with it and take no memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, DropVar, JaxprEqn, Literal, Var
from purax.core.primitive import has_programs
from purax.planning import operations, programs
from purax.planning.costs import Communication, Costs, Layout, Resident, Spec
from purax.planning.hardware import bytes_of
from purax.planning.links import Link, links_of
from purax.planning.memory import Lives, Timeline

_RESIDENTS = 12


@dataclass
class Walked:
    """What is known of a program for arguments that are sharded in a certain way.

    Attributes:
        in_specs: how the arguments are used; what was not cut may be wanted cut.
        out_specs: how the results come out.
        costs: of running it once.
        peak: the most bytes in the memory of a device at once, arguments included.
        peak_at: the line where that is.
        residents: the largest arrays that are there then, those of arguments aside.
    """

    in_specs: list[Spec]
    out_specs: list[Spec]
    costs: Costs
    peak: float
    peak_at: Any
    residents: list[Resident] = field(default_factory=list)


def uncut(aval: Any) -> Spec:
    """The sharding of an array that every device has."""
    return ((),) * len(getattr(aval, "shape", ()))


class Walker:
    """Walks over programs for one mesh; what it found for a program inside of others is remembered.

    Arguments:
        layout: the mesh.
        links: links of operations that were found for other meshes.
        lives: and lives of values.
    """

    def __init__(self, layout: Layout, links: dict | None = None, lives: dict | None = None):
        self.layout = layout
        self.links: dict[tuple[int, int], Any] = {} if links is None else links
        self.lives: dict[Any, Any] = {} if lives is None else lives
        self._known: dict[Any, Walked] = {}
        self._bytes: dict[Any, float] = {}

    def walk(
        self,
        closed: ClosedJaxpr,
        in_specs: Sequence[Spec],
        wanted: Sequence[Spec | None],
        activations: Sequence[bool],
        freed: Sequence[bool],
    ) -> Walked:
        """Walks over a program.

        Arguments:
            closed: the program.
            in_specs: how its arguments are sharded.
            wanted: how its results shall be; None where that does not matter.
            activations: which arguments depend on the batch.
            freed: which arguments' memory may be used again when they are not needed any more.
        """
        key = (id(closed), tuple(in_specs), tuple(wanted), tuple(activations), tuple(freed))
        if key not in self._known:
            self._known[key] = _Walk(self, closed, in_specs, wanted, activations, freed).run()
        return self._known[key]

    def result(
        self,
        in_specs: list[Spec],
        out_specs: list[Spec],
        costs: Costs,
        peak: float = 0.0,
        peak_at: Any = None,
        residents: Sequence[Resident] = (),
    ) -> Walked:
        """What is known of an operation with programs inside."""
        return Walked(in_specs, out_specs, costs, peak, peak_at, list(residents))

    def bytes(self, aval: ShapedArray, spec: Spec) -> int:
        """The bytes of an array on one device."""
        whole = self._bytes.get(aval)
        if whole is None:
            shape = getattr(aval, "shape", None)
            whole = self._bytes[aval] = 0.0 if shape is None else math.prod(shape) * bytes_of(aval.dtype)
        sizes = self.layout.sizes
        for axes in spec:
            for name in axes:
                whole /= sizes[name]
        return int(whole)


class _Walk:
    """One walk over one program."""

    def __init__(
        self,
        walker: Walker,
        closed: ClosedJaxpr,
        in_specs: Sequence[Spec],
        wanted: Sequence[Spec | None],
        activations: Sequence[bool],
        freed: Sequence[bool],
    ):
        self.walker, self.layout, self.jaxpr = walker, walker.layout, closed.jaxpr
        jaxpr = self.jaxpr
        self.specs: dict[Var, Spec] = {v: uncut(v.aval) for v in jaxpr.constvars}
        self.specs |= dict(zip(jaxpr.invars, in_specs, strict=True))
        self.active: dict[Var, bool] = dict(zip(jaxpr.invars, activations, strict=True))
        self.out_wanted = list(wanted)
        self.freed = dict(zip(jaxpr.invars, freed, strict=True))
        self.wanted: dict[Var, Spec] = {}
        self.costs = Costs()
        self.copies: dict[tuple[Var, Spec], int] = {}
        self.chosen: dict[int, list[tuple[str, Link]]] = {}
        self.timeline: Timeline | None = None

    def run(self) -> Walked:
        given = dict(self.specs)
        for i, eqn in enumerate(self.jaxpr.eqns):
            self._step(eqn, i)
        self._want()
        self.specs = given
        self.timeline = self._timeline()
        self.costs = Costs()
        self.copies.clear()
        for i, eqn in enumerate(self.jaxpr.eqns):
            self._step(eqn, i)
        last = len(self.jaxpr.eqns)
        outs = []
        for v, want in zip(self.jaxpr.outvars, self.out_wanted, strict=True):
            spec = self._spec(v)
            if want is not None and want != spec and not isinstance(v, Literal):
                self._reshard(v, spec, want, last, None)
                spec = want
            outs.append(spec)
        sizes = {v: self.walker.bytes(v.aval, spec) for v, spec in self.specs.items()}
        peak, at, alive = self.timeline.peak(sizes)
        residents = sorted((self._resident(v, sizes) for v in alive), reverse=True)
        residents += self.timeline.inner_residents(at)
        return Walked(
            [self._in_spec(v) for v in self.jaxpr.invars],
            outs,
            self.costs,
            peak,
            self.timeline.line(at),
            sorted(residents, key=lambda r: -r.bytes)[:_RESIDENTS],
        )

    def _timeline(self) -> Timeline:
        lives, key = self.walker.lives, (id(self.jaxpr), tuple(self.freed.values()))
        if key not in lives:
            lives[key] = Lives(self.jaxpr, self.freed)
        return Timeline(lives[key])

    def _in_spec(self, v: Var) -> Spec:
        """How an argument is used: as it is, or, if nothing was said of it, as the program wants it."""
        spec = self.specs[v]
        return spec if any(spec) else self.wanted.get(v, spec)

    def _resident(self, v: Var, sizes: dict[Var, int]) -> Resident:
        eqn = self.timeline.made.get(v) if self.timeline else None
        if eqn is None:
            at = self.jaxpr.invars.index(v) if v in self.jaxpr.invars else -1
            where = f"argument {at}" if at >= 0 else "a captured array"
        else:
            where = str(eqn.source or eqn.primitive)
        return Resident(sizes[v], local_type(self.layout, v.aval, self.specs[v]), self.specs[v], where)

    # -- one operation

    def _spec(self, atom: Any) -> Spec:
        return uncut(atom.aval) if isinstance(atom, Literal) else self.specs[atom]

    def _is_active(self, atom: Any) -> bool:
        return not isinstance(atom, Literal) and self.active.get(atom, False)

    def _step(self, eqn: JaxprEqn, i: int) -> None:
        active = any([self._is_active(v) for v in eqn.invars])
        for v in eqn.outvars:
            self.active[v] = active
        if has_programs(eqn.params):
            self._call(eqn, i)
        else:
            self._apply(eqn, i)

    def _apply(self, eqn: JaxprEqn, i: int) -> None:
        wants = eqn.primitive.specs_wanted(**eqn.params)
        if wants and wants[0] is not None:
            x = eqn.invars[0]
            need = operations.as_spec(wants[0], len(x.aval.shape), self.layout)
            self._reshard(x, self._spec(x), need, i, eqn)
            self.specs[eqn.outvars[0]] = need
            return
        avals = [v.aval for v in eqn.invars]
        outs = [v.aval for v in eqn.outvars]
        if isinstance(eqn.params.get("axis_name"), str | tuple):
            self.costs.communications += operations.communications(eqn, self.layout)
        chosen = self.chosen[i] = self._choose(eqn, avals, outs)
        needs: list[list[list[str]]] = [[[] for _ in getattr(aval, "shape", ())] for aval in avals]
        gives: list[list[list[str]]] = [[[] for _ in getattr(aval, "shape", ())] for aval in outs]
        summed: list[str] = []
        for name, link in chosen:
            for operand, axis in link.operands:
                if avals[operand].shape[axis] != 1:
                    needs[operand][axis].append(name)
            for result, axis in link.results:
                gives[result][axis].append(name)
            if link.is_summed:
                summed.append(name)
        needed = [tuple(map(tuple, need)) for need in needs]
        for atom, need in zip(eqn.invars, needed, strict=True):
            if not isinstance(atom, Literal):
                self._reshard(atom, self._spec(atom), need, i, eqn)
        for v, give in zip(eqn.outvars, gives, strict=True):
            self.specs[v] = tuple(map(tuple, give))
        if summed:
            self._reduce(eqn, i, summed)
        if self.timeline is not None:
            self._count(eqn, needed, self.layout.parts(n for n, _ in chosen))

    def _choose(
        self, eqn: JaxprEqn, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
    ) -> list[tuple[str, Link]]:
        """Which axis of an operation each axis of the mesh cuts."""
        chosen: list[tuple[str, Link]] = []
        specs = [self._spec(v) for v in eqn.invars]
        named = {name for spec in specs for names in spec for name in names}
        for made in eqn.outvars:
            named.update(name for names in self.wanted.get(made, ()) for name in names)
        if not named:
            return chosen
        cut: dict[tuple[int, int], int] = {}  # into how many parts axes of operands are cut already
        for name, parts in self.layout.sizes.items():
            if name not in named:
                continue
            holders: dict[Link, tuple] = {}
            links: Sequence[Link] = ()
            for number, (v, spec) in enumerate(zip(eqn.invars, specs, strict=True)):
                for axis, names in enumerate(spec):
                    if name not in names:
                        continue
                    links = links or self._links(eqn, avals, outs, parts)
                    link = next((one for one in links if (number, axis) in one.operands), None)
                    if link is not None:
                        size = self.walker.bytes(avals[number], spec)
                        rank = (not link.is_summed, self._is_active(v), size)
                        holders[link] = max(holders.get(link, rank), rank)
            found = max(holders, key=lambda one: holders[one]) if holders else None
            if found is None:
                found = self._from_results(eqn, avals, outs, name, parts)
            if found is not None and self._divides(found, avals, outs, parts, cut):
                chosen.append((name, found))
        return chosen

    def _links(self, eqn: JaxprEqn, avals: Any, outs: Any, parts: int) -> Sequence[Link]:
        known = self.walker.links
        key = id(eqn), parts
        if key not in known:
            known[key] = links_of(eqn.primitive, avals, outs, eqn.params, parts)
        return known[key]

    def _divides(self, link: Link, avals: Any, outs: Any, parts: int, cut: dict) -> bool:
        ends = [(True, *end, avals) for end in link.operands] + [(False, *end, outs) for end in link.results]
        for is_operand, number, axis, types in ends:
            n = types[number].shape[axis]
            if n != 1 and n % (parts * cut.get((is_operand, number, axis), 1)):
                return False
        for is_operand, number, axis, _ in ends:
            cut[is_operand, number, axis] = parts * cut.get((is_operand, number, axis), 1)
        return True

    def _from_results(
        self, eqn: JaxprEqn, avals: Any, outs: Any, name: str, parts: int
    ) -> Link | None:
        """The axis that results are wanted cut along by those who use them."""
        for number, v in enumerate(eqn.outvars):
            for axis, names in enumerate(self.wanted.get(v, ())):
                if name in names:
                    links = self._links(eqn, avals, outs, parts)
                    return next((one for one in links if (number, axis) in one.results), None)
        return None

    def _reshard(self, v: Any, have: Spec, need: Spec, i: int, eqn: JaxprEqn | None) -> None:
        """Brings an operand to how it is needed: parts of what is there are free, all else is sent, once."""
        if have == need or (v, need) in self.copies:
            if (v, need) in self.copies and self.timeline is not None:
                self.timeline.keep_copy((v, need), i)
            return
        before = {a: d for d, axes in enumerate(have) for a in axes}
        after = {a: d for d, axes in enumerate(need) for a in axes}
        gathered = tuple(a for a in before if a not in after)
        moved = tuple(a for a in before if a in after and after[a] != before[a])
        size = self.walker.bytes(v.aval, need)
        where = None if eqn is None else eqn.source
        if gathered and self.layout.parts(gathered) > 1:
            # What the program does not cut otherwise is cut after it was gathered.
            kept = tuple(tuple(a for a in axes if a in before) for axes in need)
            self._send("all-gather", gathered, self.walker.bytes(v.aval, kept), where)
        if moved and self.layout.parts(moved) > 1:
            self._send("all-to-all", moved, size, where)
        if gathered or moved:
            self.copies[v, need] = i
            if self.timeline is not None:
                self.timeline.add_copy((v, need), i, size)

    def _reduce(self, eqn: JaxprEqn, i: int, summed: list[str]) -> None:
        """Adds up what devices have parts of; where only a part of the sum is wanted, each gets that."""
        for v in eqn.outvars:
            spec = self.specs[v]
            want = self.wanted.get(v, spec)
            scattered = [list(axes) for axes in spec]
            rest = []
            for name in summed:
                axis = next((d for d, axes in enumerate(want) if name in axes), None)
                cut = 0 if axis is None else self.layout.parts(scattered[axis]) * self.layout.sizes[name]
                if axis is None or v.aval.shape[axis] % cut:
                    rest.append(name)
                else:
                    scattered[axis].append(name)
            size = self.walker.bytes(v.aval, spec)
            names = tuple(n for n in summed if n not in rest)
            if names and self.layout.parts(names) > 1:
                self._send("reduce-scatter", names, size, eqn.source)
                if self.timeline is not None:
                    self.timeline.add_copy((v, spec), i, size)
            self.specs[v] = tuple(tuple(sorted(axes, key=self.layout.order.__getitem__)) for axes in scattered)
            if rest and self.layout.parts(rest) > 1:
                self._send("all-reduce", tuple(rest), self.walker.bytes(v.aval, self.specs[v]), eqn.source)

    def _send(self, kind: str, axes: tuple[str, ...], size: int, where: Any) -> None:
        one = Communication(kind, axes, size, self.layout.parts(axes), 1, where)
        self.costs.communications.append(one)

    def _count(self, eqn: JaxprEqn, needs: Sequence[Spec], parts: int) -> None:
        """Arithmetic and traffic of an operation on one device."""
        assert self.timeline is not None
        device = self.layout.device
        flops = operations.flops(eqn) / parts
        dtype = eqn.invars[0].aval.dtype if eqn.invars else None
        arithmetic = flops / device.flops_for(dtype) if flops else 0.0
        traffic = 0.0
        for v, need in zip(eqn.invars, needs, strict=True):
            if not isinstance(v, Literal) and not self.timeline.is_fused(v):
                traffic += self.walker.bytes(v.aval, need)
        for made in eqn.outvars:
            if not self.timeline.is_fused(made) and not isinstance(made, DropVar):
                traffic += self.walker.bytes(made.aval, self.specs[made])
        if operations.is_view(eqn):
            traffic = 0.0
        self.costs.flops += flops
        self.costs.traffic += traffic
        self.costs.arithmetic += arithmetic
        self.costs.on_chip += max(arithmetic, traffic / device.bandwidth)

    # -- programs inside

    def _call(self, eqn: JaxprEqn, i: int) -> None:
        specs = [self._spec(v) for v in eqn.invars]
        active = [self._is_active(v) for v in eqn.invars]
        wanted = [self.wanted.get(v) for v in eqn.outvars]
        done = programs.call(self.walker, eqn, specs, active, wanted)
        for v, spec in zip(eqn.outvars, done.out_specs, strict=True):
            self.specs[v] = spec
        for operand, have, need in zip(eqn.invars, specs, done.in_specs, strict=True):
            if not isinstance(operand, Literal):
                self._reshard(operand, have, need, i, eqn)
        self.costs.add(done.costs)
        if self.timeline is not None:
            operands = sum(
                self.walker.bytes(v.aval, need)
                for v, need in zip(eqn.invars, done.in_specs, strict=True)
                if not isinstance(v, Literal)
            )
            results = sum(
                self.walker.bytes(v.aval, self.specs[v]) for v in eqn.outvars if not isinstance(v, DropVar)
            )
            self.timeline.add_inner(i, max(done.peak - operands - results, 0.0), done.peak_at, done.residents)

    def _want(self) -> None:
        """Goes backwards: who uses a value says how it is wanted, where nothing was said of it."""
        for v, want in zip(self.jaxpr.outvars, self.out_wanted, strict=True):
            if want is not None and not isinstance(v, Literal):
                self.wanted.setdefault(v, want)
        for i in range(len(self.jaxpr.eqns) - 1, -1, -1):
            eqn = self.jaxpr.eqns[i]
            for v in eqn.outvars:
                if any(self.specs[v]):
                    self._merge_want(v, self.specs[v])
            if has_programs(eqn.params):
                specs = [self._spec(v) for v in eqn.invars]
                active = [self._is_active(v) for v in eqn.invars]
                wanted = [self.wanted.get(v) for v in eqn.outvars]
                done = programs.call(self.walker, eqn, specs, active, wanted)
                for operand, spec in zip(eqn.invars, done.in_specs, strict=True):
                    if not isinstance(operand, Literal) and any(spec):
                        self._merge_want(operand, spec)
                continue
            avals = [v.aval for v in eqn.invars]
            found = self.chosen.get(i, ())
            if not found and any(v in self.wanted for v in eqn.outvars):
                found = self._choose(eqn, avals, [v.aval for v in eqn.outvars])
            for name, link in found:
                for number, axis in link.operands:
                    operand = eqn.invars[number]
                    if isinstance(operand, Literal) or avals[number].shape[axis] == 1:
                        continue
                    self._merge_want(operand, tuple((name,) if d == axis else () for d in range(operand.aval.ndim)))

    def _merge_want(self, v: Var, spec: Spec) -> None:
        """Adds what is wanted of a value to what others want, who come later in the program and were heard first."""
        old = self.wanted.get(v)
        if old is None:
            self.wanted[v] = spec
            return
        taken = {a for axes in old for a in axes}
        merged = [
            tuple(sorted({*axes, *(a for a in more if a not in taken)}, key=self.layout.order.__getitem__))
            for axes, more in zip(old, spec, strict=True)
        ]
        self.wanted[v] = tuple(merged)


def local_type(layout: Layout, aval: Any, spec: Spec) -> str:
    """The type of the part of an array that a device has."""
    shape = tuple(n // layout.parts(axes) for n, axes in zip(aval.shape, spec, strict=True))
    return ShapedArray(shape, aval.dtype).str_short()
