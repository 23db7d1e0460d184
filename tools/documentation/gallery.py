"""The gallery: runs the programs of `examples/gallery` for their pictures, and shows both.

A picture is kept in `build/pictures` under the digest of its program, so that it is made once.
"""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "pictures"


def programs() -> list[Path]:
    return sorted((ROOT / "examples" / "gallery").glob("*.py"))


def pictures() -> dict[str, bytes]:
    """The picture that each program makes, by the program's name."""
    return {program.stem: _picture(program) for program in programs()}


def _picture(program: Path) -> bytes:
    digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
    kept = KEPT / f"{program.stem}-{digest}.png"
    if not kept.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": path}
        command = [sys.executable, str(program), str(kept)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise RuntimeError(f"{program.name} failed:\n{done.stdout}{done.stderr}")
    return kept.read_bytes()


def section(language: str) -> str:
    """The Markdown with every picture, what it shows, and the program behind it."""
    said = "The program" if language == "en" else "程序"
    parts = []
    for program in programs():
        source = program.read_text(encoding="utf-8")
        title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
        indented = "\n".join(f"    {line}".rstrip() for line in source.splitlines())
        parts.append(
            f"## {title.rstrip('.')}\n\n![{title}](pictures/{program.stem}.png)\n\n{text.strip()}\n\n"
            f'??? example "{said}"\n\n    ```python\n{indented}\n    ```\n'
        )
    return "\n".join(parts)
