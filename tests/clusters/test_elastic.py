"""A group that loses two of eight processes ends with exactly the losses of six that start from the same checkpoint."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from tests.distributed.groups import ROOT, environment

STEP = re.compile(r"step (\d+) with (\d+) devices, loss (\S+)")


def launch(count, folder, *more):
    command = [sys.executable, "-m", "purax", "launch", "-n", str(count), "--elastic"]
    example = [str(ROOT / "examples" / "train_elastic.py"), "--folder", str(folder), *map(str, more)]
    done = subprocess.run(command + example, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def steps(output, devices):
    return {int(step): loss for step, n, loss in STEP.findall(output) if int(n) == devices}


def test_two_of_eight_are_lost(tmp_path):
    launch(8, tmp_path / "a", "--steps", 20)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    disturbed = launch(8, tmp_path / "a", "--steps", 40, "--lose", 3, 5, "--at", 25)
    undisturbed = launch(6, tmp_path / "b", "--steps", 40)
    assert "going on with processes [0, 1, 2, 4, 6, 7]" in disturbed
    assert steps(disturbed, 6) == steps(undisturbed, 6)
    assert sorted(steps(disturbed, 6)) == list(range(20, 40))
