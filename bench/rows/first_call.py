"""The first call of programs that nobody tuned for, and of random ones, each in a fresh process without disk caches.

A program gives two lines: wall time, and the processor time of all threads, which a busy machine does not spoil. After
the lines of a group come its geometric means, and of random programs the median, the worst tenth and the worst, as
ratios to jax.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bench import first_call, programs, random_programs
from bench.measure import Options
from bench.row import LIKE_JAX, Bar, Builder, Group, Outcome, Row, bar


def no_builder(space: object, size: int) -> object:
    raise AssertionError("programs of these groups are called in processes of their own")


@dataclass(frozen=True)
class First:
    """A row: one program of `bench.programs`, or a kind of random programs."""

    name: str
    heavy: bool = False

    @property
    def builders(self) -> dict[str, Builder]:
        return dict.fromkeys(LIKE_JAX, no_builder)


Ratios = dict[str, list[float]]


def outcomes_of(
    group: Group, title: str, name: str, options: Options, ratios: Ratios, bars: tuple[Bar, ...] = ()
) -> Iterator[Outcome]:
    """Measures one program; a line for each clock."""
    labels = [label for label in LIKE_JAX if options.wants(label)]
    turns = 1 if options.smoke else min(options.repeat, 3)
    comparison = Row(group.name, title, {}, rtol=2e-3, atol=1e-3)
    best, notes = first_call.sampled(name, labels, turns, comparison, fresh=not options.smoke)
    for clock in first_call.CLOCKS:
        outcome = Outcome(group.name, f"{title}: {clock}", notes=dict(notes), bars=bars)
        outcome.costs = {label: seconds[clock] for label, seconds in best.items()}
        ratio = outcome.ratio(("jax",))
        if ratio is not None:
            ratios[clock].append(ratio)
        yield outcome


def ratio_outcome(group: Group, name: str, value: float, limit: float) -> Outcome:
    costs = {"purax": value, "jax": 1.0}
    return Outcome(group.name, name, costs, bars=(bar(limit, "jax"),), unit="of jax")


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def measure_programs(group: Group, rows: list[First], options: Options) -> Iterator[Outcome]:
    """The programs one after the other, then the geometric means."""
    ratios: Ratios = {clock: [] for clock in first_call.CLOCKS}
    for row in rows:
        if not row.heavy or options.heavy:
            yield from outcomes_of(group, row.name, row.name, options, ratios, (bar(1.0, "jax"),))
    for clock, values in ratios.items():
        if len(values) > 1:
            yield ratio_outcome(group, f"geometric mean of {len(values)}: {clock}", mean(values), 0.5)


def measure_random(group: Group, rows: list[First], options: Options) -> Iterator[Outcome]:
    """`options.count` programs of each kind, from `options.seed` on, then the distribution of all ratios."""
    ratios: Ratios = {clock: [] for clock in first_call.CLOCKS}
    for row in rows:
        for seed in range(options.seed, options.seed + (1 if options.smoke else options.count)):
            yield from outcomes_of(group, f"{row.name}: {seed}", f"{row.name}/{seed}", options, ratios)
    for clock, values in ratios.items():
        if len(values) > 1:
            values.sort()
            tenth = values[-max(1, len(values) // 10)]
            yield ratio_outcome(group, f"median of {len(values)}: {clock}", values[len(values) // 2], 0.5)
            yield ratio_outcome(group, f"worst tenth from: {clock}", tenth, 1.0)
            yield ratio_outcome(group, f"worst: {clock}", values[-1], math.inf)


group = Group(
    "first-call", "first calls in fresh processes: trace to result, disk caches off", measure_programs
)
group.rows.extend(First(name, heavy=name in programs.HEAVY) for name in programs.load())
random_group = Group("random-programs", "first calls of random programs in fresh processes", measure_random)
random_group.rows.extend(First(kind) for kind in random_programs.KINDS)
