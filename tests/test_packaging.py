"""What a build says of itself: with native code or without, and for which Pythons wheels are made.

`make wheel` builds a wheel and tries it where there is no compiler; that takes minutes, and these tests take a second.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize(
    "environment, reason",
    [
        ({"PURAX_PURE_PYTHON": "1"}, "PURAX_PURE_PYTHON=1"),
        ({"CC": "false"}, "the C compiler false does not work"),
        ({"CC": "no-such-compiler"}, "no C compiler: .*no-such-compiler"),
    ],
)
def test_a_build_of_python_alone_says_so_in_one_line(environment, reason):
    pytest.importorskip("setuptools", minversion="77")
    command = [sys.executable, "setup.py", "--quiet", "--name"]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("purax:")]
    assert re.fullmatch(f"purax: built without native code, so that calls and sorts take longer: {reason}.*", line)


def test_wheels_are_made_for_the_pythons_that_are_named():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    built = PROJECT["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-*" for version in named]


def test_the_package_says_where_it_is_at_home():
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(PROJECT["project"]["urls"])
    assert PROJECT["project"]["authors"]


def test_kernels_may_need_no_newer_glibc_than_jaxlib():
    """The tag that jaxlib's wheels for Linux have is asked of ours."""
    tags = re.findall(r"manylinux_2_(\d+)", importlib.metadata.distribution("jaxlib").read_text("WHEEL") or "")
    if not tags:
        pytest.skip("jaxlib is not from a wheel for Linux")
    (asked,) = re.findall(r"manylinux_2_(\d+)_", PROJECT["tool"]["cibuildwheel"]["linux"]["repair-wheel-command"])
    assert int(asked) <= max(map(int, tags))
