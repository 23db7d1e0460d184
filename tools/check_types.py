"""Runs pyright, as editors do, over the examples and over the programs of the READMEs and the tutorials.

    python tools/check_types.py

The programs of a document become one file each, in `build/documents`; a line there is the line of the document. What
pyright looks at stands in pyproject.toml.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "documents"
DOCUMENTS = ("README.md", "docs/index.md", "docs/getting_started.md", "docs/tutorials/*.md")


def program_of(markdown: str) -> str:
    """The blocks of Python of a document, each at its own lines, but for those that show a mistake."""
    program = [""] * (markdown.count("\n") + 1)
    for found in re.finditer(r"^( *)```python\n(.*?)^\1```", markdown, re.MULTILINE | re.DOTALL):
        if "pytest.raises" in found[2]:
            continue
        first = markdown[: found.start(2)].count("\n")
        for number, line in enumerate(code_of(textwrap.dedent(found[2])).splitlines()):
            program[first + number] = line
    return "\n".join(program)


def code_of(block: str) -> str:
    """A block as a program: doctests lose their prompts and results."""
    if not block.lstrip().startswith(">>>"):
        return block
    lines = [line[4:] if line.startswith((">>>", "...")) else "" for line in block.splitlines()]
    return "\n".join(lines)


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for pattern in DOCUMENTS:
        for document in sorted(ROOT.glob(pattern)):
            name = "_".join(document.relative_to(ROOT).with_suffix("").parts)
            program = program_of(document.read_text(encoding="utf-8"))
            (FOLDER / f"{name}.py").write_text(program + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
