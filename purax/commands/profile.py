"""`purax profile`: runs a script, and writes where time and memory go: by program, by kernel and by the user's line."""

from __future__ import annotations

import contextlib
import glob
import gzip
import json
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from purax import profiler
from purax.api.jit import JitFunction, Specialization
from purax.api.transfer import block_until_ready, live_arrays
from purax.commands import scripts
from purax.core import source
from purax.explorer import Explanation, compiled
from purax.explorer.measuring import program_times
from purax.explorer.model import ModelMaker
from purax.xla import client
from purax.xla.stablehlo import symbol

USAGE = """usage: purax profile [OPTION ...] SCRIPT.py [ARGUMENT ...]

Runs the script under the profiler. Writes SCRIPT.trace.json, which https://ui.perfetto.dev and chrome://tracing open:
what each thread and each kernel did when, and the memory over time with the line of the script that ran. Writes
SCRIPT.profile.html, the explorer's page about the compiled program that took longest. Prints tables of both.

  -o PREFIX        writes PREFIX.trace.json and PREFIX.profile.html instead
  --program NAME   the page is about the program of that name
  --interval MS    how often memory is looked at, in milliseconds (5)"""

_ROWS = 12


@dataclass(frozen=True)
class Sample:
    """Memory at one time.

    Attributes:
        seconds: since the beginning.
        bytes: in use: by the process, or by the default device if that says so.
        line: of the script's main thread.
    """

    seconds: float
    bytes: int
    line: str


class MemorySampler:
    """Looks at the memory in use, and at the line that runs, every few milliseconds."""

    def __init__(self, interval: float):
        self.samples: list[Sample] = []
        self._interval = interval
        self._ends = threading.Event()
        self._main = threading.get_ident()
        self._device = client.default_device()
        self._start = time.perf_counter()
        self._thread = threading.Thread(target=self._run, name="purax-memory", daemon=True)

    def __enter__(self) -> MemorySampler:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            is_over = self._ends.wait(self._interval)
            frame = sys._current_frames().get(self._main)
            while frame is not None and (source.code_is_internal(frame.f_code) or source.is_library(frame)):
                frame = frame.f_back
            line = "" if frame is None else f"{source.shown_file(frame.f_code.co_filename)}:{frame.f_lineno}"
            del frame
            self.samples.append(Sample(time.perf_counter() - self._start, memory_in_use(self._device), line))
            if is_over:
                return


def memory_in_use(device: Any) -> int:
    """Bytes in use on a device; on the CPU, those of the process; 0 where neither is known."""
    stats = device.memory_stats() if device.platform != "cpu" else None
    if stats:
        return int(stats["bytes_in_use"])
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


@contextlib.contextmanager
def _noting_programs(found: dict[str, list[tuple[Specialization, Any]]]) -> Iterator[None]:
    """Notes the programs that functions under `jit` become, by the names that they were compiled under.

    An equal program that was compiled before, for another function, has the name of that one.
    """
    before = JitFunction._compiled

    def noting(self: JitFunction, specialization: Specialization, device: Any) -> Any:
        runner = before(self, specialization, device)
        known = found.setdefault(_module_name(runner.executable.hlo_text()), [])
        if all(runner.executable is not other.executable for _, other in known):
            known.append((specialization, runner))
        return runner

    JitFunction._compiled = noting  # type: ignore[method-assign]
    try:
        yield
    finally:
        JitFunction._compiled = before  # type: ignore[method-assign]


def _module_name(text: str) -> str:
    """The name of a module of HLO, which begins with `HloModule name, `."""
    return text.partition("HloModule ")[2].partition(",")[0].strip()


@scripts.with_usage(USAGE)
def profile(words: Sequence[str]) -> int:
    """The command `purax profile`; returns the exit status.

    Args:
        words: what follows `profile` on the command line.
    """
    options, rest = scripts.options_of(words, (), ("-o", "--program", "--interval"))
    try:
        interval = float(options.get("--interval", "5")) / 1e3
    except ValueError as error:
        raise scripts.UsageError(str(error)) from None
    if interval <= 0:
        raise scripts.UsageError("--interval is to be positive")
    if not rest:
        raise scripts.UsageError("nothing to profile")
    scripts.existing(rest[0])
    prefix = options.get("-o", os.path.splitext(os.path.basename(rest[0]))[0])
    scripts.prepare(rest[0])
    programs: dict[str, list[tuple[Specialization, Any]]] = {}
    traced = profiler.ProfileOptions()
    traced.python_tracer_level = 0
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        with _noting_programs(programs), profiler.trace(folder, profiler_options=traced):
            with MemorySampler(interval) as memory:
                try:
                    scripts.run(rest[0], rest[1:])
                except SystemExit as error:
                    status = error.code if isinstance(error.code, int) else int(error.code is not None)
                block_until_ready(live_arrays())  # what still runs belongs to the script
        times = program_times(folder)
        _write_trace(folder, memory.samples, f"{prefix}.trace.json")
    print(report(times, memory.samples))
    print(f"The trace: {prefix}.trace.json (https://ui.perfetto.dev opens it)")
    chosen = _chosen(options.get("--program"), times, programs)
    if chosen is not None:
        name, number = chosen
        _page_of(name, *programs[name][number], times[name][number]).save(f"{prefix}.profile.html")
        print(f"The page about `{name}`: {prefix}.profile.html")
    elif "--program" in options:
        known = ", ".join(sorted(set(times) & set(programs)))
        print(f"purax: no program {options['--program']!r} ran; there are: {known}", file=sys.stderr)
        return 2
    return status


