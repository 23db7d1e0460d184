"""What `plan` returns: the ways to shard a step that were tried, best first, as tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from purax.core.specs import PartitionSpec
from purax.planning.costs import Communication, Costs, Layout, Resident, Spec
from purax.sharding.shardings import NamedSharding
from purax.tree.registry import tree_unflatten
from purax.tree_util import tree_map

_WIDTH = 40


@dataclass
class Plan:
    """One way to shard the arguments of a step, and what it costs on each device.

    Attributes:
        name: the sizes of the mesh, and what its axes are for.
        mesh_shape: the size of each axis of the mesh.
        specs: a `PartitionSpec` for each array of the arguments, in their structure.
        memory: the most bytes at once in the memory of a device.
        peak_at: the line where that is.
        residents: the largest arrays that are in memory then.
        communications: what devices send to each other, place by place.
        time: seconds of a step, if nothing is sent while devices compute.
        time_at_least: seconds of a step, if all is sent meanwhile.
        compute_time: seconds of arithmetic, and of traffic with memory where that takes longer.
        communication_time: seconds of sending.
        flops: operations of products and convolutions.
        traffic: bytes read and written.
        fits: whether the memory of a device is large enough; None if that is not known.
        utilization: the part of a device's arithmetic that is used.
        unknown_loops: lines of loops that counted once, since nobody knows how often they run.
    """

    name: str
    mesh_shape: dict[str, int]
    specs: tuple
    memory: int
    peak_at: Any
    residents: list[Resident]
    communications: list[Communication]
    time: float
    time_at_least: float
    compute_time: float
    communication_time: float
    flops: float
    traffic: float
    fits: bool | None
    utilization: float
    unknown_loops: list[Any]
    layout: Layout = field(repr=False)
    leaves: list[tuple[str, Any, Spec]] = field(repr=False)

    def shardings(self, mesh: Any) -> tuple:
        """The specs as shardings over a mesh, whose axes have the names and sizes of `mesh_shape`.

        Args:
            mesh: a mesh of devices.
        """
        return tree_map(
            lambda spec: NamedSharding(mesh, spec), self.specs, is_leaf=lambda x: isinstance(x, PartitionSpec)
        )

    @property
    def sent(self) -> int:
        """The bytes that one device sends in a step."""
        return sum(one.sent for one in self.communications)

    @property
    def sent_by_link(self) -> dict[str, int]:
        """The bytes that one device sends in a step, by kind of link: "link" within a node, or "network"."""
        found: dict[str, int] = {}
        for one in self.communications:
            link = self.layout.link_of(one)
            found[link] = found.get(link, 0) + one.sent
        return found

    def collectives(self) -> list[Communication]:
        """What is sent, the most first, with equal communications of one line together."""
        joined: dict[tuple, Communication] = {}
        for one in self.communications:
            key = (*one[:4], str(one.where))
            old = joined.get(key)
            joined[key] = one if old is None else old._replace(times=old.times + one.times)
        return sorted(joined.values(), key=lambda one: -one.sent)

    def picture(self) -> str:
        """Memory and time as bars, and how the largest parameters are cut."""
        capacity = self.layout.device.memory
        lines = [f"{self.name}: {self.layout.count} × {self.layout.device.name}"]
        share = self.memory / capacity if capacity else 1.0
        of = f" of {size_text(capacity)}" if capacity else ""
        lines.append(f"memory   {_bar(share)} {size_text(self.memory)}{of}, at {self.peak_at}")
        for label, part in (("compute", self.compute_time), ("send", self.communication_time)):
            lines.append(f"{label:<8} {_bar(part / max(self.time, 1e-30))} {time_text(part)}")
        cut = sorted(_alike(self.leaves), key=lambda leaf: -math.prod(leaf[1].shape))
        for path, aval, spec in cut[:4]:
            lines.append("")
            lines.append(f"{path} {list(aval.shape)}: {_spec_text(spec)}")
            lines += _boxes(self.layout, spec)
        return "\n".join(lines)

    def __repr__(self) -> str:
        rows = [
            ["collective", "along", "bytes", "devices", "times", "link", "sent", "line"],
            *(
                [
                    one.kind,
                    ", ".join(one.axes),
                    size_text(one.bytes),
                    str(one.devices),
                    str(one.times),
                    self.layout.link_of(one),
                    size_text(one.sent),
                    str(one.where),
                ]
                for one in self.collectives()[:12]
            ),
        ]
        said = [
            f"Plan {self.name}",
            f"  step {time_text(self.time_at_least)} to {time_text(self.time)}: "
            f"{time_text(self.compute_time)} on chip, {time_text(self.communication_time)} to send "
            f"{size_text(self.sent)}; {100 * self.utilization:.0f} % of the arithmetic",
            f"  memory {size_text(self.memory)}, fullest at {self.peak_at}",
            *(f"    {size_text(r.bytes):>9}  {r.type}  {r.where}" for r in self.residents[:6]),
        ]
        if len(rows) > 1:
            said += ["  " + line for line in _table(rows)]
        if self.unknown_loops:
            said.append(f"  counted once, since nobody knows how often it runs: {self.unknown_loops[0]}")
        return "\n".join(said)


class Plans(Sequence[Plan]):
    """The plans that `plan` has made, best first: those that fit, by the time of a step; then those that do not.

    Attributes:
        plans: all of them.
        seconds: how long it took to make them.
        tried: how many shardings were looked at.
    """

    def __init__(self, plans: list[Plan], seconds: float, tried: int):
        self.plans, self.seconds, self.tried = plans, seconds, tried

    @property
    def best(self) -> Plan:
        """The first."""
        return self.plans[0]

    def __len__(self) -> int:
        return len(self.plans)

    def __getitem__(self, index: Any) -> Any:
        return self.plans[index]

    def __iter__(self) -> Iterator[Plan]:
        return iter(self.plans)

    def __repr__(self) -> str:
        layout = self.best.layout
        rows = [["", "mesh", "memory", "fits", "compute", "send", "step", "sent", "network", "used"]]
        for i, one in enumerate(self.plans):
            fits = "?" if one.fits is None else "yes" if one.fits else "no"
            rows.append(
                [
                    str(i),
                    one.name,
                    size_text(one.memory),
                    fits,
                    time_text(one.compute_time),
                    time_text(one.communication_time),
                    time_text(one.time),
                    size_text(one.sent),
                    size_text(one.sent_by_link.get("network", 0)),
                    f"{100 * one.utilization:.0f} %",
                ]
            )
        head = (
            f"{len(self.plans)} plans for {layout.count} × {layout.device.name}, "
            f"{self.tried} shardings in {self.seconds:.1f} s"
        )
        best = [f"{path}: {_spec_text(spec)}" for path, _, spec in _alike(self.best.leaves) if any(spec)]
        shown = best if len(best) <= 24 else [*best[:24], f"… and {len(best) - 24} more"]
        return "\n".join([head, *_table(rows), "", "best:", *("  " + line for line in shown)])


def make_plan(
    name: str,
    layout: Layout,
    costs: Costs,
    peak: float,
    peak_at: Any,
    residents: list[Resident],
    leaves: list[tuple[str, Any, Spec]],
    in_tree: Any,
) -> Plan:
    """A plan of what a walk has found."""
    sending = sum(one.times * layout.seconds(one) for one in costs.communications)
    time = costs.on_chip + sending
    capacity = layout.device.memory
    specs = tree_unflatten(in_tree, [as_partition_spec(spec) for _, _, spec in leaves])
    return Plan(
        name=name,
        mesh_shape=dict(layout.sizes),
        specs=specs,
        memory=int(peak),
        peak_at=peak_at,
        residents=residents,
        communications=costs.communications,
        time=time,
        time_at_least=max(costs.on_chip, sending),
        compute_time=costs.on_chip,
        communication_time=sending,
        flops=costs.flops,
        traffic=costs.traffic,
        fits=None if capacity is None else peak <= capacity,
        utilization=costs.arithmetic / time if time else 0.0,
        unknown_loops=costs.unknown_loops,
        layout=layout,
        leaves=leaves,
    )


def as_partition_spec(spec: Spec) -> PartitionSpec:
    """A sharding as users write it.

    >>> as_partition_spec((("data",), (), ("x", "y")))
    PartitionSpec('data', None, ('x', 'y'))
    """
    entries: list[Any] = [axes[0] if len(axes) == 1 else axes or None for axes in spec]
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


def _alike(leaves: Sequence[tuple[str, Any, Spec]]) -> list[tuple[str, Any, Spec]]:
    """Arrays of one name, shape and sharding as one, with their number: parameters, their averages, equal layers."""
    found: dict[tuple, list[tuple[str, Any, Spec]]] = {}
    for leaf in leaves:
        path, aval, spec = leaf
        found.setdefault((path.rpartition("[")[2], aval.shape, spec), []).append(leaf)
    return [
        (path if len(same) == 1 else f"{path} and {len(same) - 1} like it", aval, spec)
        for same in found.values()
        for path, aval, spec in same[:1]
    ]


def _spec_text(spec: Spec) -> str:
    return repr(as_partition_spec(spec)).replace("PartitionSpec", "P")


def size_text(size: float) -> str:
    """Bytes as people say them.

    >>> size_text(141e9), size_text(1500), size_text(0)
    ('141 GB', '1.5 kB', '0')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            value = size / unit
            return f"{value:.0f} {name}" if value >= 99.5 else f"{value:.1f} {name}"
    return f"{size:.0f} B" if size else "0"


