"""Every call of the extensions in C that may fail for want of memory does so once (`faulty_calls.py`); odd operands.

What a crash would end is a process of its own.
"""

import os
import shutil
import subprocess
import sys

import pytest

import purax as px
import purax.numpy as jnp
from tests.xla.conftest import ROOT

bind = pytest.importorskip("purax.core._bind", reason="the extensions in C were not built")


def run(*arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler for extensions whose calls fail")
def test_every_call_may_fail(tmp_path):
    everything = os.environ.get("ALL_CASES", "0") not in ("", "0")
    run("tests/core/faulty_calls.py", str(tmp_path), *["--all"] * everything)


def test_arrays_that_were_not_made():
    array = type(jnp.ones(3)).__new__(type(jnp.ones(3)))
    for operation in (
        lambda: array + array, lambda: array + 1.0, lambda: 2 * array, lambda: jnp.ones(3) - array, lambda: array[0],
        lambda: array.T, lambda: array.reshape(-1), lambda: array == 1, lambda: px.jit(lambda x: x)(array),
        lambda: px.grad(lambda x: x * array)(1.0), lambda: px.vmap(lambda x: x * array)(jnp.ones(3)),
    ):  # fmt: skip
        with pytest.raises((AttributeError, TypeError)):
            operation()
