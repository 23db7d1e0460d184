"""Every file of tests is in a slice for other platforms than the CPU, or is left out for a reason that is given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.platforms import LEFT_OUT, SLICES, reason_for, slice_of

ROOT = Path(__file__).parents[1]
FILES = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]


def test_every_file_is_tried_or_left_out_for_a_reason():
    undecided = [path for path in FILES if slice_of(path) is None and reason_for(path) is None]
    assert not undecided, f"say in tests/platforms.py whether a GPU is tried by {undecided}"


def test_what_is_named_exists():
    used = {slice_of(path) for path in FILES} - {None}
    assert used == set(SLICES)
    reasons = {reason_for(path) for path in FILES if slice_of(path) is None}
    assert reasons == set(LEFT_OUT.values())


def test_a_platform_that_is_not_there_is_not_replaced_by_the_cpu():
    environment = {**os.environ, "TEST_PLATFORM": "rocm", "PURAX_PLATFORMS": "rocm,cpu"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--collect-only",
        "-p",
        "no:cacheprovider",
        "tests/test_scopes.py",
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 3 and "no rocm device to run the tests on" in done.stdout + done.stderr


def test_the_slices_are_listed_with_what_is_left_out():
    command = [sys.executable, "tools/test_on_platform.py", "cuda", "--list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "linear_algebra" in done.stdout and "left out: tests/sharding/*" in done.stdout
