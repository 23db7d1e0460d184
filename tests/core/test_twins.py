"""The versions in C and those in Python, which say what they mean, give the same: tried with random programs."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from purax.core import primitive
from purax.execution import dispatch

ROOT = Path(__file__).parents[2]


def outcomes(tmp_path: Path, seed: int) -> list[list[list]]:
    """What came of each program, with the versions in C and without; the two run side by side."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = []
    for options in ([], ["--python"]):
        command = [sys.executable, str(Path(__file__).with_name("twins.py")), "--seed", str(seed), *options]
        with open(tmp_path / f"outcomes{len(options)}", "w") as file:
            process = subprocess.Popen(
                command, env=environment, stdout=file, stderr=subprocess.PIPE, text=True
            )
        running.append((process, Path(file.name)))
    for process, _ in running:
        error = process.communicate()[1]
        assert process.returncode == 0, error
    return [[json.loads(line) for line in file.read_text().splitlines()] for _, file in running]


@pytest.mark.skipif(
    primitive.native is None or dispatch.native is None, reason="the versions in C are not built"
)
def test_the_versions_in_c_and_in_python_give_the_same(tmp_path):
    in_c, in_python = outcomes(tmp_path, seed=0)
    assert len(in_c) == len(in_python)
    different = [
        f"{a[0]}: {a[1]}\n  C      {str(a[2])[:200]}\n  Python {str(b[2])[:200]}"
        for a, b in zip(in_c, in_python, strict=True)
        if a != b
    ]
    assert not different, f"{len(different)} differ:\n" + "\n".join(different[:20])
    for name, group in itertools.groupby(in_c, key=lambda line: line[0]):
        lines = list(group)
        succeeded = sum(line[2][0] != "error" for line in lines)
        assert succeeded > len(lines) / 5, f"most programs of `{name}` fail, so that they show little"
