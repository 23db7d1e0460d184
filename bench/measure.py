"""Timing: every row is first run once by every peer and the results compared, then the peers are timed in turns.

A sample is the time of an inner loop that is long enough for the clock; peers take turns sample by sample, in
alternating order, and the best sample counts; turns go on while they still improve someone's time. What a peer lacks
or gets wrong becomes a note and has no time.
"""

from __future__ import annotations

import gc
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.child import ChildError, run_child
from bench.peers import MISSING, PEERS, Space, is_installed, space
from bench.row import Group, Outcome, Row

SAMPLE_SECONDS = 0.001  # short beside a time slice, so that some samples are undisturbed on a busy machine
ROW_SECONDS = 4.0
MISSING_OPERATOR = ("object is not subscriptable", "unsupported operand type(s)")
WARM_UP_SECONDS = 0.02


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    peers: tuple[str, ...] = PEERS
    repeat: int = 25
    smoke: bool = False
    heavy: bool = False
    count: int = 5
    seed: int = 0

    def wants(self, label: str) -> bool:
        """Whether a label is to be measured; `torch.compile` only when it is named."""
        if label == "torch.compile":
            return label in self.peers and is_installed("torch")
        peer = label.replace(" ", ".").split(".")[0]
        return peer in self.peers and (peer == "purax" or is_installed(peer))


class Runner:
    """One peer's side of a row, built and run once."""

    def __init__(self, row: Row, label: str, smoke: bool):
        self.space: Space = space(label)
        self.run: Callable[[], Any] = row.builders[label](self.space, row.smoke_size if smoke else row.size)
        result = self.run()
        self.space.force(result)
        self.result = self.space.host(result)
        self.force_each = row.force == "each"
        # A peer whose results are never pending needs no waiting, and should not pay for an empty call.
        if not self.space.is_asynchronous:
            self.force_each = False

    def sample(self, count: int) -> float:
        """Seconds that `count` calls take, until the last result is there."""
        run, force = self.run, self.space.force
        steps = range(count)
        if self.force_each:
            start = time.perf_counter()
            for _ in steps:
                force(run())
            return time.perf_counter() - start
        start = time.perf_counter()
        for _ in steps:
            result = run()
        force(result)
        return time.perf_counter() - start

    def calibrate(self, seconds: float) -> int:
        """The number of calls that takes about `seconds`; runs the row until it is warm on the way."""
        count, warm_up_ends = 1, time.perf_counter() + WARM_UP_SECONDS
        while True:
            elapsed = self.sample(count)
            if elapsed >= seconds / 4:
                # Once more, twice: a first call or a busy machine makes a single sample long.
                elapsed = min(elapsed, self.sample(count), self.sample(count))
            if elapsed >= seconds:
                return count
            if time.perf_counter() > warm_up_ends and elapsed >= seconds / 4:
                return max(1, round(count * seconds / elapsed))
            count *= 2


def failure_note(error: Exception) -> str:
    """`missing` where the function does not exist yet, `error` for everything else, and the exception in short."""
    lines = str(error).strip().splitlines() or [""]
    text = lines[0] if isinstance(error, ChildError) else f"{type(error).__name__}: {lines[0]}"
    names = tuple(kind.__name__ for kind in (*MISSING, ModuleNotFoundError))
    is_missing = text.startswith(names) or any(words in text for words in MISSING_OPERATOR)
    return f"{'missing' if is_missing else 'error'}: {text[:140]}"


