"""Libraries written for JAX, used as they are: `purax run` runs each file in programs/, which checks what it computes.

They run in processes of their own, since jax itself may be imported here. Without the libraries (the extra `libraries`)
the tests are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "libraries"
NEEDS = {
    "use_optax": ("optax",),
    "use_linen": ("flax", "optax"),
    "use_nnx": ("flax", "optax"),
    "use_equinox": ("equinox",),
    "use_einops_and_jaxtyping": ("einops", "jaxtyping"),
}
# What the examples print on jax 0.10.2.
LOSSES = {"digits_equinox": ["2.2486", "2.0450", "1.6040", "1.0390"]}


def run(file: Path, needs: tuple[str, ...]) -> str:
    missing = [name for name in needs if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install purax[libraries]")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "purax", "run", str(file)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_program_says_what_it_needs():
    assert {file.stem for file in PROGRAMS.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_a_library_works_as_it_is(name):
    assert run(PROGRAMS / f"{name}.py", NEEDS[name]).endswith("done\n")


@pytest.mark.parametrize("name", LOSSES)
def test_an_example_has_the_losses_of_jax(name):
    printed = run(EXAMPLES / f"{name}.py", ("equinox", "optax", "sklearn"))
    assert [line.split()[-1] for line in printed.splitlines() if line.startswith("epoch")] == LOSSES[name]
