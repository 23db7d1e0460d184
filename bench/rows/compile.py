"""How long it takes until a program is ready: tracing, lowering, compiling, and the first process after that.

Each sample is a fresh process with disk caches off (`bench.child`), so that nothing is warm but the imports and one
trivial program; the `second process` rows have the disk cache on, filled by the first process. A program gives one
line per phase. Smoke runs stay in this process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bench.child import cache_environment, phases_in_child, run_phases
from bench.data import integers, normal
from bench.measure import Options, disagreement, failure_note
from bench.models import (
    forward,
    resnet_loss,
    resnet_parameters,
    training_step,
    transformer_loss,
    transformer_parameters,
    unrolled_rnn_loss,
    weight,
)
from bench.peers import space
from bench.row import LIKE_JAX, Bar, Builder, Group, Outcome, Row, bar

SECONDS_PER_PROGRAM = 90.0
WIDTH, LENGTH, BATCH = 64, 32, 2


@dataclass(frozen=True)
class Program:
    """A row of this group: `build(space, size)` gives the function to compile and its arguments as NumPy trees.

    `phases` are those to report, out of trace, lower, trace+lower, compile, step; `bars` are given by phase. With
    `disk_cache` the phases are those of a second process, and the first one appears as the peer `purax before`.
    """

    name: str
    build: Callable[[Any, int], tuple[Callable[..., Any], tuple[Any, ...]]]
    phases: tuple[str, ...]
    size: int
    smoke_size: int = 1
    bars: dict[str, tuple[Bar, ...]] | None = None
    disk_cache: bool = False
    heavy: bool = False
    rtol: float = 1e-3
    atol: float = 1e-4

    @property
    def builders(self) -> dict[str, Builder]:
        return dict.fromkeys(("purax", "purax before", "jax", "jax before"), self.build)

    def comparison(self) -> Row:
        """The tolerance of this program, in the form that `disagreement` reads."""
        return Row("compile", self.name, {}, rtol=self.rtol, atol=self.atol)


def one_sample(
    program: Program, label: str, options: Options, folder: str | None
) -> tuple[dict[str, float], list[Any]]:
    """Seconds by phase, and the result of the compiled program."""
    size = program.smoke_size if options.smoke else program.size
    if options.smoke:
        return run_phases(program, space(label), size)
    return phases_in_child(program.name, label, size, cache_environment(label, folder))


def sampled(program: Program, options: Options) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Best seconds by label and phase over processes that take turns, and notes."""
    best: dict[str, dict[str, float]] = {}
    notes: dict[str, str] = {}
    results: dict[str, list[Any]] = {}
    labels = [label for label in LIKE_JAX if options.wants(label)]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        turns = min(options.repeat, 3) + program.disk_cache
        for turn in range(turns):
            if turn > program.disk_cache and time.perf_counter() - started > SECONDS_PER_PROGRAM:
                break
            for label in [label for label in labels if label not in notes]:
                try:
                    seconds, results[label] = one_sample(
                        program, label, options, folder if program.disk_cache else None
                    )
                except Exception as error:  # a peer's failure is a note in the table
                    notes[label] = failure_note(error)
                    continue
                column = f"{label} before" if program.disk_cache and turn == 0 else label
                kept = best.setdefault(column, seconds)
                best[column] = {phase: min(seconds[phase], kept[phase]) for phase in seconds}
    if len(results) == 2:
        difference = disagreement(program.comparison(), results["jax"], results["purax"], exact_dtype=True)
        if difference is not None:
            notes["purax"] = f"differs from jax: {difference}"
            best.pop("purax", None)
    return best, notes


def measure(group: Group, rows: list[Program], options: Options) -> Iterator[Outcome]:
    """One outcome per program and phase, then how the times grow with the length of the program."""
    lengths: dict[str, dict[int, dict[str, float]]] = {}
    small: dict[Any, Any] = {}
    for program in rows:
        if program.heavy and not (options.heavy or options.smoke):
            continue
        # At the size of smoke runs a program of 2 layers is the same as one of 24, and need not run again.
        key = (program.build, program.phases, program.disk_cache) if options.smoke else program.name
        if key not in small:
            small[key] = sampled(program, options)
        best, notes = small[key]
        for phase in program.phases:
            bars = (program.bars or {}).get(phase, ())
            outcome = Outcome(group.name, f"{program.name}: {phase}", notes=dict(notes), bars=bars)
            outcome.costs = {label: seconds[phase] for label, seconds in best.items() if phase in seconds}
            yield outcome
            if not program.disk_cache and phase != "step":
                family = f"{program.name.split(',')[0]}: {phase}"
                lengths.setdefault(family, {})[program.size] = outcome.costs
    for family, by_size in ({} if options.smoke else lengths).items():
        yield from growth(group, family, by_size)


def growth(group: Group, family: str, by_size: dict[int, dict[str, float]]) -> Iterator[Outcome]:
    """Time per layer or equation of the longest program, and `before` it of the middle one: ratio 1 is linear."""
    sizes = sorted(by_size)
    if len(sizes) < 3:
        return
    long, middle = sizes[-1], sizes[-2]
    outcome = Outcome(group.name, f"{family} / n at {long}, {middle}", bars=(bar(1.2, "purax before"),))
    for label in LIKE_JAX:
        if label in by_size[long] and label in by_size[middle]:
            outcome.costs[label] = by_size[long][label] / long
            outcome.costs[f"{label} before"] = by_size[middle][label] / middle
    if "purax" not in outcome.costs:
        outcome.notes["purax"] = "missing: the programs it is made from did not run"
    yield outcome