def _chosen(
    wanted: str | None, times: dict[str, list[dict[str, Any]]], programs: dict[str, list[Any]]
) -> tuple[str, int] | None:
    """The name of a program, and which of those of this name; the one that took longest unless a name is given."""
    known = [
        (name, number)
        for name, rows in times.items()
        # A program that is known by its order alone is not mistaken for another one.
        if len(rows) == len(programs.get(name, ())) and (wanted is None or name == symbol(wanted))
        for number in range(len(rows))
    ]
    return max(known, key=lambda found: times[found[0]][found[1]]["seconds"], default=None)


def _page_of(name: str, specialization: Specialization, runner: Any, times: dict[str, Any]) -> Explanation:
    maker = ModelMaker()
    model = maker.model(specialization.closed, name)
    model.update(seconds={}, findings=[], traces=[])
    executable = runner.executable
    memory = executable.memory_analysis()
    sizes = ("argument", "output", "alias", "temp", "generated_code")
    model["compiled"] = {
        "kernels": compiled.kernels(executable.hlo_text(), maker.tables),
        "memory": {key: int(getattr(memory, f"{key}_size_in_bytes", 0)) for key in sizes},
        "platform": client.platform_of(client.default_device()),
        "flops": float(executable.cost_analysis().get("flops", 0.0)),
        "shardings": {"arguments": [], "results": []},
        "donated": [],
    }
    kernels = {kernel: total for kernel, (total, _) in times["kernels"].items()}
    model["measured"] = {
        "seconds": times["seconds"],
        "kernels": kernels,
        "calls": {kernel: count for kernel, (_, count) in times["kernels"].items()},
        "runs": times["runs"],
    }
    explanation = Explanation(model, maker.tables)
    explanation.renew_places()
    return explanation


def _write_trace(folder: str, samples: Sequence[Sample], path: str) -> None:
    """Writes the trace of XLA with counters of the memory, as Chrome's JSON."""
    found = glob.glob(os.path.join(glob.escape(folder), "plugins", "profile", "*", "*.trace.json.gz"))
    events: dict[str, Any] = {"traceEvents": []}
    if found:
        with gzip.open(found[0], "rt") as file:
            events = json.load(file)
    events["traceEvents"] = [event for event in events["traceEvents"] if event]
    events["traceEvents"] += [
        {"name": "process_name", "ph": "M", "pid": _PROCESS, "args": {"name": "memory and lines"}},
        {"name": "thread_name", "ph": "M", "pid": _PROCESS, "tid": 1, "args": {"name": "lines of the script"}},
    ]
    for sample, until in zip(samples, [*samples[1:], None], strict=True):
        at = 1e6 * sample.seconds
        events["traceEvents"].append(
            {"name": "memory", "ph": "C", "pid": _PROCESS, "ts": at, "args": {"bytes": sample.bytes}}
        )
        if sample.line and until is not None:
            length = 1e6 * (until.seconds - sample.seconds)
            events["traceEvents"].append(
                {"name": sample.line, "ph": "X", "pid": _PROCESS, "tid": 1, "ts": at, "dur": length}
            )
    with open(path, "w") as file:
        json.dump(events, file)


_PROCESS = 999_999  # of the rows of our own, a number that no other row has


def report(times: dict[str, list[dict[str, Any]]], samples: Sequence[Sample]) -> str:
    """Tables of programs and of memory by line.

    Args:
        times: as `program_times` gives them.
        samples: of the memory.
    """
    lines = ["Time of compiled programs" if times else "No compiled program ran."]
    rows = [(name, row) for name, of_name in times.items() for row in of_name]
    for name, row in sorted(rows, key=lambda item: -item[1]["seconds"])[:_ROWS]:
        lines.append(f"  {1e3 * row['seconds']:10.3f} ms  {row['runs']:6} runs  {name}")
        dearest = sorted(row["kernels"].items(), key=lambda item: -item[1][0])[:3]
        lines += [f"  {1e3 * total:10.3f} ms  {count:6} ×      {kernel}" for kernel, (total, count) in dearest]
    lines.append("Memory by line: the most in use while it ran, and what it grew by")
    most: defaultdict[str, int] = defaultdict(int)
    grew: defaultdict[str, int] = defaultdict(int)
    for before, after in zip(samples, samples[1:], strict=False):
        most[after.line] = max(most[after.line], after.bytes)
        grew[after.line] += after.bytes - before.bytes
    for line in sorted(most, key=lambda line: -grew[line])[:_ROWS]:
        sizes = f"{most[line] / 2**20:10.1f} MiB {grew[line] / 2**20:+10.1f} MiB"
        lines.append(f"  {sizes}  {line or 'outside of the script'}")
    return "\n".join(lines)
