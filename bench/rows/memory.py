"""Peak resident memory of the kernel rows and training steps, each in a process of its own (`bench.resident`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.child import ChildError, cache_environment, run_child
from bench.measure import Options, failure_note
from bench.resident import RESET_PEAK
from bench.row import LIKE_JAX, Group, Outcome, Row, bar
from bench.rows import kernels

FIXED = {
    "MALLOC_MMAP_THRESHOLD_": "131072"
}  # every array in pages of its own, which are handed back when it is freed
SAMPLES = 2  # the least counts: pages that the allocator happens to keep vary by a few megabytes
LEAST = 1e6  # bytes; below this a row's memory is that of pages which the allocator happened to touch


def measure_row(row: Row, options: Options) -> Outcome:
    """The peers one after the other; a row that needs less than `LEAST` counts as needing that much."""
    outcome = Outcome(row.group, row.name, bars=row.bars, unit="B")
    for label in filter(options.wants, LIKE_JAX):
        arguments = ["-m", "bench.resident", label, "smoke" if options.smoke else "full", row.name]
        try:
            for _ in range(1 if options.smoke else SAMPLES):
                output = run_child(arguments, cache_environment(label, None) | FIXED, timeout=300)
                peak = max(LEAST, json.loads(output.strip().splitlines()[-1])[row.name])
                outcome.costs[label] = min(peak, outcome.costs.get(label, peak))
        except ChildError as error:
            outcome.notes[label] = failure_note(error)
    return outcome


def measure(group: Group, rows: list[Row], options: Options) -> Iterator[Outcome]:
    """Rows side by side, one per core: memory does not depend on who else is running."""
    if not RESET_PEAK.exists():
        return  # the peak of a process can only be reset on Linux
    rows = [row for row in rows if options.heavy or not row.heavy]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda row: measure_row(row, options), rows)


group = Group("memory", "peak resident memory of compiled array work", measure, bars=(bar(1.05, "jax"),))


def register() -> None:
    """One row for each kernel row; to be called when those are complete."""
    for row in kernels.group.rows:
        group.add(row.name, row.builders, size=row.size, smoke_size=row.smoke_size, heavy=row.heavy)
