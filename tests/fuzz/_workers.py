"""`make fuzz` in several processes: `run_workers` starts them, merges what they find, and replaces those that die.

Worker `k` of seed `s` draws from the seed `1000 * s + k`, and each one that takes its place from a seed a hundred
further. A worker writes a line of JSON for each failure and, every second, how far it is. What it tries stands in a
file, which is the failure if it dies or stands still.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.fuzz import _progress

STANDSTILL = 240.0  # seconds without a program, after which a worker is ended
PRINTED = 3  # of the failures that look alike


class Worker(NamedTuple):
    """A process that tries programs.

    Attributes:
        process: the process.
        number: which of the workers it is.
        seed: what it draws from.
        folder: of the files that it leaves.
        state: the generator that runs, and when it was last heard of.
    """

    process: subprocess.Popen[str]
    number: int
    seed: int
    folder: Path
    state: dict[str, Any]


class Report:
    """What all workers found together."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.tried: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.others: dict[str, Counter[str]] = {}
        self.alike: Counter[tuple[str, str]] = Counter()
        self.lock = threading.Lock()

    def fail(self, name: str, seed: int, found: str) -> None:
        """Prints a failure, unless some that look alike were printed before."""
        with self.lock:
            self.failures[name] += 1
            kind = (name, re.sub(r"[-+]?[0-9][0-9.e+-]*", "0", found.strip().splitlines()[0])[:100])
            self.alike[kind] += 1
            text = f"\n# {name}, seed {seed}, failure {self.failures[name]}\n{found.strip()}"
            if self.path:
                with open(self.path, "a") as file:
                    file.write(text + "\n")
            if self.alike[kind] <= PRINTED:
                print(text, flush=True)
            elif self.alike[kind] == PRINTED + 1:
                print(f"\n# {name}: more of these: {kind[1]}", flush=True)

    def hear(self, worker: Worker, message: dict[str, Any]) -> None:
        """Takes a line of a worker."""
        with self.lock:
            name = worker.state["name"] = message["name"]
            if message["tried"]:
                worker.state["heard"] = time.monotonic()
            self.tried[name] += message["tried"]
            self.others.setdefault(name, Counter()).update(message["others"])
        if message.get("found"):
            self.fail(name, worker.seed, message["found"])


def run_workers(
    package: str, names: list[str], seed: int, seconds: float, workers: int, report_path: str = ""
) -> int:
    """Runs generators in several processes; 1 if there was a failure."""
    from tests.fuzz.__main__ import summary

    start = time.monotonic()
    end = start + seconds
    report = Report(report_path)
    with tempfile.TemporaryDirectory(prefix="fuzz") as scratch:

        def begin(number: int, attempt: int) -> Worker:
            own = seed * 1000 + number + attempt * 100_000_000
            return start_worker(package, names, own, number, end - time.monotonic(), Path(scratch), report)

        active = {number: begin(number, 0) for number in range(workers)}
        attempts: Counter[int] = Counter()
        try:
            while active:
                time.sleep(0.2)
                for number, worker in list(active.items()):
                    reason = _end_of(worker, end)
                    if reason is None:
                        continue
                    del active[number]
                    if reason:
                        report.fail(worker.state["name"], worker.seed, _last_words(worker, reason))
                        attempts[number] += 1
                        is_broken = attempts[number] > 3 and not report.tried.total()
                        if end - time.monotonic() > 5 and attempts[number] < 50 and not is_broken:
                            active[number] = begin(number, attempts[number])
        finally:
            for worker in active.values():
                worker.process.kill()
    for name in names:
        taken = (time.monotonic() - start) / len(names)
        others = report.others.get(name, Counter())
        line = summary(name, report.failures[name], report.tried[name], taken, others)
        kinds = len([kind for kind in report.alike if kind[0] == name])
        print(f"{line}; {kinds} kinds of failures; {workers} workers", flush=True)
    return 1 if sum(report.failures.values()) else 0


def start_worker(
    package: str, names: list[str], seed: int, number: int, seconds: float, scratch: Path, report: Report
) -> Worker:
    """Starts a process, and a thread that reads what it writes."""
    folder = scratch / f"{number}-{seed}"
    folder.mkdir()
    command = [sys.executable, "-m", "tests.fuzz._workers", package, ",".join(names), str(seed)]
    command += [str(seconds), str(number), str(folder)]
    environment = {
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_COMPILATION_CACHE_DIR": str(scratch / "programs"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        **os.environ,
        **dict.fromkeys(("NPROC", "PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    }
    with open(folder / "errors", "w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment, start_new_session=True
        )
    worker = Worker(process, number, seed, folder, {"name": names[0], "heard": time.monotonic()})
    reader = threading.Thread(target=_read, args=(worker, report), daemon=True)
    worker.state["reader"] = reader
    reader.start()
    return worker


def _read(worker: Worker, report: Report) -> None:
    assert worker.process.stdout is not None
    for line in worker.process.stdout:
        if line.startswith('{"name"'):
            report.hear(worker, json.loads(line))


def _end_of(worker: Worker, end: float) -> str | None:
    """Why a worker ended: "" if it was done, None if it runs."""
    status = worker.process.poll()
    if status is None:
        if time.monotonic() - worker.state["heard"] < STANDSTILL:
            return None
        os.killpg(worker.process.pid, signal.SIGABRT)
        try:
            worker.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
        return f"no program was done for {STANDSTILL:.0f} s"
    worker.state["reader"].join()
    if status == 0:
        return ""
    return (
        f"the process ended with status {status}" if status > 0 else f"the process died of signal {-status}"
    )


def _last_words(worker: Worker, reason: str) -> str:
    """The failure of a worker that died: what it tried, and what it wrote."""
    program, errors = (
        path.read_text(errors="replace").strip() if path.exists() else ""
        for path in (worker.folder / "program", worker.folder / "errors")
    )
    tail = "\n".join(f"# {line}" for line in errors.splitlines()[-40:])
    return f"# {reason}, here:\n{program or '# (the generator does not say what it tries)'}\n{tail}"


def work(package: str, names: list[str], seed: int, seconds: float, number: int, folder: Path) -> None:
    """What a worker does."""
    from tests.fuzz.__main__ import tried_for

    faulthandler.enable()
    _stay_on_one_core(number)
    _progress.keep_in(str(folder / "program"))
    end = time.monotonic() + seconds
    for i, name in enumerate(names):
        _progress.trying("")
        run = importlib.import_module(f"{package}.{name}").run
        tried, told = 0, time.monotonic()
        share = (end - time.monotonic()) / (len(names) - i)
        for found in tried_for(run, seed, share):
            tried += 1
            if found or time.monotonic() > told + 1:
                _tell(name, tried, found)
                tried, told = 0, time.monotonic()
        _tell(name, tried, None)


def _tell(name: str, tried: int, found: str | None) -> None:
    others = dict(_progress.counts)
    _progress.counts.clear()
    line = json.dumps({"name": name, "tried": tried, "others": others, "found": found})
    _OUTPUT.write(line + "\n")
    _OUTPUT.flush()


def _stay_on_one_core(number: int) -> None:
    """The threads of both libraries would else be as many as there are cores, in each of the workers."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[number % len(cores)]})


_OUTPUT = sys.stdout
if __name__ == "__main__":
    # What programs print is no message.
    _OUTPUT = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    package, names, seed, seconds, number, folder = sys.argv[1:]
    work(package, names.split(","), int(seed), float(seconds), int(number), Path(folder))
