"""The model of a program that the page shows: plain lists and numbers, made from a jaxpr without running anything.

Programs inside of equations are programs of their own, written once however often they are called; `times` says how
often. Equations are columns, so that a program of 10,000 of them is read at once. `docs/look_inside.md` has the fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from purax.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, inner_jaxprs
from purax.core.jaxpr_format import text_of_parameter, variable_names
from purax.core.metadata import split_scope
from purax.core.primitive import Primitive
from purax.explorer.costs import bytes_of, cost_of
from purax.explorer.folding import Group, Item, fold
from purax.explorer.memory import Memory, Step
from purax.explorer.tables import Tables
from purax.primitives.elementwise.elementwise import Elementwise

VERSION = 1
_LONGEST = 160  # characters of a parameter


class ModelMaker:
    """Makes the model of one program and of those inside of it.

    Attributes:
        tables: what the programs share.
        programs: what was made so far; number 0 is the whole program.
        numbers: of each program.
    """

    def __init__(self) -> None:
        self.tables = Tables()
        self.programs: list[dict[str, Any]] = []
        self.numbers: dict[Jaxpr, int] = {}
        self._names: dict[int, dict[Var, str]] = {}

    def model(self, closed: ClosedJaxpr, name: str, argument_names: Any = None) -> dict[str, Any]:
        """The model of a program.

        Args:
            closed: the program.
            name: what it is called.
            argument_names: of each argument, how the user calls it.
        """
        self._program(closed.jaxpr, name, None, argument_names)
        count_calls(self.programs)
        return {
            "version": VERSION,
            "name": name,
            "programs": self.programs,
            "memory": self._memory(closed.jaxpr),
            "tables": self.tables.as_data(),
        }

    def _program(self, jaxpr: Jaxpr, name: str, mesh: Any, argument_names: Any = None) -> int:
        known = self.numbers.get(jaxpr)
        if known is not None:
            return known
        number = self.numbers[jaxpr] = len(self.programs)
        self.programs.append({})
        writer = _Writer(self, jaxpr, mesh)
        self.programs[number] = writer.program(name, argument_names)
        self._names[number] = writer.names
        return number

    def inside(self, eqn: JaxprEqn, mesh: Any) -> list[tuple[str, int]]:
        """The programs of an equation, with what they are for."""
        mesh = eqn.params.get("mesh", mesh)
        return [(role, self._program(jaxpr, jaxpr.name or role, mesh)) for role, jaxpr in _programs_of(eqn)]

    def cost_of_call(self, eqn: JaxprEqn, inside: list[tuple[str, int]]) -> tuple[int, int]:
        """What an equation with programs costs: of branches the dearest, of a loop all turns that are known."""
        costs = [self.programs[number]["cost"] for _, number in inside]
        turns = eqn.primitive.repeats(**eqn.params)
        if turns == 1 and any("[" in role for role, _ in inside):
            flops, moved = max(costs)
        elif turns == 1:
            flops, moved = costs[0]
        else:
            flops, moved = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
        known = 1 if turns is None else turns
        return known * flops, known * moved

    def _memory(self, jaxpr: Jaxpr) -> dict[str, Any]:
        usage = Memory().usage(jaxpr)

        def equation(step: Step | None) -> list[int] | None:
            return None if step is None else [self.numbers[step.jaxpr], step.number]

        rows = []
        for v, maker in usage.alive:
            name = self._names[self.numbers[jaxpr if maker is None else maker.jaxpr]].get(v, "")
            place = self.tables.place(maker.eqn.source) if maker is not None else -1
            rows.append([equation(maker), name, self.tables.type(v.aval), bytes_of(v.aval), place])
        return {
            "timeline": usage.timeline,
            "steps": [equation(step) for step in usage.steps],
            "peak": usage.peak,
            "alive": rows,
            "arguments": usage.around,
        }


class _Writer:
    """Writes one program."""

    def __init__(self, maker: ModelMaker, jaxpr: Jaxpr, mesh: Any):
        self.maker, self.tables, self.jaxpr, self.mesh = maker, maker.tables, jaxpr, mesh
        self._values: dict[Var, int] = {}
        self._types: list[int] = []
        self.names: dict[Var, str] = {}
        self._fresh = variable_names()

    def _new(self, var: Var) -> int:
        number = self._values[var] = len(self._types)
        self._types.append(self.tables.type(var.aval))
        self.names[var] = "_" if isinstance(var, DropVar) else next(self._fresh)
        return number

    def _atom(self, atom: Any) -> int | str:
        return repr(atom) if isinstance(atom, Literal) else self._values[atom]

    def program(self, name: str, argument_names: Any) -> dict[str, Any]:
        jaxpr = self.jaxpr
        constants = [self._new(v) for v in jaxpr.constvars]
        inputs = [self._new(v) for v in jaxpr.invars]
        columns: dict[str, list[Any]] = {key: [] for key in ("op", "place", "scope", "in", "out", "cost", "text")}
        inside: dict[str, Any] = {}
        items = []
        for i, eqn in enumerate(jaxpr.eqns):
            programs = self.maker.inside(eqn, self.mesh)
            cost = self.maker.cost_of_call(eqn, programs) if programs else cost_of(eqn, self.mesh)
            if programs:
                inside[str(i)] = {"programs": programs, "turns": eqn.primitive.repeats(**eqn.params)}
            outs = [self._new(v) for v in eqn.outvars]
            items.append(self._item(eqn)._replace(key=(eqn.primitive, *(self._types[v] for v in outs))))
            operation = self.tables.operations.number(eqn.primitive.name)
            columns["op"].append(operation)
            self.tables.kinds[operation] = _kind_of(eqn.primitive, bool(programs))
            columns["place"].append(self.tables.place(eqn.source))
            columns["scope"].append(self.tables.scopes.number("/".join(items[-1].scope)))
            columns["in"].append([self._atom(v) for v in eqn.invars])
            columns["out"].append(outs)
            columns["cost"].append(list(cost))
            columns["text"].append(self.tables.texts.number(_parameters(eqn)))
        backward = [i for i, item in enumerate(items) if item.backward]
        return {
            "name": name,
            "inputs": inputs,
            "constants": constants,
            "arguments": list(argument_names or ()),
            "results": [self._atom(v) for v in jaxpr.outvars],
            "values": self._types,
            "labels": list(self.names.values()),
            "equations": columns,
            "inside": inside,
            "backward": backward,
            "fold": [as_data(child) for child in fold(items)],
            "cost": [sum(cost[i] for cost in columns["cost"]) for i in (0, 1)],
        }

    def _item(self, eqn: JaxprEqn) -> Item:
        scope, _ = split_scope(eqn.scope)
        names = tuple(part for part in scope.split("/") if part)
        if eqn.source is None:
            return Item(names)
        file, line, function, backward = eqn.source
        return Item(names, file, line, function, backward)


def as_data(child: int | Group) -> Any:
    """A group as a list: kind, label and children."""
    if isinstance(child, Group):
        return [child.kind, child.label, [as_data(inner) for inner in child.children]]
    return child


def _programs_of(eqn: JaxprEqn) -> Iterator[tuple[str, Jaxpr]]:
    """The programs among the parameters, each with the name of its parameter."""
    for name, value in eqn.params.items():
        if isinstance(value, tuple):
            programs = [item for item in value if isinstance(item, ClosedJaxpr)]
            yield from ((f"{name}[{i}]", program.jaxpr) for i, program in enumerate(programs))
        else:
            yield from ((name, program.jaxpr) for program in inner_jaxprs({name: value}))


def _kind_of(primitive: Primitive, has_programs: bool) -> str:
    """What kind of operation it is, for colours."""
    if has_programs:
        return "call"
    if primitive.is_matrix_product or primitive.is_convolution:
        return "product"
    if isinstance(primitive, Elementwise):
        return "elementwise"
    if primitive.moves_elements or primitive.host_is_cheap:
        return "move"
    return "reduction" if primitive.is_linear else "other"


def _parameters(eqn: JaxprEqn) -> str:
    """The parameters of an equation as text, without the programs among them."""
    programs = {role.partition("[")[0] for role, _ in _programs_of(eqn)}
    shown = []
    for name, value in sorted(eqn.params.items()):
        if name not in programs:
            text = text_of_parameter(value)
            shown.append(f"{name}={text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}")
    return "\n".join(shown)


def count_calls(programs: list[dict[str, Any]]) -> None:
    """Sets `times`, how often each program runs in one call, and `open`, whether that depends on values."""
    for program in programs:
        program["times"], program["open"] = 0, False
    programs[0]["times"] = 1
    for number in _callers_first(programs):
        program = programs[number]
        for call in program["inside"].values():
            turns = call["turns"]
            for role, inner in call["programs"]:
                programs[inner]["times"] += program["times"] * (1 if turns is None else turns)
                programs[inner]["open"] |= program["open"] or turns is None or "[" in role


def _callers_first(programs: list[dict[str, Any]]) -> list[int]:
    """The programs, each after all that call it."""
    order: list[int] = []
    done: set[int] = set()
    waiting = [(0, False)]
    while waiting:
        number, is_left = waiting.pop()
        if is_left:
            order.append(number)
        elif number not in done:
            done.add(number)
            waiting.append((number, True))
            for call in programs[number]["inside"].values():
                waiting += [(inner, False) for _, inner in call["programs"]]
    return order[::-1]
