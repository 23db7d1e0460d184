"""`initialize()` without arguments under launchers and schedulers that are really running here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.clusters import slurm
from tests.distributed.groups import ROOT, environment

MEMBER = """
import numpy as np
import purax as px
from purax.sharding import NamedSharding, PartitionSpec as P
px.distributed.initialize()
mesh = px.make_mesh((px.device_count(),), ("data",))
x = px.device_put(np.arange(12.0), NamedSharding(mesh, P("data")))
total = float(px.jit(lambda x: (x * x).sum())(x))
print(f"process {px.process_index()} of {px.process_count()}: {total}", flush=True)
"""
LOSS = re.compile(r"step (\d+) loss (\S+)")


def said(output: str, count: int) -> bool:
    return all(f"process {i} of {count}: 506.0" in output for i in range(count))


def run(command: list[str], **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def losses(output: str) -> dict[int, str]:
    return {int(step): loss for step, loss in LOSS.findall(output)}


# -- Open MPI

needs_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed")


@needs_mpi
@pytest.mark.parametrize("count", [2, 4])
def test_open_mpi(count, tmp_path):
    script = tmp_path / "member.py"
    script.write_text(MEMBER)
    done = run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count), sys.executable, str(script)],
        env=environment(),
    )
    assert done.returncode == 0 and said(done.stdout, count), done.stdout + done.stderr


# -- Slurm


@pytest.fixture(scope="module")
def slurm_environment(tmp_path_factory):
    if not slurm.is_here():
        pytest.skip("Slurm's daemons and munge are not installed, or this is not root")
    with slurm.cluster(tmp_path_factory.mktemp("slurm")) as given:
        yield {**environment(), **{k: given[k] for k in ("SLURM_CONF", "PATH")}}


@pytest.mark.parametrize("count", [2, 4])
def test_srun(count, slurm_environment, tmp_path):
    script = tmp_path / "member.py"
    script.write_text(MEMBER)
    done = run(["srun", "-n", str(count), sys.executable, str(script)], env=slurm_environment)
    assert done.returncode == 0 and said(done.stdout, count), done.stdout + done.stderr


def submit(given: dict[str, str], folder: Path, name: str, steps: int) -> str:
    batch = folder / f"{name}.sh"
    train = ROOT / "examples" / "train_processes.py"
    arguments = f"--folder {folder / name} --steps {steps} --every 5"
    batch.write_text(f"#!/bin/sh\nsrun {sys.executable} {train} {arguments}\n")
    log = folder / f"{name}.log"
    options = ["-n", "2", "--requeue", "--open-mode=append", "-o", str(log), "-D", str(folder)]
    done = run(["sbatch", "--parsable", *options, str(batch)], env=given)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def wait_for(given: dict[str, str], log: Path, text: str, seconds: float = 120) -> str:
    deadline = time.monotonic() + seconds
    while text not in (found := log.read_text() if log.exists() else ""):
        queue = run(["squeue"], env=given).stdout
        assert time.monotonic() < deadline, f"{queue}\n{found}"
        time.sleep(0.3)
    return found


def test_a_job_that_is_killed_is_requeued_and_resumed(slurm_environment, tmp_path):
    """Two jobs side by side; one is requeued in the middle, and ends with the losses of the other."""
    jobs = {name: submit(slurm_environment, tmp_path, name, 60) for name in ("whole", "killed")}
    log = tmp_path / "killed.log"
    wait_for(slurm_environment, log, "step 20 loss")
    assert run(["scontrol", "requeue", jobs["killed"]], env=slurm_environment).returncode == 0
    found = wait_for(slurm_environment, log, "step 59 loss", 240)
    wait_for(slurm_environment, tmp_path / "whole.log", "step 59 loss", 240)
    assert found.count("process 0 of 2") == 2
    assert found.count("step 0 loss") == 1  # it went on after a checkpoint
    whole = losses((tmp_path / "whole.log").read_text())
    assert losses(found) == whole and sorted(whole) == list(range(60))
    assert jobs["whole"] != jobs["killed"] and os.path.exists(tmp_path / "whole")
