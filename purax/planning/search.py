"""Shardings that are tried: which axes of a mesh the batch is cut along, the parameters, or both.

Along an axis of the role "data" the batch is cut and parameters are repeated; along one of "fsdp" parameters are cut as
well, and gathered where they are needed; along one of "model" every device computes a part of each layer. Which axis
of a parameter "model" cuts is found by trying: one group of like parameters after the other gets what costs least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from purax.core.jaxpr import ClosedJaxpr
from purax.planning.costs import Layout, Spec
from purax.planning.hardware import Hardware
from purax.planning.walk import Walked, Walker

_SMALL = 1 << 14  # elements; smaller parameters are not cut along "fsdp", which would only cost time
_ROUNDS = 2


@dataclass(frozen=True)
class Leaf:
    """An argument of the step: an array.

    Attributes:
        path: where it is among the arguments.
        group: what it has in common with others that are sharded alike.
        shape: of the array.
        is_batch: whether it is data, not state.
        aval: its type.
    """

    path: str
    group: tuple
    shape: tuple[int, ...]
    is_batch: bool
    aval: Any


@dataclass(frozen=True)
class Roles:
    """What the axes of a mesh are for, and how many devices they have: triples of name, size and role."""

    axes: tuple[tuple[str, int, str], ...]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes, by name."""
        return {name: size for name, size, _ in self.axes}

    def of(self, *roles: str) -> list[str]:
        """The names of the axes with certain roles."""
        return [name for name, size, role in self.axes if role in roles and size > 1]

    @property
    def name(self) -> str:
        """As tables say it."""
        said = [f"{name} {size} ({role})" if role != name else f"{name} {size}" for name, size, role in self.axes]
        return " × ".join(said)


def splits(count: int, node: int) -> Iterator[Roles]:
    """The ways to divide a number of devices into axes."""
    models = [m for m in range(1, min(count, 64) + 1) if count % m == 0 and (m & (m - 1) == 0 or m == count)]
    for m in models:
        rest = count // m
        model = (("model", m, "model"),) if m > 1 else ()
        if rest == 1:
            yield Roles(model or (("data", 1, "data"),))
            continue
        yield Roles((("data", rest, "data"), *model))
        yield Roles((("data", rest, "fsdp"), *model))
        # Parameters are cut within a node, or a few, and repeated over the others.
        for inner in (node // m, 4 * node // m):
            if 1 < inner < rest and rest % inner == 0:
                yield Roles((("replica", rest // inner, "data"), ("data", inner, "fsdp"), *model))


def roles_of(sizes: Mapping[str, int]) -> Iterator[Roles]:
    """The roles that the axes of a given mesh may have."""
    found: list[tuple] = [()]
    for name, size in sizes.items():
        choices = ("data", "fsdp", "model") if size > 1 else ("data",)
        found = [(*before, (name, size, role)) for before in found for role in choices]
    for axes in found[:81]:
        if not (len({role for _, _, role in axes}) == 1 and axes[0][2] == "model" and len(axes) > 1):
            yield Roles(axes)


class Search:
    """Tries shardings of the arguments of a program.

    Arguments:
        closed: the program.
        leaves: its arguments.
        results: for each result the number of the argument that takes its place in the next step, or None.
        freed: which arguments are donated.
        device: what the devices are.
    """

    def __init__(
        self,
        closed: ClosedJaxpr,
        leaves: Sequence[Leaf],
        results: Sequence[int | None],
        freed: Sequence[bool],
        device: Hardware,
    ):
        self.closed, self.leaves, self.results, self.freed = closed, list(leaves), list(results), list(freed)
        self.device = device
        self.walks = 0
        self._links: dict = {}
        self._lives: dict = {}

    def walk(self, roles: Roles, specs: Sequence[Spec]) -> tuple[Layout, Walked]:
        """What the step costs for arguments that are sharded like that."""
        layout = Layout(roles.sizes, self.device)
        wanted = [None if n is None else specs[n] for n in self.results]
        active = [leaf.is_batch for leaf in self.leaves]
        self.walks += 1
        return layout, Walker(layout, self._links, self._lives).walk(self.closed, specs, wanted, active, self.freed)

    def specs(self, roles: Roles, pattern: Mapping[tuple, int]) -> list[Spec] | None:
        """How the arguments are sharded: None if the batch does not divide.

        Arguments:
            roles: of the axes.
            pattern: for groups of parameters the axis that "model" cuts.
        """
        sizes = roles.sizes
        rows, whole, model = roles.of("data", "fsdp"), roles.of("fsdp"), roles.of("model")
        found: list[Spec] = []
        for leaf in self.leaves:
            spec: list[tuple[str, ...]] = [()] * len(leaf.shape)
            if leaf.is_batch:
                if rows and leaf.shape:
                    if leaf.shape[0] % math.prod(sizes[n] for n in rows):
                        return None
                    spec[0] = tuple(rows)
                found.append(tuple(spec))
                continue
            at = pattern.get(leaf.group)
            if at is not None and model and leaf.shape[at] % math.prod(sizes[n] for n in model) == 0:
                spec[at] = tuple(model)
            parts = math.prod(sizes[n] for n in whole)
            if whole and math.prod(leaf.shape) >= _SMALL:
                free = [d for d, n in enumerate(leaf.shape) if not spec[d] and n % parts == 0]
                if free:
                    spec[max(free, key=lambda d: leaf.shape[d])] = tuple(whole)
            found.append(tuple(spec))
        return found

    def pattern(self, roles: Roles) -> dict[tuple, int]:
        """Which axis of each group of parameters "model" cuts best, for axes of these sizes."""
        parts = math.prod(size for _, size, role in roles.axes if role == "model")
        groups: dict[tuple, int] = {}
        for leaf in self.leaves:
            if not leaf.is_batch and math.prod(leaf.shape) >= _SMALL:
                groups[leaf.group] = groups.get(leaf.group, 0) + math.prod(leaf.shape)
        chosen: dict[tuple, int] = {}
        shapes = {leaf.group: leaf.shape for leaf in self.leaves}
        best = self._score(roles, chosen)
        if best is None:
            return {}
        for _ in range(_ROUNDS):
            before = dict(chosen)
            for group in sorted(groups, key=lambda g: -groups[g]):
                for axis, n in enumerate(shapes[group]):
                    if n % parts or chosen.get(group) == axis or n < parts:
                        continue
                    trial = {**chosen, group: axis}
                    score = self._score(roles, trial)
                    if score is not None and score < best:
                        best, chosen = score, trial
            if chosen == before:
                break
        return chosen

    def _score(self, roles: Roles, pattern: Mapping[tuple, int]) -> float | None:
        """Seconds of a step, and of reading the memory that it takes once."""
        specs = self.specs(roles, pattern)
        if specs is None:
            return None
        layout, walked = self.walk(roles, specs)
        return seconds(layout, walked) + walked.peak / self.device.bandwidth


def seconds(layout: Layout, walked: Walked) -> float:
    """How long a step takes if nothing is sent while devices compute."""
    sent = sum(one.times * layout.seconds(one) for one in walked.costs.communications)
    return walked.costs.on_chip + sent
