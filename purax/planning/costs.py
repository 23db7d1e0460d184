"""What a program takes: arithmetic, traffic with the memory of a device, and what devices send to each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from purax.planning.hardware import Hardware
from purax.xla.collective_report import Collective

Spec = tuple[tuple[str, ...], ...]
"""For each axis of an array the axes of the mesh that it is cut along."""


class Communication(NamedTuple):
    """What devices tell each other at one place of a program.

    Attributes:
        kind: "all-reduce", "all-gather", "reduce-scatter" or "all-to-all".
        axes: the axes of the mesh along which devices talk.
        bytes: of the array on one device, the whole one where the operation gathers or scatters parts of it.
        devices: how many talk in each group.
        times: how often in one step.
        where: the user's line.
    """

    kind: str
    axes: tuple[str, ...]
    bytes: int
    devices: int
    times: int
    where: Any

    @property
    def sent(self) -> int:
        """The bytes that one device sends in a step, in a ring."""
        return self.collective.sent

    @property
    def collective(self) -> Collective:
        """As `Compiled.collectives()` reports it."""
        return Collective(self.kind, self.bytes, self.devices, self.times)


class Resident(NamedTuple):
    """An array that is in the memory of a device when that is fullest.

    Attributes:
        bytes: of its part on one device.
        type: the type of the part.
        spec: how the array is sharded.
        where: the argument it is, or the line that made it.
    """

    bytes: int
    type: str
    spec: Spec
    where: str


@dataclass
class Costs:
    """What a part of a program takes, on each device.

    Attributes:
        flops: operations of products and convolutions.
        traffic: bytes read and written.
        on_chip: seconds of arithmetic and traffic, whichever takes longer, operation by operation.
        arithmetic: seconds of arithmetic alone.
        communications: what is sent.
        unknown_loops: lines of loops whose number of iterations is not known; they count once.
    """

    flops: float = 0.0
    traffic: float = 0.0
    on_chip: float = 0.0
    arithmetic: float = 0.0
    communications: list[Communication] = field(default_factory=list)
    unknown_loops: list[Any] = field(default_factory=list)

    def add(self, other: Costs, times: int = 1) -> None:
        """Counts another part, so many times."""
        self.flops += times * other.flops
        self.traffic += times * other.traffic
        self.on_chip += times * other.on_chip
        self.arithmetic += times * other.arithmetic
        self.communications += [one._replace(times=one.times * times) for one in other.communications]
        self.unknown_loops += other.unknown_loops


class Layout:
    """A mesh on paper: the names and sizes of its axes, and the devices.

    Arguments:
        sizes: the size of each axis, by name; devices that follow each other differ in the last.
        device: what they are.
    """

    def __init__(self, sizes: Mapping[str, int], device: Hardware):
        self.sizes = dict(sizes)
        self.device = device
        self.order = {name: i for i, name in enumerate(self.sizes)}
        self.count = math.prod(self.sizes.values())
        names = list(self.sizes)
        self.strides = {name: math.prod(self.sizes[n] for n in names[i + 1 :]) for i, name in enumerate(names)}

    def parts(self, axes: Any) -> int:
        """Into how many parts these axes cut."""
        return math.prod(self.sizes[name] for name in axes)

    def seconds(self, one: Communication) -> float:
        """How long a communication takes, once: bytes by the speed of the slowest link, and the latency."""
        stride = min((self.strides[name] for name in one.axes if self.sizes[name] > 1), default=1)
        speed = self.device.sending(one.devices, stride)
        once = one._replace(times=1).sent
        return once / speed + self.device.latency * math.ceil(math.log2(max(one.devices, 2)))

    def link_of(self, one: Communication) -> str:
        """Which links a communication takes: "link" within nodes, or "network"."""
        stride = min((self.strides[name] for name in one.axes if self.sizes[name] > 1), default=1)
        return "link" if one.devices * stride <= self.device.node else "network"