group = Group("compile", "trace, lower and compile in fresh processes, disk caches off", measure)


def embedded(count: int) -> np.ndarray:
    return normal(BATCH, LENGTH, count, seed=90)


@cache
def forward_pass(jit_block: bool) -> Callable[[Any, int], Any]:
    def build(space: Any, layers: int) -> Any:
        return forward(space, jit_block), (transformer_parameters(layers, WIDTH), embedded(WIDTH))

    return build


@cache
def transformer_step(jit_block: bool) -> Callable[[Any, int], Any]:
    def build(space: Any, layers: int) -> Any:
        step = training_step(space, transformer_loss(space, jit_block))
        return step, (transformer_parameters(layers, WIDTH), embedded(WIDTH), embedded(WIDTH)[::-1].copy())

    return build


def rnn_step(space: Any, steps: int) -> Any:
    width = 32
    parameters = {
        "w": weight(width, width, seed=1),
        "u": weight(width, width, seed=2),
        "b": np.zeros(width, np.float32),
    }
    return training_step(space, unrolled_rnn_loss(space, steps)), (
        parameters,
        normal(steps, 4, width, seed=3),
    )


def resnet_step(space: Any, layers: int) -> Any:
    blocks = (3, 4, 6, 3) if layers == 50 else (1, 1)
    width = 16 if layers == 50 else 4
    data = (normal(2, 3, 32, 32, seed=4), integers(10, 2, seed=5))
    return training_step(space, resnet_loss(space)), (resnet_parameters(blocks, width), *data)


def chain(space: Any, equations: int) -> Callable[[Any, Any], Any]:
    """A program of that many equations: alternating matrix products and tanh."""
    jnp = space.jnp

    def apply(x: Any, w: Any) -> Any:
        for _ in range(equations // 2):
            x = jnp.tanh(x @ w)
        return jnp.sum(x)

    return apply


def long_program(space: Any, equations: int) -> Any:
    return chain(space, equations), (normal(4, 4, seed=6), normal(4, 4, seed=7, scale=0.5))


def long_gradient(space: Any, equations: int) -> Any:
    function, arguments = long_program(space, equations)
    return space.px.grad(function), arguments


def add(name: str, build: Callable[[Any, int], Any], phases: str, size: int, **fields: Any) -> None:
    group.rows.append(Program(name, build, tuple(phases.split()), size, **fields))


STEP_BARS = {"trace+lower": (bar(0.5, "jax"),), "compile": (bar(0.2, "jax"),), "step": (bar(0.8, "jax"),)}
FORWARD_BARS = {"trace+lower": (bar(0.6, "jax", "base"), bar(0.5, "jax"))}
BLOCK_BARS = {"compile": (bar(0.3, "jax", "base"), bar(0.2, "jax"))}
CACHE_BARS = {"compile": (bar(0.15, "purax before", "base"), bar(0.1, "purax before"))}

PHASES = "trace+lower compile step"
for layers in (2, 12, 24):
    add(f"forward, {layers} layers", forward_pass(False), PHASES, layers, bars=FORWARD_BARS)
for layers in (2, 12, 24):
    bars = BLOCK_BARS if layers >= 12 else {}
    add(f"forward jitted block, {layers} layers", forward_pass(True), PHASES, layers, bars=bars)
for layers in (2, 12, 24, 48):
    bars = STEP_BARS if layers >= 12 else {"trace+lower": STEP_BARS["trace+lower"]}
    add(
        f"training step, {layers} layers",
        transformer_step(False),
        PHASES,
        layers,
        bars=bars,
        heavy=layers == 48,
    )
add("training step jitted block, 24 layers", transformer_step(True), PHASES, 24, bars=STEP_BARS)
add("RNN unrolled, 100 steps", rnn_step, PHASES, 100, bars=STEP_BARS)
# Through 50 layers float32 errs by 8e-4 in purax and in jax alike, against float64.
add("ResNet, 50 layers", resnet_step, PHASES, 50, bars=STEP_BARS, heavy=True, atol=2e-3)
# Compiling ten thousand equations takes jax two minutes.
for name, phases, heavy in (("program", "trace+lower", False), ("program compiled", "compile step", True)):
    fields = {"smoke_size": 10, "bars": STEP_BARS, "heavy": heavy}
    add(f"{name}, 10000 equations", long_program, phases, 10_000, **fields)
for equations in (100, 1_000, 10_000):
    bars = {"trace": (bar(0.6, "jax", "base"),)}
    add(f"grad, {equations} equations", long_gradient, "trace", equations, smoke_size=10, bars=bars)
for name, build, layers in (
    ("forward jitted block", forward_pass(True), 24),
    ("training step", transformer_step(False), 12),
):
    title, fields = f"2nd process: {name}, {layers} layers", {"bars": CACHE_BARS, "disk_cache": True}
    add(title, build, "compile trace+lower", layers, **fields)
