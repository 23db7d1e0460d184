"""Work in fresh processes: timed source text for the startup rows, and the phases of a compilation.

`python -m bench.child NAME LABEL SIZE FILE` runs the program NAME of the compile group and writes the result to FILE,
the times to the standard output. Disk caches are governed by the environment alone, so that a child starts as cold as
it is told to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TIMED = "import time as _time\n_start = _time.perf_counter()\n{}\nprint('seconds', _time.perf_counter() - _start)\n"


def cache_environment(label: str, folder: str | None) -> dict[str, str]:
    """Environment that puts a peer's disk cache into `folder`, or switches it off."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
    if folder is None:
        return environment | {
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            "PURAX_ENABLE_COMPILATION_CACHE": "false",
        }
    own = os.path.join(folder, label)
    settings = {
        "ENABLE_COMPILATION_CACHE": "true",
        "COMPILATION_CACHE_DIR": own,
        "PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    environment["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
    return environment | {
        f"{prefix}_{name}": value for prefix in ("JAX", "PURAX") for name, value in settings.items()
    }


class ChildError(RuntimeError):
    """A child failed; the message is the last exception that it printed."""


def run_child(arguments: list[str], environment: dict[str, str], timeout: float) -> str:
    """Standard output of a Python child; ChildError with its last line of complaint if it fails."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise ChildError(f"took longer than {timeout:.0f} s") from None
    if done.returncode:
        complaint = [line for line in done.stderr.strip().splitlines() if line.strip()]
        errors = [line for line in complaint if "Error" in line.split(":")[0]]
        raise ChildError((errors or complaint or [f"exit status {done.returncode}"])[-1].strip())
    return done.stdout


def run_code(text: str, environment: dict[str, str]) -> float:
    """Seconds that source text takes in a fresh interpreter, without the interpreter's own start."""
    output = run_child(["-c", TIMED.format(text)], environment, timeout=300)
    return float(output.strip().splitlines()[-1].split()[1])


def run_phases(program: Any, space: Any, size: int) -> tuple[dict[str, float], list[np.ndarray]]:
    """Seconds of each phase of a program that nothing is known of yet, and the leaves of its result.

    A program of which only the trace is reported is not compiled; its result comes from running it eagerly.
    """
    px, clock = space.px, time.perf_counter
    px.clear_caches()
    function, arguments = program.build(space, size)
    arguments = space.arrays(arguments)
    space.force(px.jit(lambda x: x * 2.0 + 1.0)(space.array(np.ones(4, np.float32))))
    times = [clock()]
    traced = px.jit(function).trace(*arguments)
    times.append(clock())
    lowered = traced.lower()
    times.append(clock())
    seconds = {"trace": times[1] - times[0], "lower": times[2] - times[1], "trace+lower": times[2] - times[0]}
    if set(program.phases) <= set(seconds):
        return seconds, space.host(function(*arguments))
    compiled = lowered.compile()
    seconds["compile"] = clock() - times[2]
    result = compiled(*arguments)
    space.force(result)
    result = space.host(result)
    seconds["step"] = best_step(space, compiled, arguments, allowance=0.5 if size == program.size else 0.0)
    return seconds, result


def best_step(space: Any, compiled: Any, arguments: tuple[Any, ...], allowance: float) -> float:
    """Best time of at least three runs of the compiled program, and of more while the allowance of seconds lasts."""
    best, count, started = float("inf"), 0, time.perf_counter()
    while count < 3 or (count < 1000 and time.perf_counter() - started < allowance):
        start = time.perf_counter()
        space.force(compiled(*arguments))
        best, count = min(best, time.perf_counter() - start), count + 1
    return best


def phases_in_child(
    name: str, label: str, size: int, environment: dict[str, str]
) -> tuple[dict[str, float], list[Any]]:
    """`run_phases` in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.npz")
        output = run_child(["-m", "bench.child", name, label, str(size), path], environment, timeout=900)
        with np.load(path) as stored:
            return json.loads(output.strip().splitlines()[-1]), [stored[key] for key in stored.files]


def main(name: str, label: str, size: str, path: str) -> None:
    from bench.peers import space
    from bench.rows.compile import group

    program = next(program for program in group.rows if program.name == name)
    seconds, result = run_phases(program, space(label), int(size))
    np.savez(path, *result)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
