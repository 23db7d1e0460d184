"""The results for people and programs: a table of ratios, a JSON file, a plot, and a summary against the bars."""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.peers import PEERS, versions
from bench.row import Bar, Group, Outcome

RESULTS = Path(__file__).parent / "results"
NAME_WIDTH = 56
CELL_WIDTH = 15


SCALES = {
    "s": {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9},
    "of jax": {"×": 1.0, "‰": 1e-3},
    "B": {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0},
}


def amount(cost: float, unit: str = "s") -> str:
    """Three digits and a unit."""
    scales = SCALES[unit]
    name = next((name for name, scale in scales.items() if cost >= scale), list(scales)[-1])
    value = cost / scales[name]
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {name}"


def ratio_text(ratio: float) -> str:
    if ratio >= 100:
        return f"{ratio:.0f}"
    return f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"


def status(note: str) -> str:
    """First word of a note: missing, error or differs."""
    return note.replace(":", " ").split()[0]


def columns_in_order(labels: Iterable[str]) -> list[str]:
    """purax first, the peers in their usual order, variants (`torch.autograd`, `jax before`) after their peer."""

    def place(label: str) -> tuple[int, str]:
        return PEERS.index(label.replace(" ", ".").split(".")[0]), label

    return sorted(labels, key=place)


def columns(outcomes: Iterable[Outcome]) -> list[str]:
    """The labels that occur, and purax."""
    return columns_in_order({"purax"} | {label for each in outcomes for label in (*each.costs, *each.notes)})


def verdicts(outcome: Outcome) -> Iterator[tuple[Bar, float | None]]:
    """Each bar of a row that has someone to compare with, and the ratio that stands against it."""
    for bar in outcome.bars:
        if any(label in outcome.costs for label in bar.against):
            yield bar, outcome.ratio(bar.against)


def verdict_text(outcome: Outcome) -> str:
    if "purax" not in outcome.costs:
        return status(outcome.notes["purax"]) if "purax" in outcome.notes else ""
    missed = [
        f"{bar} (×{ratio_text(ratio)})"
        for bar, ratio in verdicts(outcome)
        if ratio is None or ratio > bar.limit
    ]
    if missed:
        return "miss " + ", ".join(missed)
    return "pass" if any(True for _ in verdicts(outcome)) else ""


def cell(outcome: Outcome, label: str) -> str:
    """Time or memory of a peer, and purax's divided by it."""
    if label not in outcome.costs:
        return status(outcome.notes[label]) if label in outcome.notes else ""
    text = amount(outcome.costs[label], outcome.unit)
    if label == "purax":
        return text
    ratio = outcome.ratio((label,))
    return f"{text} {'' if ratio is None else ratio_text(ratio):>6}"


class Table:
    """Prints a group as it is measured: one line per row, times with the ratio of purax to the peer behind them."""

    def __init__(self, group: Group, labels: list[str]):
        self.labels = labels
        print(f"\n== {group.name}: {group.summary}   (cost, and purax's cost / peer's)")
        self.line("", labels, "bar")

    def line(self, name: str, cells: list[str], last: str) -> None:
        text = f"{name[:NAME_WIDTH]:<{NAME_WIDTH}}" + "".join(f"{each:>{CELL_WIDTH}}" for each in cells)
        print(f"{text}  {last}".rstrip(), flush=True)

    def add(self, outcome: Outcome) -> None:
        self.line(outcome.name, [cell(outcome, label) for label in self.labels], verdict_text(outcome))


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def group_mean(outcomes: list[Outcome], against: tuple[str, ...]) -> tuple[float | None, int]:
    """Geometric mean of purax's ratio over the rows where it is known, and the number of these rows."""
    ratios = [ratio for outcome in outcomes if (ratio := outcome.ratio(against)) is not None]
    return (geometric_mean(ratios), len(ratios)) if ratios else (None, 0)


def print_notes(outcomes: list[Outcome]) -> None:
    """Why a cell has no time; rows that give the same reason share a line."""
    rows: dict[str, list[str]] = {}
    for outcome in outcomes:
        for label, note in outcome.notes.items():
            rows.setdefault(f"{label} {note}", []).append(f"{outcome.group} / {outcome.name}")
    if rows:
        print("\nNotes:")
    for note, names in rows.items():
        print(
            f"  {note}\n      in {'; '.join(names[:6])}{f' and {len(names) - 6} more' if len(names) > 6 else ''}"
        )


