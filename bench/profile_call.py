"""Where one call's time goes: `python -m bench.profile_call --group eager --row 'x + y'`.

Times the row as the benchmark does, then runs it under cProfile and shares the measured time out over functions and
files in the proportions that the profile saw. The profiler charges per Python call, so many small functions look
dearer than they are: the shares are a map, the measured time is the truth.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
from collections import defaultdict
from pathlib import Path

from bench.measure import SAMPLE_SECONDS, Runner
from bench.report import amount
from bench.row import Row
from bench.rows import GROUPS, select


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.profile_call", description=__doc__.splitlines()[0])
    groups = [name for name, group in GROUPS.items() if group.rows and isinstance(group.rows[0], Row)]
    parser.add_argument("--group", choices=groups, default="eager")
    parser.add_argument("--row", default="x + y", help="name or glob; the first row that matches")
    parser.add_argument(
        "--peer", default="purax", help="a column of the benchmark, such as jax or torch.autograd"
    )
    parser.add_argument(
        "--calls", type=int, default=0, help="calls under the profiler; about half a second's worth"
    )
    parser.add_argument("--top", type=int, default=25, help="functions to show")
    parser.add_argument("--smoke", action="store_true", help="the small size of the row")
    return parser.parse_args(arguments)


def short_place(path: str, line: int) -> str:
    """The end of a file's path, enough to tell the package and the module."""
    return "built in" if path == "~" else f"{'/'.join(Path(path).parts[-3:])}:{line}"


def profile(runner: Runner, calls: int) -> pstats.Stats:
    """Statistics of `calls` calls, waited for as the benchmark does."""
    profiler = cProfile.Profile()
    profiler.enable()
    runner.sample(calls)
    profiler.disable()
    return pstats.Stats(profiler)


def show(stats: pstats.Stats, calls: int, seconds: float, top: int) -> None:
    """Two tables: by function and by file. Self time is scaled so that its sum is the measured time of a call."""
    entries = stats.stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in entries.values()) or 1.0
    scale = seconds / total
    print(f"\n{'self':>10} {'share':>6} {'with callees':>13} {'calls':>7}  function")
    order = sorted(entries.items(), key=lambda item: -item[1][2])
    for (path, line, name), (_, count, own, cumulative, _) in order[:top]:
        place = short_place(path, line)
        columns = f"{amount(own * scale):>10} {own / total:>6.1%} {amount(cumulative * scale):>13}"
        print(f"{columns} {count / calls:>7.1f}  {name}  ({place})")
    files: dict[str, float] = defaultdict(float)
    for (path, _, _), (_, _, own, _, _) in entries.items():
        files[short_place(path, 0).removesuffix(":0")] += own
    print(f"\n{'self':>10} {'share':>6}  file")
    for place, own in sorted(files.items(), key=lambda item: -item[1])[:12]:
        print(f"{amount(own * scale):>10} {own / total:>6.1%}  {place}")


def main(arguments: list[str] | None = None) -> None:
    """Profile the row that the command line names."""
    settings = parse(arguments)
    chosen = select([settings.group], settings.row)
    if not chosen:
        sys.exit(f"no row of {settings.group} matches {settings.row!r}; see python -m bench --list")
    row = chosen[0][1][0]
    if settings.peer not in row.builders:
        sys.exit(f"{row.name!r} has no version for {settings.peer}; it has {', '.join(row.builders)}")
    runner = Runner(row, settings.peer, settings.smoke)
    count = runner.calibrate(SAMPLE_SECONDS)
    seconds = min(runner.sample(count) for _ in range(15)) / count
    calls = settings.calls or max(3, round(0.5 / seconds / 4))
    print(f"{row.group} / {row.name}, {settings.peer}: {amount(seconds)} per call; {calls} calls profiled")
    show(profile(runner, calls), calls, seconds, settings.top)


if __name__ == "__main__":
    main()
