"""`Explanation`: the model of a program, and the page that shows it, which needs no other file and no network."""

from __future__ import annotations

import html
import json
import os
import tempfile
import webbrowser
from importlib import resources
from pathlib import Path
from typing import Any

from purax.explorer.tables import Tables

_HEIGHT = 720  # of the page in a notebook, in pixels


class Explanation:
    """What `explain` found. A notebook shows the page; `print` shows the costs of lines.

    Attributes:
        model: what the page shows, as plain data for `json`.

    >>> import purax as px
    >>> explanation = px.explain(lambda x: x * 2 + 1, compile=False)(3.0)
    >>> explanation.html.startswith("<!doctype html>")
    True
    """

    def __init__(self, model: dict[str, Any], tables: Tables | None = None):
        self.model = model
        self.tables = tables or Tables()

    def renew_places(self) -> None:
        """Takes over the lines that were added to the tables after the model was made."""
        self.model["tables"] = self.tables.as_data()

    @property
    def html(self) -> str:
        """The page."""
        return page(self.model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file.

        Args:
            path: of the file.
        """
        Path(path).write_text(self.html, encoding="utf-8")

    def show(self) -> str:
        """Opens the page in the browser; returns its path."""
        with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False, encoding="utf-8") as file:
            file.write(self.html)
        webbrowser.open(Path(file.name).as_uri())
        return file.name

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:{_HEIGHT}px;border:0" '
            'sandbox="allow-scripts allow-downloads"></iframe>'
        )

    def lines(self) -> list[dict[str, Any]]:
        """What each line of the user's costs, the dearest first: "place", "operations", "flops", "bytes", "seconds"."""
        return line_costs(self.model)

    def __repr__(self) -> str:
        return summary(self.model)


def page(model: dict[str, Any]) -> str:
    """The page of a model.

    Args:
        model: as `ModelMaker.model` makes it, with what was added to it.
    """
    assets = resources.files("purax.explorer") / "assets"
    data = json.dumps(model, separators=(",", ":"), allow_nan=False, default=str).replace("<", "\\u003c")
    title = html.escape(f"{model['name']} · purax")
    script = (assets / "explorer.js").read_text(encoding="utf-8").replace("</script", "<\\/script")
    style = (assets / "explorer.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f'<style>{style}</style></head><body><div id="app"></div>'
        f'<script type="application/json" id="model">{data}</script><script>{script}</script></body></html>\n'
    )


def line_costs(model: dict[str, Any]) -> list[dict[str, Any]]:
    """What each line of the user's costs in one call, the dearest first.

    Args:
        model: of a program.
    """
    costs: dict[int, list[float]] = {}
    for program in model["programs"]:
        columns = program["equations"]
        for i, place in enumerate(columns["place"]):
            if str(i) not in program["inside"]:
                row = costs.setdefault(place, [0, 0, 0])
                row[0] += program["times"]
                row[1] += program["times"] * columns["cost"][i][0]
                row[2] += program["times"] * columns["cost"][i][1]
    seconds = seconds_of_places(model)
    tables = model["tables"]
    rows = []
    for place in {*costs, *seconds}:
        file, line = tables["places"][place] if place >= 0 else (-1, 0)
        operations, flops, moved = costs.get(place, [0, 0, 0])
        rows.append({
            "place": f"{tables['files'][file]['name']}:{line}" if place >= 0 else "",
            "operations": operations,
            "flops": flops,
            "bytes": moved,
            "seconds": seconds.get(place, 0.0),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["seconds"], -row["flops"], -row["bytes"]))


def seconds_of_places(model: dict[str, Any]) -> dict[int, float]:
    """The measured time of each line: that of its kernels, shared by the instructions of a fusion."""
    if "measured" not in model:
        return {}
    times = model["measured"]["kernels"]
    found: dict[int, float] = {}
    for kernel in model["compiled"]["kernels"]:
        if kernel["kind"] in ("loop", "call", "branches"):
            continue  # whose time is that of the kernels inside
        total = sum(count for _, count in kernel["places"])
        for place, count in kernel["places"]:
            found[place] = found.get(place, 0.0) + times.get(kernel["name"], 0.0) * count / total
    return found


def summary(model: dict[str, Any]) -> str:
    """The most important figures, and the dearest lines, as text.

    Args:
        model: of a program.
    """
    rows = line_costs(model)
    operations = sum(len(program["equations"]["op"]) for program in model["programs"])
    memory = model["memory"]
    peak = max(memory["timeline"], default=memory["arguments"])
    is_counted = model.get("counted", True)
    flops = f"{_short(sum(row['flops'] for row in rows))}FLOP, " if is_counted else ""
    peak_text = f", peak {_short(peak)}B" if memory["timeline"] else ""
    moved = f"{_short(sum(row['bytes'] for row in rows))}B moved if nothing is fused"
    lines = [f"`{model['name']}`: {operations} operations, {flops}{moved}{peak_text}"]
    if "compiled" in model:
        kernels = model["compiled"]["kernels"]
        sent = sum(kernel.get("sent", 0) for kernel in kernels)
        line = f"compiled for {model['compiled']['platform']}: {len(kernels)} kernels"
        line += f", {_short(model['compiled']['memory']['temp'])}B of temporary memory"
        lines.append(line + (f", {_short(sent)}B sent by each device" if sent else ""))
    if "measured" in model:
        lines.append(f"measured: {_short(model['measured']['seconds'])}s for a call")
    lines += [f"side effect at {_place(model, found)}: {found['text']}" for found in model.get("findings", ())]
    for row in rows[:8]:
        time = f"{_short(row['seconds'])}s" if "measured" in model else ""
        flops = f"{_short(row['flops']):>7}FLOP " if is_counted else ""
        figures = f"{flops}{_short(row['bytes']):>7}B {time:>9}"
        lines.append(f"  {figures}  {row['place']}".rstrip())
    return "\n".join(lines)


def _place(model: dict[str, Any], finding: dict[str, Any]) -> str:
    file, line = model["tables"]["places"][finding["place"]]
    return f"{model['tables']['files'][file]['name']}:{line}"


def _short(number: float) -> str:
    """A number with a prefix of its unit.

    >>> _short(12_400_000), _short(0.0021), _short(0)
    ('12.4 M', '2.1 m', '0 ')
    """
    if not number:
        return "0 "
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ")):
        if abs(number) >= size:
            return f"{number / size:.3g} {prefix}"
    return f"{number * 1e9:.3g} n"
