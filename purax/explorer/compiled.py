"""What became of a program when it was compiled: the kernels of the optimized HLO, and the user's lines in each.

The text of XLA is read line by line. Instructions inside of fusions are counted with the fusion; loops, calls and
branches are kernels whose own instructions follow as kernels too, with how often they run where XLA knows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from purax.explorer.tables import Tables
from purax.xla.collective_report import KINDS, Collective, collective_of

_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>\(.*?\)|\S+) (?P<op>[\w\-]+)\((?P<rest>.*)$"
)
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_LINE = re.compile(r'source_file="((?:[^"\\]|\\.)*)" source_line=(\d+)')
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_TARGET = re.compile(r'custom_call_target="((?:[^"\\]|\\.)*)"')
_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_SHARDING = re.compile(r"sharding=\{(.*?)\}(?:,|$)")
_BUILD = re.compile(r"_[0-9a-f]{12}$")
_INSIDE = re.compile(
    r"(?:to_apply|body|condition|calls|true_computation|false_computation)=%?([\w.\-]+)"
    r"|(?:branch_computations|called_computations)=\{([^}]*)\}"
)
_ARRAY = re.compile(r"\b[a-z]+[0-9]*[a-z0-9]*\[[0-9,]*\]")
# Names for what costs nothing: they only say where a value is.
_FREE = frozenset(("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"))
_ON_HOST = "S(5)"  # how layouts mark what is in the memory of the host


class Instruction(NamedTuple):
    """A line of HLO."""

    name: str
    op: str
    type: str
    rest: str


class Hlo:
    """The text of an optimized program, taken apart.

    Attributes:
        computations: the instructions of each computation.
        entry: the name of the one that is called first.
        places: for each number of a stack frame, file and line.
    """

    def __init__(self, text: str):
        self.computations: dict[str, list[Instruction]] = {}
        self.entry = ""
        self.places = _frames(text)
        instructions: list[Instruction] = []
        for line in text.splitlines():
            header = _COMPUTATION.match(line)
            if header is not None:
                instructions = self.computations[header["name"]] = []
                self.entry = header["name"] if header["entry"] else self.entry
                continue
            found = _INSTRUCTION.match(line)
            if found is not None:
                instructions.append(Instruction(found["name"], found["op"], found["type"], found["rest"]))

    def place(self, instruction: Instruction) -> tuple[str, int] | None:
        """The user's line of an instruction."""
        frame = _FRAME.search(instruction.rest)
        if frame is not None:
            return self.places.get(int(frame[1]))
        line = _LINE.search(instruction.rest)
        return None if line is None or line[1] == "-" else (line[1], int(line[2]))

    def inside(self, instruction: Instruction) -> list[str]:
        """The computations that an instruction runs."""
        names = []
        for one, several in _INSIDE.findall(instruction.rest):
            names += [one] if one else [part.strip().lstrip("%") for part in several.split(",")]
        return [name for name in names if name in self.computations]


def _frames(text: str) -> dict[int, tuple[str, int]]:
    """The tables at the head of the text: stack frame -> location -> file name and line."""
    head = text.partition("\n%")[0].partition("\nENTRY ")[0]
    files = dict(re.findall(r'^(\d+) "(.*)"$', head.partition("FileNames")[2].partition("\n\n")[0], re.MULTILINE))
    locations = {
        number: (files.get(file, ""), int(line))
        for number, file, line in re.findall(r"^(\d+) \{file_name_id=(\d+) .*?line=(\d+) ", head, re.MULTILINE)
    }
    frames = re.findall(r"^(\d+) \{file_location_id=(\d+)", head, re.MULTILINE)
    return {int(number): locations[at] for number, at in frames if at in locations and locations[at][0] != "-"}


def kernels(text: str, tables: Tables) -> list[dict[str, Any]]:
    """The kernels of an optimized program.

    Args:
        text: the HLO.
        tables: of the model, to which lines and types are added.
    """
    hlo = Hlo(text)
    devices = re.search(r"num_partitions=(\d+)", text)
    return list(_walk(hlo, hlo.entry, 1, 0, tables, int(devices[1]) if devices else 1))


def _walk(
    hlo: Hlo, name: str, times: int | None, depth: int, tables: Tables, devices: int
) -> Iterator[dict[str, Any]]:
    for instruction in hlo.computations.get(name, ()):
        if instruction.op in _FREE:
            continue
        kind = _kind(instruction)
        inner = hlo.inside(instruction)
        own = [instruction]
        if kind in ("fused", "reduced", "collective"):
            own += [part for name in inner for part in hlo.computations[name] if part.op not in _FREE]
        places: Counter[int] = Counter()
        for part in own[1:] or own:
            place = hlo.place(part)
            if place is not None:
                places[tables.place_at(*place)] += 1
        target = _TARGET.search(instruction.rest)
        sharding = _SHARDING.search(instruction.rest)
        yield {
            "name": instruction.name,
            "kind": kind,
            "op": instruction.op,
            "type": " ".join(_ARRAY.findall(instruction.type)[:4]),
            "target": _BUILD.sub("", target[1]) if target else "",
            "made of": _made_of(own[1:] or own),
            "places": [[number, count] for number, count in places.most_common()],
            "times": times,
            "depth": depth,
            "host": _ON_HOST in instruction.type,
            "sharding": sharding[1] if sharding else "",
            **_sent(instruction, times or 1, devices),
        }
        if kind in ("loop", "call", "branches"):
            known = _TURNS.search(instruction.rest)
            turns = times if kind != "loop" else int(known[1]) * times if known and times else None
            for name in inner:
                yield from _walk(hlo, name, turns, depth + 1, tables, devices)


def _sent(instruction: Instruction, times: int, devices: int) -> dict[str, Any]:
    """What a collective operation sends."""
    line = f"= {instruction.type} {instruction.op}({instruction.rest}"
    found: Collective | None = collective_of(line, times, devices)
    if found is None:
        return {}
    return {"bytes": found.bytes, "sent": found.sent, "devices": found.devices}


def _made_of(parts: list[Instruction]) -> list[list[Any]]:
    """The operations of the user's program that a kernel computes, with how many instructions each became."""
    names: Counter[str] = Counter()
    for part in parts:
        found = _OP_NAME.search(part.rest)
        if found is not None:
            names[found[1].rpartition("/")[2]] += 1
    return [[name, count] for name, count in names.most_common()]


def _kind(instruction: Instruction) -> str:
    op = instruction.op
    if op == "fusion":
        return "fused"
    if op == "custom-call":
        target = _TARGET.search(instruction.rest)
        name = target[1] if target else ""
        return "native" if name.startswith("purax_") else "callback" if "callback" in name else "library"
    if op.removesuffix("-start").removesuffix("-done") in KINDS:
        return "collective"
    kinds = {"while": "loop", "call": "call", "conditional": "branches", "reduce": "reduced", "copy": "copy"}
    return kinds.get(op, "alone")
