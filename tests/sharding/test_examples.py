"""The examples over eight devices give the losses of one device; each checks itself, and says what it communicates."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The examples ask for their devices themselves. Little time goes into code that runs three steps.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "PURAX_CHECK_JAXPRS": "0",
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
}


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "train_transformer_parallel",
            [r"one device: loss (\S+) -> (\S+)", *(rf" +{kind}: loss \1 -> \2, differs by .*; a step has [1-9].*"
             for kind in ("data-parallel", "tensor-parallel", "both"))],
        ),
        (
            "pipeline",
            [r"one device: loss (\S+) -> (\S+)", r"8 stages:   loss \1 -> \2, differs by .*",
             r"  collective-permute of 512 bytes .* 23 times a step", r"  all-reduce of .*",
             r"  collective-permute of 512 bytes .* 23 times a step"],
        ),
    ],
)  # fmt: skip
def test_parallel_training_gives_the_same_losses(name, lines):
    done = subprocess.run(
        [sys.executable, f"examples/{name}.py", "--steps=3"],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.fullmatch("\n".join(lines), done.stdout.strip()), done.stdout
    first, last = re.search(lines[0], done.stdout).groups()
    assert float(last) < float(first)


def test_meshes_larger_than_the_machine_are_planned():
    """Sixteen devices: data-parallel in one collective; with the model cut, less memory for parameters."""
    done = subprocess.run(
        [sys.executable, "examples/plan_meshes.py", "--devices=16", "--layers=1"],
        cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[:4] for row in rows] == [
        ["16", "x", "1", "1"],
        ["4", "x", "4", "5"],
        ["1", "x", "16", "4"],
    ], done.stdout
    assert int(rows[0][6]) > 2 * int(rows[1][6]) > 2 * int(rows[2][6])
