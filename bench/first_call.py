"""The first call of a program in a process that has done nothing else: its wall time, processor time and result.

`python -m bench.first_call NAME LABEL FILE` does that for a program of `bench.programs` or, with a name such as
`gradients/7`, of `bench.random_programs`; the result goes to FILE, the seconds to the standard output. The import, the
client and one trivial program come before the clock starts.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from typing import Any

import numpy as np

from bench import programs, random_programs
from bench.child import cache_environment, run_child
from bench.measure import disagreement, failure_note
from bench.peers import LikeJax, space
from bench.row import Row

CLOCKS = ("wall", "processor")


def build(name: str, peer: LikeJax) -> tuple[Any, tuple[Any, ...]]:
    """What is called first, and its arguments as arrays of the peer."""
    if "/" in name:
        function, arguments = random_programs.build(name, peer)
        return peer.px.jit(function), peer.arrays(arguments)
    function, arguments = programs.load()[name](peer)
    return function if name in programs.WITHOUT_JIT else peer.px.jit(function), peer.arrays(arguments)


def first_call(name: str, label: str, is_compiled: bool = True) -> tuple[dict[str, float], list[np.ndarray]]:
    """Seconds by clock, and the leaves of the result; none of them if the program is lowered only."""
    peer = space(label)
    peer.px.clear_caches()
    function, arguments = build(name, peer)
    peer.force(peer.px.jit(lambda x: x * 2.0 + 1.0)(peer.array(np.ones(4, np.float32))))
    starts = time.perf_counter(), time.process_time()
    if is_compiled or name in programs.WITHOUT_JIT:
        result = function(*arguments)
        peer.force(result)
    else:
        function.lower(*arguments)
        result = ()
    ends = time.perf_counter(), time.process_time()
    seconds = {clock: end - start for clock, start, end in zip(CLOCKS, starts, ends, strict=True)}
    return seconds, peer.host(result)


def in_child(name: str, label: str, timeout: float = 600) -> tuple[dict[str, float], list[Any]]:
    """`first_call` in a fresh process without disk caches, on the platforms that the environment names."""
    environment = cache_environment(label, None)
    environment.setdefault(
        "PURAX_THREEFRY_PARTITIONABLE", "true"
    )  # the streams of random numbers that jax has by default
    for ours, theirs in (("PURAX_PLATFORMS", "JAX_PLATFORMS"), ("JAX_PLATFORMS", "PURAX_PLATFORMS")):
        if theirs in environment:
            environment.setdefault(ours, environment[theirs])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.npz")
        output = run_child(["-m", "bench.first_call", name, label, path], environment, timeout)
        with np.load(path) as stored:
            return json.loads(output.strip().splitlines()[-1]), [stored[key] for key in stored.files]


def sampled(
    name: str, labels: list[str], turns: int, comparison: Row, fresh: bool
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """The least seconds by label and clock over processes that take turns, and notes.

    A result that differs is a note and keeps its time: in long programs rounding grows. With `fresh` false the program
    is lowered in this process, and not compiled: a look whether it still works.
    """
    best: dict[str, dict[str, float]] = {}
    notes: dict[str, str] = {}
    results: dict[str, list[Any]] = {}
    for turn in range(turns):
        for label in labels if turn % 2 == 0 else labels[::-1]:
            if label in notes:
                continue
            try:
                seconds, results[label] = (
                    in_child(name, label) if fresh else first_call(name, label, is_compiled=False)
                )
            except Exception as error:  # a peer's failure is a note in the table
                notes[label] = failure_note(error)
                best.pop(label, None)
                continue
            kept = best.setdefault(label, seconds)
            best[label] = {clock: min(seconds[clock], kept[clock]) for clock in seconds}
    if len(results) == 2:
        difference = disagreement(comparison, results["jax"], results["purax"], exact_dtype=True)
        if difference is not None:
            notes["purax"] = f"differs from jax: {difference}"
    return best, notes


def main(name: str, label: str, path: str) -> None:
    seconds, result = first_call(name, label)
    np.savez(path, *result)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
