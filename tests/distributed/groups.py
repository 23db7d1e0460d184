"""Groups of processes for tests: started on loopback addresses, with a limit of time after which they are killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from purax.xla.processes.addresses import free_port

ROOT = Path(__file__).parents[2]

PRELUDE = """
import json, os, sys, time
import numpy as np
import purax as px, purax.numpy as jnp
from purax.sharding import Mesh, NamedSharding, PartitionSpec as P

def fails(function, *arguments):
    "The error of a call, as text."
    try:
        function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
"""


@dataclass
class Ended:
    """How a process ended."""

    code: int
    output: str
    errors: str


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI_"))
    }
    kept |= {"PYTHONPATH": str(ROOT), "PURAX_PLATFORMS": "cpu", "PURAX_CPU_THREADS": "2", "XLA_FLAGS": ""}
    return kept | {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": ""} | more


def address() -> str:
    return f"127.0.0.1:{free_port('127.0.0.1')}"


def start(script: str, *arguments: object, **more: str) -> subprocess.Popen[str]:
    """A process that runs a script, after `PRELUDE`."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script), *map(str, arguments)],
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait(processes: list[subprocess.Popen[str]], seconds: float) -> list[Ended]:
    """How the processes end; those that take too long are killed, and the test fails."""
    deadline = time.monotonic() + seconds
    ended = []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
            ended.append(Ended(process.returncode, output, errors))
        return ended
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()


@contextlib.contextmanager
def working_group(script: str, count: int, seconds: float = 60) -> Iterator[list[subprocess.Popen[str]]]:
    """A group whose processes have all printed "working"; whatever happens, it is gone afterwards."""
    place = address()
    group = [
        start(
            script,
            PURAX_COORDINATOR_ADDRESS=place,
            PURAX_NUM_PROCESSES=str(count),
            PURAX_PROCESS_ID=str(number),
        )
        for number in range(count)
    ]
    limit = threading.Timer(seconds, lambda: [process.kill() for process in group])
    limit.start()
    try:
        for process in group:
            assert process.stdout.readline() == "working\n", process.communicate()
        yield group
    finally:
        limit.cancel()
        for process in group:
            process.kill()
        for process in group:
            process.wait(10)
            process.stdout.close()
            process.stderr.close()


def run_group(script: str, count: int, *arguments: object, seconds: float = 60, **more: str) -> list[Ended]:
    """Runs `script` in `count` processes, which know their places from the environment."""
    place = address()
    processes = [
        start(
            script,
            *arguments,
            PURAX_COORDINATOR_ADDRESS=place,
            PURAX_NUM_PROCESSES=str(count),
            PURAX_PROCESS_ID=str(number),
            **more,
        )
        for number in range(count)
    ]
    return wait(processes, seconds)


def coordinator_of(process: subprocess.Popen[str]) -> int:
    """The process id of the coordinator that process 0 of a group has started."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process.pid and b"xla.processes.coordinator" in (path / "cmdline").read_bytes():
                return int(path.name)
    raise AssertionError("there is no coordinator")
