"""Notebooks from the pages of `docs/tutorials`: each block of Python becomes a cell, the text between them another."""

from __future__ import annotations

import json
import re


def notebook(markdown: str) -> str:
    """The JSON of a notebook (nbformat 4) with the text and the programs of a page, not yet run."""
    cells = []
    for position, part in enumerate(re.split(r"^```python\n(.*?)^```\n?", markdown, flags=re.MULTILINE | re.DOTALL)):
        source = part.strip("\n")
        if position % 2:
            cells.append(_cell(source, "code", len(cells)) | {"execution_count": None, "outputs": []})
        elif source.strip():
            cells.append(_cell(source, "markdown", len(cells)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    described = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": described, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(source: str, kind: str, number: int) -> dict:
    """A cell; doctests lose their prompts and the results that they promise."""
    if kind == "code" and source.lstrip().startswith(">>>"):
        lines = [line[4:] for line in source.splitlines() if line.startswith((">>>", "..."))]
        source = "\n".join(lines)
    return {
        "cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source.splitlines(keepends=True),
    }  # fmt: skip
