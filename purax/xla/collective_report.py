"""What a compiled program sends between devices, read from the compiler's own text.

Every collective operation of the optimized program is found, with the bytes it moves and how often it runs: once for
each iteration of the loops around it whose number of turns the compiler knows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

KINDS = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "reduce-scatter",
    "collective-broadcast",
)
# Patterns are compiled when a report is first asked for, not by every `import purax`.
_RESULT = rf"= (?P<type>\(.*?\)|\S+) (?P<kind>{'|'.join(KINDS)})(?P<start>-start)?\("
_ARRAY = r"\b([a-z]+[0-9]*[a-z0-9]*)\[([0-9,]*)\]"
_COMPUTATION = r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$"
_CALLED = (
    r"(?:to_apply|body|condition|calls|true_computation|false_computation)=%?([\w.\-]+)"
    r"|(?:branch_computations|called_computations)=\{([^}]*)\}"
)
_TURNS = r'"known_trip_count":\{"n":"(\d+)"\}'
_LISTED_GROUPS = r"replica_groups=\{\{([0-9,]*)\}"
_COUNTED_GROUPS = r"replica_groups=\[(\d+),(\d+)\]"
_NAMED_GROUPS = r"replica_groups=mesh\[([^\]]*)\] \{([^}]*)\}"
_BITS = {"pred": 8, "token": 0}


class Collective(NamedTuple):
    """One collective operation of a compiled program.

    Attributes:
        kind: "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute" or another.
        bytes: of the array on one device, the whole one where the operation gathers or scatters parts of it.
        devices: how many take part in each group that communicates.
        times: how often it runs in one call of the program.
    """

    kind: str
    bytes: int
    devices: int
    times: int

    @property
    def sent(self) -> int:
        """The bytes that one device sends in one call of the program, if the devices pass them on in a ring."""
        share = (self.devices - 1) / self.devices
        passes = {"all-reduce": 2 * share, "collective-permute": 1.0, "collective-broadcast": 1.0}
        return round(self.times * self.bytes * passes.get(self.kind, share))


def collectives_of(text: str) -> list[Collective]:
    """The collective operations of an optimized program, in HLO.

    >>> line = '%r = f32[4]{0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%add'
    >>> collectives_of('ENTRY %main (x: f32[4]) -> f32[4] {' + chr(10) + line + chr(10) + '}')
    [Collective(kind='all-reduce', bytes=16, devices=2, times=1)]
    """
    computations, entry = _computations(text)
    devices = re.search(r"num_partitions=(\d+)", text)
    return list(_walk(computations, entry, 1, int(devices.group(1)) if devices else 1))


def _computations(text: str) -> tuple[dict[str, list[str]], str]:
    """The lines of each computation, and the name of the one that is called first."""
    found: dict[str, list[str]] = {}
    entry, lines = "", []
    for line in text.splitlines():
        header = re.match(_COMPUTATION, line)
        if header is not None:
            lines = found[header["name"]] = []
            entry = header["name"] if header["entry"] else entry
        else:
            lines.append(line)
    return found, entry


def _walk(computations: dict[str, list[str]], name: str, times: int, devices: int) -> Iterator[Collective]:
    for line in computations.get(name, ()):
        result = re.search(_RESULT, line)
        if result is not None:
            yield _collective(line, result, times, devices)
            continue
        known = re.search(_TURNS, line)
        turns = times * int(known.group(1)) if known else times
        for one, several in re.findall(_CALLED, line):
            for called in [one] if one else [part.strip().lstrip("%") for part in several.split(",")]:
                yield from _walk(computations, called, turns, devices)


def collective_of(line: str, times: int, devices: int) -> Collective | None:
    """The collective operation that a line of HLO is, if it is one.

    Args:
        line: of the optimized program.
        times: how often it runs.
        devices: of the whole program, for operations among all of them.
    """
    result = re.search(_RESULT, line)
    return None if result is None else _collective(line, result, times, devices)


def _collective(line: str, result: re.Match, times: int, devices: int) -> Collective:
    kind = result["kind"]
    sizes = [_bytes(*array) for array in re.findall(_ARRAY, result["type"])]
    if result["start"] and kind in ("all-gather", "collective-permute") and len(sizes) > 1:
        sizes = sizes[1:2]  # (what is sent, what arrives, …)
    devices = _group_size(line) or devices
    whole = sum(sizes) * (devices if kind == "reduce-scatter" else 1)
    return Collective(kind, whole, devices, times)


def _group_size(line: str) -> int | None:
    """How many devices are in a group, in the three ways that the compiler writes groups; None for all devices."""
    if counted := re.search(_COUNTED_GROUPS, line):
        return int(counted.group(2))
    if listed := re.search(_LISTED_GROUPS, line):
        return len(listed.group(1).split(","))
    if named := re.search(_NAMED_GROUPS, line):
        sizes = dict(re.findall(r"'([^']*)'=(\d+)", named.group(1)))
        parts = re.findall(r"'([^']*)'(?::\(\d+\)(\d+))?", named.group(2))  # an axis, or a part of one
        return math.prod(int(part or sizes[axis]) for axis, part in parts)
    return None


def _bytes(dtype: str, shape: str) -> int:
    digits = re.match(r"[a-z]+(\d+)", dtype)
    bits = _BITS[dtype] if dtype in _BITS else int(digits.group(1)) if digits else 32
    return math.ceil(bits * math.prod(int(n) for n in shape.split(",") if n) / 8)
