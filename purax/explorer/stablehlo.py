"""Models of programs that are StableHLO, such as exported functions: each function and each body of a loop is one."""

from __future__ import annotations

import math
import re
from typing import Any

from purax.explorer.folding import Item, fold
from purax.explorer.model import VERSION, as_data, count_calls
from purax.explorer.tables import Tables
from purax.xla import jaxlib_api

_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)([^<>,]+)[^<>]*>")
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
_NAMED = re.compile(r'loc\("((?:[^"\\]|\\.)*)"\(')
_BITS = re.compile(r"\d+")
_LONGEST = 160
_WITH_BODIES = ("stablehlo.while", "stablehlo.case", "stablehlo.if")
_ENDS = ("return", "stablehlo.return", "func.return", "sdy.return")


def model_of_module(text: str, name: str) -> dict[str, Any]:
    """The model of a module.

    Args:
        text: of the module, in StableHLO.
        name: what it is called.
    """
    return _Reader(text).model(name)


class _Reader:
    """Reads one module. The numbers of functions are given before they are read, since they call each other."""

    def __init__(self, text: str):
        self.tables = Tables()
        self.programs: list[dict[str, Any]] = []
        self._module = jaxlib_api.parse_module(text)  # which holds the operations
        self._functions = {
            _text(op.attributes["sym_name"]): op for op in self._module.body.operations if "sym_name" in op.attributes
        }
        self._numbers: dict[str, int] = {}

    def model(self, name: str) -> dict[str, Any]:
        self._function("main")
        count_calls(self.programs)
        program = self.programs[0]
        arguments = sum(self.tables.sizes[program["values"][v]] for v in program["inputs"])
        return {
            "version": VERSION,
            "name": name,
            "programs": self.programs,
            "memory": {"timeline": [], "steps": [], "peak": -1, "alive": [], "arguments": arguments},
            "tables": self.tables.as_data(),
            "counted": False,  # operations on numbers are not, only bytes
            "seconds": {},
            "findings": [],
            "traces": [],
        }

    def _function(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.programs)
            self.programs.append({})
            block = self._functions[name].regions[0].blocks[0]
            self.programs[self._numbers[name]] = self._program(block, name)
        return self._numbers[name]

    def _program(self, block: Any, name: str) -> dict[str, Any]:
        values: dict[Any, int] = {}
        types: list[int] = []

        def new(value: Any) -> int:
            number = values[value] = len(types)
            types.append(self._type(str(value.type)))
            return number

        inputs = [new(value) for value in block.arguments]
        columns: dict[str, list[Any]] = {key: [] for key in ("op", "place", "scope", "in", "out", "cost", "text")}
        inside: dict[str, Any] = {}
        items: list[Item] = []
        results: list[Any] = []
        for op in block.operations:
            kind = op.operation.name

            def atom(value: Any) -> int | str:
                return values[value] if value in values else "outer"

            operands = [atom(value) for value in op.operation.operands]
            if kind in _ENDS:
                results = operands
                continue
            programs = self._inside(op, kind)
            if programs:
                inside[str(len(items))] = {"programs": programs, "turns": None if kind == "stablehlo.while" else 1}
            item = _item(str(op.operation.location))
            items.append(item)
            columns["op"].append(self.tables.operations.number(kind.partition(".")[2] or kind))
            columns["place"].append(-1 if item.file is None else self.tables.place_at(item.file, item.line))
            columns["scope"].append(self.tables.scopes.number("/".join(item.scope)))
            columns["in"].append(operands)
            outs = [new(value) for value in op.operation.results]
            columns["out"].append(outs)
            columns["cost"].append(self._cost(types, operands, outs))
            columns["text"].append(self.tables.texts.number(_attributes(op)))
        return {
            "name": name,
            "inputs": inputs,
            "constants": [],
            "arguments": [],
            "results": results,
            "values": types,
            "labels": [f"%{n}" for n in range(len(types))],
            "equations": columns,
            "inside": inside,
            "backward": [],
            "fold": [as_data(child) for child in fold(items)],
            "cost": [sum(cost[i] for cost in columns["cost"]) for i in (0, 1)],
        }

    def _inside(self, op: Any, kind: str) -> list[tuple[str, int]]:
        if kind in ("func.call", "call"):
            called = _text(op.attributes["callee"]).lstrip("@")
            return [("call", self._function(called))] if called in self._functions else []
        found = []
        if kind in _WITH_BODIES:
            names = ("cond", "body") if kind == "stablehlo.while" else None
            for i, region in enumerate(op.regions):
                role = names[i] if names else f"branches[{i}]"
                number = len(self.programs)
                self.programs.append({})
                self.programs[number] = self._program(region.blocks[0], role)
                found.append((role, number))
        return found

    def _type(self, text: str) -> int:
        found = _TENSOR.fullmatch(text)
        if found is None:
            return self.tables.type_of(text, 0)
        sizes = found[1].split("x")[:-1]
        digits = _BITS.search(found[2])
        bits = 8 if found[2] == "i1" else int(digits[0]) if digits else 0
        bits *= 2 if found[2].startswith("complex") else 1
        known = all(size != "?" for size in sizes)
        size = bits * math.prod(map(int, sizes)) // 8 if known else 0
        return self.tables.type_of(f"{found[2]}[{','.join(sizes)}]", size)

    def _cost(self, types: list[int], operands: list[Any], outs: list[int]) -> list[int]:
        sizes = self.tables.sizes
        moved = sum(sizes[types[v]] for v in {*[v for v in operands if isinstance(v, int)], *outs})
        return [0, moved]


def _text(attribute: Any) -> str:
    return str(attribute).strip('"')


def _item(location: str) -> Item:
    place = _FILE.search(location)
    named = _NAMED.search(location)
    scope = tuple(named[1].split("/")[:-1]) if named else ()
    return Item(scope, place[1], int(place[2])) if place and place[1] not in ("-", "") else Item(scope)


def _attributes(op: Any) -> str:
    shown = []
    for name in sorted(getattr(each, "name", each) for each in op.operation.attributes):
        text = str(op.operation.attributes[name])
        shown.append(f"{name}={text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}")
    return "\n".join(shown)
