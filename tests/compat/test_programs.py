"""JAX programs run as they are: each file in programs/ is run by `purax run` and must print what lies beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
VARIABLES = {"settings": {"JAX_ENABLE_X64": "1", "JAX_NUMPY_RANK_PROMOTION": "raise"}}


def run(*words: str, cwd: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with purax on its path."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=cwd, env=environment, timeout=120
    )


@pytest.mark.parametrize("name", sorted(file.stem for file in PROGRAMS.glob("*.py")))
def test_a_program_prints_what_it_should(name):
    done = run("-m", "purax", "run", f"{name}.py", cwd=str(PROGRAMS), **VARIABLES.get(name, {}))
    assert done.returncode == 0, done.stderr
    assert done.stdout == (PROGRAMS / f"{name}.txt").read_text()
    assert done.stderr == ""
