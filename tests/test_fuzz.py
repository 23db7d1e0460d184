"""The command `make fuzz` finds what is planted, and a short run of each generator finds nothing."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import generators, tried_for

ROOT = Path(__file__).parents[1]
PLANTED = {
    "sound": "def run(seed):\n    while True:\n        yield None\n",
    "wrong": "def run(seed):\n    yield from (f'assert {seed} + 1 == {seed}', None, 'assert False')\n",
    "broken": "def run(seed):\n    yield undefined_name\n",
    "shared": "HELPER = 1\n",
    "endless": (
        "import itertools\nfrom tests.fuzz import _progress\n"
        "def run(seed):\n"
        "    for number in itertools.count():\n"
        "        _progress.trying(f'endless({seed})')\n"
        "        while number == 2:\n            pass\n"
        "        yield None\n"
    ),
    "crashing": (
        "import os\nfrom tests.fuzz import _progress\n"
        "def run(seed):\n"
        "    for number in range(3):\n        yield None\n"
        "    _progress.trying(f'print({seed})  # the program')\n    os.abort()\n"
    ),
}


def fuzz(folder: Path, *arguments: str) -> tuple[int, str]:
    package = folder / "planted"
    package.mkdir(exist_ok=True)
    for name, text in PLANTED.items():
        (package / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "tests.fuzz", "--package", "planted", "--seconds", "1", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_failures_are_printed_as_programs(tmp_path):
    status, text = fuzz(tmp_path, "--seed", "7", "--only", "sound,wrong")
    assert status == 1
    assert "assert 7 + 1 == 7\n" in text and "assert False\n" in text
    assert "wrong: 2 failures, 3 programs" in text and "sound: 0 failures" in text


def test_a_generator_that_fails_is_a_failure(tmp_path):
    status, text = fuzz(tmp_path, "--only", "broken,sound")
    assert status == 1 and "undefined_name" in text and "broken: 1 failures" in text


def test_a_program_that_does_not_end_is_a_failure(tmp_path):
    status, text = fuzz(tmp_path, "--only", "endless", "--longest", "0.3", "--seed", "5")
    assert status == 1
    assert "# takes longer than 0.3 s\nendless(5)\n" in text and "endless(1000008)\n" in text
    assert re.search(r"endless: \d+ failures, \d+ programs", text)


def test_nothing_found(tmp_path):
    assert fuzz(tmp_path, "--only", "sound")[0] == 0


def test_workers_are_merged(tmp_path):
    report = tmp_path / "report"
    status, text = fuzz(
        tmp_path, "--only", "wrong,sound", "--workers", "2", "--seed", "3", "--report", str(report)
    )
    assert status == 1
    assert "assert 3000 + 1 == 3000\n" in text and "assert 3001 + 1 == 3001\n" in text
    assert "wrong: 4 failures, 6 programs" in text and "sound: 0 failures" in text
    assert report.read_text().count("assert False\n") == 2


def test_a_worker_that_dies_is_a_failure_with_its_program(tmp_path):
    status, text = fuzz(tmp_path, "--only", "crashing", "--workers", "2")
    assert status == 1
    assert "died of signal 6" in text and "print(0)  # the program" in text and "print(1)  # the" in text


def test_an_unknown_generator(tmp_path):
    status, text = fuzz(tmp_path, "--only", "sound,missing")
    assert status == 2 and "no generator missing" in text and "shared" not in text


@pytest.mark.parametrize("name", generators())
def test_a_short_run_finds_nothing(name):
    # A bounded number: the same programs on every machine, unless it is too slow for all of them.
    tried = list(itertools.islice(tried_for(generators()[name], 0, 5.0), 25))
    failures = [found for found in tried if found is not None]
    assert tried and not failures, "\n\n".join(failures)
