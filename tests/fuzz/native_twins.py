"""The versions in C against those in Python, on programs that follow from seeds (`tests/core/twins.py`)."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.core.test_twins import outcomes


def run(seed: int) -> Iterator[str | None]:
    """Tries each generator with one seed after the other; yields what the two versions do not have in common."""
    for number in itertools.count(seed * 1000 + 1):
        with tempfile.TemporaryDirectory() as folder:
            in_c, in_python = outcomes(Path(folder), number)
        different = [
            f"# python tests/core/twins.py --seed {number} --only {ours[0]}, and the same with --python\n"
            f"# {ours[1]}\n# C:      {str(ours[2])[:200]}\n# Python: {str(theirs[2])[:200]}"
            for ours, theirs in zip(in_c, in_python, strict=True)
            if ours != theirs
        ]
        yield "\n".join(different[:20]) or None
