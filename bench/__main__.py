"""`python -m bench`: measure, print the table of ratios, write JSON and a plot. `--help` lists the options."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.measure import Options
from bench.peers import PEERS
from bench.report import (
    RESULTS,
    Table,
    columns_in_order,
    print_notes,
    print_summary,
    summary,
    versions,
    write_json,
    write_plot,
)
from bench.row import Outcome
from bench.rows import GROUPS, select


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure purax beside its peers.")
    parser.add_argument(
        "--group", action="append", choices=list(GROUPS), help="only this group (may be repeated)"
    )
    parser.add_argument("--row", default="*", help="only rows whose name matches this glob")
    parser.add_argument(
        "--repeat", type=int, default=25, help="samples per row and peer at least, the best counts"
    )
    parser.add_argument(
        "--peers", default=",".join(PEERS), help="comma-separated; 'torch.compile' may be added"
    )
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, every row once: does it still run?")
    parser.add_argument("--count", type=int, default=5, help="random programs of each kind")
    parser.add_argument("--seed", type=int, default=0, help="the first random program of each kind")
    parser.add_argument("--heavy", action="store_true", help="also the rows that take minutes")
    parser.add_argument("--bars", action="store_true", help="list every missed bar at the end")
    parser.add_argument("--json", type=Path, help="where the JSON goes; bench/results/latest.json by default")
    parser.add_argument("--plot", type=Path, help="where the plot goes; beside the JSON by default")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and stop")
    return parser.parse_args(arguments)


def labels_of(rows: list, options: Options) -> list[str]:
    """The columns of a group's table, in the order in which its rows name them."""
    found = {"purax": None}
    for row in rows:
        found |= {label: None for label in row.builders if options.wants(label)}
    return columns_in_order(found)


def write_files(settings: argparse.Namespace, outcomes: list[Outcome], found: list[dict]) -> None:
    """JSON and plot; a smoke run measures nothing worth keeping and writes only what is asked for."""
    json_path = settings.json or (None if settings.smoke else RESULTS / "latest.json")
    plot_path = settings.plot or (
        None if settings.smoke else (json_path or RESULTS / "latest").with_suffix(".png")
    )
    if json_path is not None:
        write_json(json_path, outcomes, found)
        print(f"\nwritten: {json_path}")
    if plot_path is not None and write_plot(plot_path, outcomes):
        print(f"written: {plot_path}")


def main(arguments: list[str] | None = None) -> list[Outcome]:
    """Run the benchmark as the command line asks; returns the outcomes."""
    settings = parse(arguments)
    chosen = select(settings.group, settings.row)
    if not chosen:
        sys.exit(f"no row matches {settings.row!r}; see --list")
    if settings.list:
        for group, rows in chosen:
            for row in rows:
                print(f"{group.name:<12} {row.name}{'  (--heavy)' if row.heavy else ''}")
        return []
    options = Options(
        peers=tuple(settings.peers.split(",")),
        repeat=1 if settings.smoke else max(1, settings.repeat),
        smoke=settings.smoke,
        heavy=settings.heavy,
        count=settings.count,
        seed=settings.seed,
    )
    print("  ".join(f"{name} {version}" for name, version in versions().items()))
    outcomes: list[Outcome] = []
    for group, rows in chosen:
        table = Table(group, labels_of(rows, options))
        for outcome in group.measure(group, rows, options):
            table.add(outcome)
            outcomes.append(outcome)
    print_notes(outcomes)
    found = summary([group for group, _ in chosen], outcomes)
    print_summary(found, settings.bars)
    write_files(settings, outcomes, found)
    return outcomes


if __name__ == "__main__":
    main()