def disagreement(
    row: Row, expected: list[np.ndarray], actual: list[np.ndarray], exact_dtype: bool
) -> str | None:
    """How two results of a row differ, or None."""
    if row.view is not None:
        expected, actual = row.view(expected), row.view(actual)
    if len(expected) != len(actual):
        return f"{len(actual)} results instead of {len(expected)}"
    for place, (want, have) in enumerate(zip(expected, actual, strict=True)):
        if want.shape != have.shape:
            return f"result {place} has shape {have.shape} instead of {want.shape}"
        if exact_dtype and want.dtype != have.dtype:
            return f"result {place} has dtype {have.dtype} instead of {want.dtype}"
        wide = np.complex128 if np.iscomplexobj(want) else np.float64
        try:
            np.testing.assert_allclose(have.astype(wide), want.astype(wide), rtol=row.rtol, atol=row.atol)
        except AssertionError as error:
            detail = [line for line in str(error).splitlines() if "difference" in line]
            return f"result {place} differs, {'; '.join(detail) or 'see assert_allclose'}"
    return None


def prepare(row: Row, options: Options) -> tuple[dict[str, Runner], dict[str, str]]:
    """Build and run a row once for each peer, and compare the results with the first peer other than purax."""
    runners: dict[str, Runner] = {}
    notes: dict[str, str] = {}
    for label in row.builders:
        if options.wants(label):
            try:
                runners[label] = Runner(row, label, options.smoke)
            except (
                Exception
            ) as error:  # whatever a peer raises is a note in the table, not the end of the run
                notes[label] = failure_note(error)
    order = sorted(runners, key=lambda label: (label == "purax", label != "jax"))
    if order:
        reference = order[0]
        for label in order[1:]:
            exact = row.same_dtype and {label, reference} == {"purax", "jax"}
            difference = disagreement(row, runners[reference].result, runners[label].result, exact)
            if difference is not None:
                notes[label] = f"differs from {reference}: {difference}"
                del runners[label]
    for runner in runners.values():
        runner.result = []
    return runners, notes


def time_row(row: Row, options: Options) -> Outcome:
    """Best time per call of each peer that agrees on the result.

    At least `options.repeat` turns (three, if they are long), and more until half as many brought no gain of 2%.
    """
    outcome = Outcome(row.group, row.name, bars=row.bars)
    runners, outcome.notes = prepare(row, options)
    if not options.smoke:
        gc.collect()
    gc.disable()
    try:
        counts, repeat = {}, options.repeat
        for label, runner in runners.items():
            counts[label] = 1 if options.smoke else runner.calibrate(SAMPLE_SECONDS)
        budget = time.perf_counter() + ROW_SECONDS * max(1, len(runners))
        turn, last_gain = 0, 0
        while turn < repeat or turn - last_gain < repeat // 2:
            if turn >= min(3, repeat) and (time.perf_counter() > budget or turn >= 5 * repeat):
                break
            for label in list(runners) if turn % 2 == 0 else list(reversed(runners)):
                seconds = runners[label].sample(counts[label]) / counts[label]
                best = outcome.costs.setdefault(label, seconds)
                if seconds < best:
                    outcome.costs[label] = seconds
                    last_gain = turn if seconds < 0.98 * best else last_gain
            turn += 1
    finally:
        gc.enable()
    return outcome


def time_rows(group: Group, rows: list[Row], options: Options) -> Iterator[Outcome]:
    """The usual measurement of a group: its rows one after the other, in this process."""
    for row in rows:
        if row.heavy and not (options.heavy or options.smoke):
            continue
        yield time_row(row, options)


def time_in_child(
    group: Group, rows: list[Row], options: Options, environment: dict[str, str]
) -> Iterator[Outcome]:
    """Times rows in one process of their own, with the environment that they need; the peers take turns there."""
    pattern = rows[0].name if len(rows) == 1 else "*"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        arguments = ["-m", "bench", f"--group={group.name}", f"--row={pattern}", f"--repeat={options.repeat}"]
        arguments += [f"--peers={','.join(options.peers)}", f"--json={path}", f"--plot={path}.png"]
        arguments += ["--smoke"] if options.smoke else []
        run_child(arguments, environment, timeout=900)
        found = {row["name"]: row for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
    for row in rows:
        one = found[row.name]
        yield Outcome(row.group, row.name, one["costs"], one["notes"], row.bars)
