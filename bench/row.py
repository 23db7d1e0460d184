"""What a benchmark row is: a builder per peer, a size, how results are compared, and the bars it should meet.

A *builder* is called as `build(space, size)` and returns a function of no arguments, the thing that is timed. `space`
is one peer as rows see it (`bench.peers`). A *label* names a column: the peer, or the peer and a variant of it
(`torch.autograd`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Builder = Callable[[Any, int], Callable[[], Any]]
LIKE_JAX = ("purax", "jax")


@dataclass(frozen=True)
class Bar:
    """An upper limit on purax's time (or memory) divided by the best among `against`.

    `stage` is `"base"` for what the foundation has to reach and `"goal"` for the race against the whole field. With
    `mean` the limit is on the geometric mean over the group instead of on each row.
    """

    limit: float
    against: tuple[str, ...]
    stage: str = "goal"
    mean: bool = False

    def __str__(self) -> str:
        peers = "|".join(self.against) if len(self.against) < 3 else "best peer"
        return f"{'mean ' if self.mean else ''}≤ {self.limit:.3g} {peers}"


def bar(limit: float, against: str, stage: str = "goal", mean: bool = False) -> Bar:
    """A `Bar`, with the peers as one string: `bar(1.15, "jax numpy torch")`."""
    return Bar(limit, tuple(against.split()), stage, mean)


@dataclass(frozen=True)
class Row:
    """One line of the benchmark.

    `force` says when an asynchronous result is waited for: after `"each"` call, or after the `"last"` of the inner
    loop (rows of microseconds, where waiting would be what is measured). `view` maps the result's leaves, as NumPy
    arrays, to what the peers have to agree on: all of it by default.
    """

    group: str
    name: str
    builders: dict[str, Builder]
    size: int = 0
    smoke_size: int = 0
    rtol: float = 1e-5
    atol: float = 1e-6
    force: str = "each"
    view: Callable[[list[np.ndarray]], list[np.ndarray]] | None = None
    same_dtype: bool = True
    bars: tuple[Bar, ...] = ()
    heavy: bool = False


@dataclass
class Outcome:
    """What one row gave: the best cost by label, in seconds per call or bytes, and a note for each that gave none."""

    group: str
    name: str
    costs: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    bars: tuple[Bar, ...] = ()
    unit: str = "s"

    def ratio(self, against: tuple[str, ...], label: str = "purax") -> float | None:
        """Cost of `label` over the least cost among `against`; None where either was not measured."""
        known = [self.costs[peer] for peer in against if peer in self.costs]
        if label not in self.costs or not known:
            return None
        return self.costs[label] / min(known)


@dataclass
class Group:
    """Rows under one name. `bars` holds those of each row and those of the group's geometric mean.

    `measure` is how the rows of this group are timed: `measure(group, rows, options)` yields outcomes.
    """

    name: str
    summary: str
    measure: Callable[..., Any]
    rows: list[Any] = field(default_factory=list)
    bars: tuple[Bar, ...] = ()

    def row_bars(self) -> tuple[Bar, ...]:
        return tuple(each for each in self.bars if not each.mean)

    def mean_bars(self) -> tuple[Bar, ...]:
        return tuple(each for each in self.bars if each.mean)

    def add(
        self, name: str, builders: dict[str, Builder], *, bars: tuple[Bar, ...] | None = None, **fields: Any
    ) -> None:
        """Append a row; `bars` replaces the bars that the group sets for each row."""
        bars = self.row_bars() if bars is None else bars
        self.rows.append(Row(self.name, name, builders, bars=bars, **fields))


def like_jax(build: Builder) -> dict[str, Builder]:
    """The same builder for every peer that has JAX's interface."""
    return dict.fromkeys(LIKE_JAX, build)
