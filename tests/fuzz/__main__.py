"""The command `make fuzz`: runs the generators of random programs, and prints each failure as a program.

A generator is a module of this folder with `run(seed)`, which tries random programs that follow from the seed forever
and yields for each of them None, or the failure: a short program that reproduces it. The time is shared equally. With
several workers, each is a process with a seed of its own; one that dies or hangs is a failure, and another one goes on.
A program that takes longer than `--longest` is one, too.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence

from tests.fuzz import _progress
from tests.fuzz._workers import run_workers

Run = Callable[[int], Iterator[str | None]]
LONGEST = 200.0  # seconds for a program


def generators(package: str = "tests.fuzz", only: Sequence[str] = ()) -> dict[str, Run]:
    """The generators of a package by name; `only` these are imported, since some need more than others (jax)."""
    found = {}
    for name in names_of_generators(package):
        if only and name not in only:
            continue
        run = getattr(importlib.import_module(f"{package}.{name}"), "run", None)
        if run is not None:
            found[name] = run
    return found


def names_of_generators(package: str) -> list[str]:
    """The modules of a package that may be generators."""
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return [module.name for module in modules if not module.name.startswith(("_", "test_"))]


def tried_for(run: Run, seed: int, seconds: float, longest: float = LONGEST) -> Iterator[str | None]:
    """What a generator finds in some time; one that fails itself is a failure, and so is a program that takes long."""
    end = time.monotonic() + seconds
    steps, further = run(seed), itertools.count(seed + 1_000_003, 1_000_003)
    while True:
        try:
            with _progress.at_most(longest):
                found = next(steps)
        except StopIteration:
            return
        except _progress.TooLong:
            found = f"# takes longer than {longest:g} s\n{_progress.tried[0]}"
            steps = run(next(further))  # the generator was cut, too
        except Exception:
            yield f"# the generator failed:\n{traceback.format_exc()}"
            return
        yield found
        if time.monotonic() > end:
            return


def summary(name: str, failures: int, tried: int, seconds: float, others: dict[str, int]) -> str:
    """The line of a generator; `others` counts what was not compared, by its outcome."""
    besides = "".join(f", {number} {outcome}" for outcome, number in sorted(others.items()))
    return f"{name}: {failures} failures, {tried} programs in {seconds:.0f} s{besides}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the generators that are asked for; the exit status is 1 if one of them found a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="the time for all generators together")
    parser.add_argument("--seed", type=int, default=0, help="the same seed tries the same programs")
    parser.add_argument("--only", default="", help="names of generators, with commas between them")
    parser.add_argument("--package", default="tests.fuzz", help="where the generators are")
    parser.add_argument("--workers", type=int, default=1, help="processes, each with a seed of its own")
    parser.add_argument(
        "--longest", type=float, default=LONGEST, help="seconds for a program, without workers"
    )
    parser.add_argument(
        "--report", default="", help="a file for all failures; of equal ones, few are printed"
    )
    options = parser.parse_args(arguments)
    asked = [name for name in options.only.split(",") if name]
    known = generators(options.package, asked)
    names = asked or list(known)
    unknown = sorted(set(names) - set(known))
    if unknown or not names:
        there = ", ".join(generators(options.package))
        parser.error(f"no generator {', '.join(unknown)}; there are: {there}")
    if options.workers > 1:
        return run_workers(
            options.package, names, options.seed, options.seconds, options.workers, options.report
        )
    total = 0
    for name in names:
        start, tried, failures = time.monotonic(), 0, 0
        _progress.counts.clear()
        for found in tried_for(known[name], options.seed, options.seconds / len(names), options.longest):
            tried += 1
            if found is not None:
                failures += 1
                text = f"\n# {name}, seed {options.seed}, failure {failures}\n{found.strip()}"
                print(text, flush=True)
                if options.report:
                    with open(options.report, "a") as file:
                        file.write(text + "\n")
        seconds = time.monotonic() - start
        print(summary(name, failures, tried, seconds, _progress.counts), flush=True)
        total += failures
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