def time_text(seconds: float) -> str:
    """Seconds as people say them.

    >>> time_text(1.5), time_text(0.0123), time_text(2e-6)
    ('1.50 s', '12.3 ms', '2.0 µs')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    texts = {"mesh", "collective", "along", "line", "link"}
    left = [name in texts for name in rows[0]]
    return [
        "  ".join(
            cell.ljust(width) if is_left else cell.rjust(width)
            for cell, width, is_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in rows
    ]


def _bar(share: float) -> str:
    full = min(round(share * _WIDTH), _WIDTH)
    return "█" * full + "░" * (_WIDTH - full) if share <= 1 else "█" * _WIDTH + "▶"


def _boxes(layout: Layout, spec: Spec) -> list[str]:
    """An array as a box of rows and columns (its last axis), cut as they are; long rows of parts are shortened."""
    rows = math.prod(layout.parts(axes) for axes in spec[:-1])
    columns = math.prod(layout.parts(axes) for axes in spec[-1:])
    across, down = min(columns, 8), min(rows, 4)
    marks = ["···" if columns > across and i == across - 1 else "   " for i in range(across)]
    lines = ["┌" + "┬".join(["───"] * across) + "┐"]
    for i in range(down):
        if i:
            lines.append("├" + "┼".join(["───"] * across) + "┤")
        here = [" ⋮ "] * across if rows > down and i == down - 1 else marks
        lines.append("│" + "│".join(here) + "│")
    lines.append("└" + "┴".join(["───"] * across) + "┘" + f"  {rows} × {columns} parts")
    return lines