def summary(groups: list[Group], outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Per group: geometric means against each peer, the bars on them, the rows that miss a bar or do not run."""
    found = []
    for group in groups:
        mine = [outcome for outcome in outcomes if outcome.group == group.name]
        if not mine:
            continue
        means = {}
        for label in columns(mine)[1:]:
            mean, count = group_mean(mine, (label,))
            if mean is not None:
                means[label] = {"mean": mean, "rows": count}
        mean_bars = []
        for bar in group.mean_bars():
            mean, count = group_mean(mine, bar.against)
            met = mean is not None and mean <= bar.limit
            mean_bars.append({"bar": str(bar), "stage": bar.stage, "mean": mean, "rows": count, "met": met})
        misses = [
            {"row": outcome.name, "bar": str(bar), "stage": bar.stage, "ratio": ratio}
            for outcome in mine
            for bar, ratio in verdicts(outcome)
            if ratio is not None and ratio > bar.limit
        ]
        absent = {outcome.name: outcome.notes["purax"] for outcome in mine if "purax" in outcome.notes}
        found.append(
            {
                "group": group.name,
                "rows": len(mine),
                "means": means,
                "mean_bars": mean_bars,
                "misses": misses,
                "absent": absent,
            }
        )
    return found


def print_summary(found: list[dict[str, Any]], with_bars: bool) -> None:
    """One line per group, and with `with_bars` every bar that was missed."""
    print("\n== summary: geometric mean of purax's time (or memory) / the peer's")
    for each in found:
        means = "  ".join(
            f"{label} {ratio_text(value['mean'])} ({value['rows']})" for label, value in each["means"].items()
        )
        absent: dict[str, int] = {}
        for note in each["absent"].values():
            absent[status(note)] = absent.get(status(note), 0) + 1
        counts = "".join(f", {count} {kind}" for kind, count in absent.items())
        missed = len({miss["row"] for miss in each["misses"]})
        print(f"{each['group']:<12} {each['rows']} rows, {missed} miss a bar{counts};  {means}")
        if with_bars:
            for bar in each["mean_bars"]:
                value = "not measured" if bar["mean"] is None else ratio_text(bar["mean"])
                print(f"    {'pass' if bar['met'] else 'miss'}  {bar['bar']} [{bar['stage']}]: {value}")
            for miss in sorted(each["misses"], key=lambda miss: -miss["ratio"]):
                print(
                    f"    miss  {miss['row']}: {ratio_text(miss['ratio'])}, bar {miss['bar']} [{miss['stage']}]"
                )
            for name, note in each["absent"].items():
                print(f"    {status(note)}  {name}")


def environment() -> dict[str, Any]:
    """The machine and the versions that the numbers belong to."""
    processor = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in information.read_text().splitlines()
            if "model name" in line
        ]
        processor = names[0] if names else processor
    return {
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "python": platform.python_version(),
        "processor": processor,
        "cores": os.cpu_count(),
        "versions": versions(),
    }


def write_json(path: Path, outcomes: list[Outcome], found: list[dict[str, Any]]) -> None:
    """Everything that the table shows, and the environment."""
    rows = [
        {
            "group": outcome.group,
            "name": outcome.name,
            "unit": outcome.unit,
            "costs": outcome.costs,
            "notes": outcome.notes,
            "bars": [
                {"limit": bar.limit, "against": bar.against, "stage": bar.stage, "ratio": ratio,
                 "met": ratio is not None and ratio <= bar.limit}
                for bar, ratio in verdicts(outcome)
            ],
        }
        for outcome in outcomes
    ]  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"environment": environment(), "rows": rows, "groups": found}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_plot(path: Path, outcomes: list[Outcome]) -> bool:
    """Ratio of purax to each peer, one dot per row and peer on a logarithmic axis; needs matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [outcome for outcome in outcomes if outcome.costs]
    if not shown:
        return False
    base = "purax" if any("purax" in outcome.costs for outcome in shown) else "jax"
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.17 * len(shown)))
    heights = range(len(shown), 0, -1)
    for number, label in enumerate(label for label in columns(shown) if label != base):
        points = [
            (ratio, height)
            for outcome, height in zip(shown, heights, strict=True)
            if (ratio := outcome.ratio((label,), base)) is not None
        ]
        if points:
            axes.scatter(
                *zip(*points, strict=True), s=16, label=f"{base} / {label}", color=f"C{number}", zorder=3
            )
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(list(heights), [f"{outcome.group}: {outcome.name}" for outcome in shown], fontsize=6)
    axes.set_ylim(0, len(shown) + 1)
    axes.set_xlabel(f"time of {base} / time of the peer (left of 1: {base} is faster)")
    axes.grid(axis="x", linewidth=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper right", fontsize=7)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    pyplot.close(figure)
    return True
