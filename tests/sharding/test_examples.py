"""The examples over eight devices give the losses of one device; each checks itself, and says what it communicates."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("XLA_FLAGS", None)  # the examples ask for their devices themselves
    done = subprocess.run(
        [sys.executable, f"examples/{name}.py", "--steps=3"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.fullmatch("\n".join(lines), done.stdout.strip()), done.stdout
    first, last = re.search(lines[0], done.stdout).groups()
    assert float(last) < float(first)
