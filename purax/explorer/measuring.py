"""What a run tells of a compiled program: the time of each kernel, from the profiler of XLA."""

from __future__ import annotations

import glob
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from purax import profiler

RUNS = 3


def measure(run: Callable[[], Sequence[Any]], runs: int = RUNS) -> dict[str, Any]:
    """Seconds of a call, and of each instruction of HLO in it: means over some runs, after one that warms up.

    Args:
        run: calls the program, and returns its results.
        runs: how many calls are measured.
    """
    _wait(run())
    seconds = []
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with profiler.trace(folder, profiler_options=options):
            for _ in range(runs):
                start = time.perf_counter()
                _wait(run())
                seconds.append(time.perf_counter() - start)
        kernels = kernel_times(folder)
    return {
        "seconds": min(seconds),
        "kernels": {name: total / runs for name, (total, _) in kernels.items()},
        "calls": {name: count / runs for name, (_, count) in kernels.items()},
    }


def kernel_times(folder: str) -> dict[str, tuple[float, int]]:
    """Of each instruction in a trace, the seconds that it took in all, and how often it ran."""
    times: defaultdict[str, float] = defaultdict(float)
    counts: defaultdict[str, int] = defaultdict(int)
    for path in glob.glob(os.path.join(glob.escape(folder), "plugins", "profile", "*", "*.xplane.pb")):
        for plane in profiler.ProfileData.from_file(path).planes:
            for line in plane.lines:
                for event in line.events:
                    name = dict(event.stats).get("hlo_op")
                    if name is not None:
                        times[str(name)] += event.duration_ns / 1e9
                        counts[str(name)] += 1
    return {name: (total, counts[name]) for name, total in times.items()}


def _wait(results: Sequence[Any]) -> None:
    for x in results:
        x.block_until_ready()
