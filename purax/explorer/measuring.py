"""What a run tells of a compiled program: the time of each kernel, from the profiler of XLA."""

from __future__ import annotations

import glob
import os
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from purax import profiler

RUNS = 3


def measure(run: Callable[[], Sequence[Any]], runs: int = RUNS) -> dict[str, Any]:
    """Seconds of a call, and of each instruction of HLO in it: those of the fastest of some runs.

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
        by_run: defaultdict[Any, dict[str, tuple[float, int]]] = defaultdict(dict)
        for event, stats in _kernel_events(folder):
            _add(by_run[stats.get("run_id")], str(stats["hlo_op"]), event.duration_ns / 1e9)
    fastest = min(by_run.values(), key=lambda kernels: sum(total for total, _ in kernels.values()), default={})
    share = runs if len(by_run) == 1 else 1  # where runs are not told apart
    return {
        "seconds": min(seconds),
        "kernels": {name: total / share for name, (total, _) in fastest.items()},
        "calls": {name: count / share for name, (_, count) in fastest.items()},
    }


def _add(kernels: dict[str, tuple[float, int]], name: str, seconds: float) -> None:
    total, count = kernels.get(name, (0.0, 0))
    kernels[name] = (total + seconds, count + 1)


def _kernel_events(folder: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The events of a trace that are instructions of HLO, with what the profiler says of them."""
    for path in glob.glob(os.path.join(glob.escape(folder), "plugins", "profile", "*", "*.xplane.pb")):
        for plane in profiler.ProfileData.from_file(path).planes:
            for line in plane.lines:
                for event in line.events:
                    stats = _stats_of(event)
                    if "hlo_op" in stats:
                        yield event, stats


def _stats_of(event: Any) -> dict[str, Any]:
    with warnings.catch_warnings():  # a warning about its classes ends the process where warnings are errors
        warnings.simplefilter("ignore", DeprecationWarning)
        return dict(event.stats)


def _wait(results: Sequence[Any]) -> None:
    for x in results:
        x.block_until_ready()


def program_times(folder: str) -> dict[str, list[dict[str, Any]]]:
    """Of each compiled program in a trace, by name: "seconds" and "runs" in all, and of "kernels" seconds and runs.

    Programs of the same name stand in the order in which they were compiled.

    Args:
        folder: that a trace was written to.
    """
    found: defaultdict[str, dict[Any, dict[str, Any]]] = defaultdict(dict)
    for event, stats in _kernel_events(folder):
        of_name = found[str(stats.get("hlo_module", ""))]
        program = of_name.setdefault(stats.get("program_id"), {"seconds": 0.0, "runs": set(), "kernels": {}})
        program["runs"].add(stats.get("run_id"))
        program["seconds"] += event.duration_ns / 1e9
        _add(program["kernels"], str(stats["hlo_op"]), event.duration_ns / 1e9)
    times = {}
    for name, programs in found.items():
        times[name] = [programs[number] for number in sorted(programs, key=lambda number: number or 0)]
        for program in times[name]:
            program["runs"] = len(program["runs"])
    return times
