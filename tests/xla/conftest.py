"""Small StableHLO programs, and Python processes of their own for what a process can do only once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from purax.config import config
from purax.xla import client, compiler
from purax.xla.execute import BufferType

ROOT = Path(__file__).parents[2]


def _increment(size: int, amount: float = 1.0, name: str = "increment", attribute: str = "") -> str:
    braces = f" {{{attribute}}}" if attribute else ""
    return f"""module @{name} {{
  func.func public @main(%x: tensor<{size}xf32>{braces}) -> tensor<{size}xf32> {{
    %c = stablehlo.constant dense<{amount!r}> : tensor<{size}xf32>
    %y = stablehlo.add %x, %c : tensor<{size}xf32>
    return %y : tensor<{size}xf32>
  }}
}}"""


@pytest.fixture
def increment_text() -> Callable[..., str]:
    """The text of x + amount, for f32 vectors of a size."""
    return _increment


@pytest.fixture
def device():
    """The first CPU device."""
    return client.devices("cpu")[0]


@pytest.fixture
def vector_type() -> Callable[[int], BufferType]:
    """The type of a f32 vector."""
    return lambda size: BufferType((size,), np.dtype(np.float32))


@pytest.fixture
def cache_folder(tmp_path):
    """A cache folder of the test's own, in which every compiled program is kept."""
    folder = tmp_path / "cache"
    with config.override(
        compilation_cache_dir=str(folder),
        enable_compilation_cache=True,
        persistent_cache_min_compile_time_secs=0.0,
    ):
        compiler.clear_memory()
        compiler.stats.reset()
        yield folder
    compiler.clear_memory()


@pytest.fixture
def start_python() -> Callable[..., subprocess.Popen]:
    """Start a Python process on some code, with the repository on its path."""
    started: list[subprocess.Popen] = []

    def start(code: str, **environment: str | None) -> subprocess.Popen:
        variables = {**os.environ, "PYTHONPATH": str(ROOT)} | environment
        variables = {name: value for name, value in variables.items() if value is not None}
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture
def run_python(start_python) -> Callable[..., str]:
    """Run code in a fresh Python process; return what it printed, or fail with what it complained about."""

    def run(code: str, **environment: str | None) -> str:
        process = start_python(code, **environment)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, f"the process ended with {process.returncode}:\n{errors[-3000:]}"
        return output.strip()

    return run
