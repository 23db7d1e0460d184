"""Libraries written for JAX, used as they are.

`purax run` runs each file in programs/, which checks what it computes. The examples run on jax and on purax, at the
same time, and must print the same numbers. All run in processes of their own, since jax itself may be imported here.
Without a library (the extras `libraries` and `more-libraries`) its tests are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "libraries"
NEEDS = {
    "use_optax": ("optax",),
    "use_linen": ("flax", "optax"),
    "use_nnx": ("flax", "optax"),
    "use_nnx_mutable": ("flax",),
    "use_equinox": ("equinox",),
    "use_einops_and_jaxtyping": ("einops", "jaxtyping"),
    "use_orbax": ("orbax.checkpoint",),
    "use_haiku": ("haiku", "optax"),
    "use_distrax": ("distrax",),
    "use_blackjax": ("blackjax",),
    "use_numpyro": ("numpyro",),
    "use_lineax_and_optimistix": ("lineax", "optimistix"),
    "use_diffrax": ("diffrax", "optimistix"),
    "use_tinygp": ("tinygp",),
    "use_jaxopt": ("jaxopt",),
    "use_tfp": ("tensorflow_probability",),
    "use_dynamax": ("dynamax",),
    "use_e3nn": ("e3nn_jax",),
    "use_brax": ("brax",),
    "use_gymnax": ("gymnax",),
    "use_pgx": ("pgx",),
    "use_mctx": ("mctx",),
    "use_evosax": ("evosax",),
    "use_keras": ("keras",),
    "use_scipy_array_api": ("scipy",),
    "use_sklearn_array_api": ("sklearn",),
    "use_mjx": ("mujoco.mjx",),
    "use_ott": ("ott",),
    "use_jraph": ("jraph",),
    "use_jax_md": ("jax_md",),
    "use_penzai": ("penzai",),
    "use_grain": ("grain",),
    "use_safetensors": ("safetensors.flax", "flax"),
}
EXAMPLE_NEEDS = {
    "digits_equinox": ("equinox", "optax", "sklearn"),
    "digits_linen": ("flax", "optax", "sklearn"),
    "digits_nnx": ("flax", "optax", "sklearn"),
    "digits_nnx_mlp": ("flax", "optax", "sklearn"),
    "neural_ode": ("diffrax", "equinox", "optax"),
    "regression_numpyro": ("numpyro", "sklearn"),
    "checkpoint_orbax": ("flax", "optax", "orbax.checkpoint", "sklearn"),
}
# Programs whose libraries are always there, which only `make libraries` runs.
LONGER = ("use_scipy_array_api", "use_sklearn_array_api")
# The examples of every test run; `make libraries` runs all of them.
QUICK = ("digits_nnx_mlp", "checkpoint_orbax")
# One in the last digit printed; the means of a chain of NUTS differ by the error of sampling, since rounding does.
TOLERANCES = {"regression_numpyro": 0.021}


def missing(needs: tuple[str, ...]) -> list[str]:
    def is_there(name: str) -> bool:
        try:
            return importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            return False

    return [name for name in needs if not is_there(name)]


def skip_without(needs: tuple[str, ...]) -> None:
    if missing(needs):
        pytest.skip(
            f"{', '.join(missing(needs))} not installed: pip install 'purax[libraries,more-libraries]'"
        )


def start(*words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("XLA_FLAGS", None)  # one device, unless the program says otherwise
    return subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(process: subprocess.Popen[str]) -> str:
    try:
        printed, errors = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, errors
    return printed


def test_every_program_says_what_it_needs():
    assert {file.stem for file in PROGRAMS.glob("*.py")} == set(NEEDS)
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(EXAMPLE_NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_a_library_works_as_it_is(name):
    skip_without(NEEDS[name])
    if name in LONGER and "ALL_EXAMPLES" not in os.environ:
        pytest.skip("one of the longer programs: make libraries")
    assert finish(start("-m", "purax", "run", str(PROGRAMS / f"{name}.py"))).endswith("done\n")


@pytest.mark.parametrize("name", EXAMPLE_NEEDS)
def test_an_example_prints_the_same_on_jax_and_on_purax(name):
    skip_without((*EXAMPLE_NEEDS[name], "jax"))
    if name not in QUICK and "ALL_EXAMPLES" not in os.environ:
        pytest.skip("one of the longer examples: make libraries")
    file = str(EXAMPLES / f"{name}.py")
    on_jax, on_purax = start(file), start("-m", "purax", "run", file)
    (words, numbers), (expected_words, expected) = map(parse, (finish(on_purax), finish(on_jax)))
    assert words == expected_words and len(numbers) > 3
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=TOLERANCES.get(name, 1.01e-4))


def parse(printed: str) -> tuple[list[str], list[float]]:
    """What stands between the numbers, and the numbers."""
    number = r"-?\d+\.?\d*"
    return re.split(number, printed), [float(x) for x in re.findall(number, printed)]
