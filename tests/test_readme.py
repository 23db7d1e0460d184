"""Every Python block of the READMEs and of docs/ runs, in order, in one namespace per document.

Blocks with `>>>` prompts are doctests: their printed results must be exactly what the reader sees. Other blocks are
programs: they must run. A failure points at the line of the document.
"""

from __future__ import annotations

import doctest
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
READMES = [ROOT / "README.md", ROOT / "README.zh.md"]
DOCUMENTS = READMES + [file for file in sorted(ROOT.glob("docs/**/*.md")) if "```python" in file.read_text()]


def python_blocks(document: Path) -> list[tuple[int, str]]:
    """The line number of the first line, and the text, of every block fenced as Python."""
    text = document.read_text()
    blocks = []
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        blocks.append((text[: match.start(1)].count("\n") + 1, match[1]))
    return blocks


def run_program(document: Path, line: int, source: str, namespace: dict) -> None:
    """Runs a block; blank lines stand in for what precedes it, so that tracebacks show the README's own lines."""
    placed = "\n" * (line - 1) + source
    name = f"<{document.name}:{line}>"
    linecache.cache[name] = (len(placed), None, placed.splitlines(keepends=True), name)
    exec(compile(placed, name, "exec", dont_inherit=True), namespace)


def run_doctest(document: Path, line: int, source: str, namespace: dict) -> None:
    parsed = doctest.DocTestParser().get_doctest(source, namespace, document.name, str(document), line - 1)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    said: list[str] = []
    result = runner.run(parsed, out=said.append, clear_globs=False)
    assert result.failed == 0, "".join(said)
    namespace.update(parsed.globs)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_python_blocks_run(document, tmp_path, monkeypatch):
    blocks = python_blocks(document)
    assert blocks
    monkeypatch.chdir(tmp_path)
    if any("purax.compat.jax" in source for _, source in blocks):  # there, jax means purax
        program = "\n".join(source for _, source in blocks)
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
        return
    namespace: dict = {"__name__": "readme"}
    for line, source in blocks:
        run = run_doctest if source.lstrip().startswith(">>>") else run_program
        run(document, line, source, namespace)


@pytest.mark.parametrize("readme", READMES, ids=lambda file: file.name)
def test_every_fenced_block_is_found(readme):
    assert len(python_blocks(readme)) == readme.read_text().count("```python") >= 5


def test_a_wrong_result_in_a_readme_is_caught(tmp_path):
    document = tmp_path / "README.md"
    document.write_text("# Title\n\n```python\n>>> 1 + 1\n3\n```\n")
    [(line, source)] = python_blocks(document)
    assert line == 4
    with pytest.raises(AssertionError, match="Expected"):
        run_doctest(document, line, source, {})


def test_a_failing_program_points_at_its_line(tmp_path):
    document = tmp_path / "README.md"
    document.write_text("# Title\n\n```python\nx = 1\nx / 0\n```\n")
    [(line, source)] = python_blocks(document)
    with pytest.raises(ZeroDivisionError) as caught:
        run_program(document, line, source, {})
    assert caught.traceback[-1].lineno + 1 == 5
