"""What type checkers and editors see: stubs that are current, clean programs, and mistakes that are found."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "typing"


def test_stubs_are_current():
    done = subprocess.run(
        [sys.executable, "tools/write_stubs.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> list[str]:
    """What mypy says of the programs, strictly."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    command += ["--config-file=", f"--cache-dir={tmp_path_factory.mktemp('mypy')}", "--warn-unused-ignores"]
    examples = [*ROOT.glob("examples/*.py"), *ROOT.glob("examples/gallery/*.py")]
    examples = [path for path in examples if path.name != "train_ray.py"]  # Ray's actors have no types
    command += ["--disable-error-code=untyped-decorator", "--scripts-are-modules"]
    # Packages that are not installed here are of no type.
    command += ["--disable-error-code=import-not-found", "--disable-error-code=import-untyped"]
    command += map(str, sorted([*PROGRAMS.glob("*.py"), *examples]))
    done = subprocess.run(command, cwd=PROGRAMS, capture_output=True, text=True, env=_environment())
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def _environment() -> dict[str, str]:
    return {**os.environ, "MYPYPATH": str(ROOT)}


def test_a_program_without_mistakes_is_clean(said):
    assert [line for line in said if line.startswith("uses.py")] == []


def test_the_examples_are_clean(said):
    assert [line for line in said if "examples" in line.split(":")[0] and ": note:" not in line] == []


def test_that_program_runs():
    runpy.run_path(str(PROGRAMS / "uses.py"))


def test_every_mistake_is_found(said):
    lines = (PROGRAMS / "misuses.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# mistake")}
    found = {int(line.split(":")[1]) for line in said if line.startswith("misuses.py") and ": error:" in line}
    assert found == wrong


def test_programs_of_documents_are_found():
    """`make types` shows them to pyright: each line at its place, without prompts, results and planned mistakes."""
    from tools.check_types import program_of

    text = "# T\n```python\nx = 1\n```\n1. a\n\n    ```python\n    >>> x + 1\n    2\n    ```\n"
    text += "```python\npytest.raises\n```\n"
    assert program_of(text).splitlines() == ["", "", "x = 1", "", "", "", "", "x + 1", "", "", "", "", ""]
