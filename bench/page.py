"""The table of the page "Why it is fast", written by the benchmark: `python -m bench.page FILE.json...`.

Each JSON file is the result of a run (`python -m bench --json FILE`); a row that several runs have is taken from the
last of them. The table replaces what stands between the two marks of the page, and nothing else there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.report import amount, columns_in_order, geometric_mean, ratio_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "why_it_is_fast.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def environment_line(environment: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    return (
        f"{environment['processor']}, {environment['cores']} cores, Python {environment['python']}, {versions}; "
        f"{environment['time'].split()[0]}"
    )


def ratio(costs: dict[str, float], peers: list[str]) -> float | None:
    known = [costs[peer] for peer in peers if peer in costs]
    return costs["purax"] / min(known) if "purax" in costs and known else None


def group_table(rows: list[dict[str, Any]]) -> list[str]:
    """The lines of one group's table, with its geometric means as the last row."""
    peers = [
        label for label in columns_in_order({label for row in rows for label in row["costs"]} | {"purax"})
    ]
    others = [label for label in peers if label != "purax" and "before" not in label]
    lines = [f"| row | purax | {' | '.join(others)} |", "|---|" + "---:|" * (len(others) + 1)]
    for row in rows:
        costs, cells = row["costs"], []
        for label in others:
            found = ratio(costs, [label])
            cells.append(
                "" if found is None else f"{amount(costs[label], row['unit'])} ({ratio_text(found)})"
            )
        own = amount(costs["purax"], row["unit"]) if "purax" in costs else "—"
        lines.append(f"| {row['name']} | {own} | {' | '.join(cells)} |")
    means = []
    for label in others:
        ratios = [found for row in rows if (found := ratio(row["costs"], [label])) is not None]
        means.append(f"**{ratio_text(geometric_mean(ratios))}**" if ratios else "")
    return [*lines, f"| **geometric mean** | | {' | '.join(means)} |"]


def table(documents: list[dict[str, Any]]) -> str:
    """All groups, each with the environment of the run that it comes from."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    origin: dict[str, str] = {}
    for document in documents:
        for row in document["rows"]:
            rows[row["group"], row["name"]] = row
            origin[row["group"]] = environment_line(document["environment"])
    lines = []
    for group, line in origin.items():
        mine = [row for (name, _), row in rows.items() if name == group and row["costs"]]
        if mine:
            lines += [f"### {group}", "", f"*{line}*", "", *group_table(mine), ""]
    return "\n".join(lines)


def write_page(documents: list[dict[str, Any]], path: Path = PAGE) -> None:
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{table(documents)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write_page([json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]])
