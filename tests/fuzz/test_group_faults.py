"""A short run of random strangers; `group_faults.run` takes longer ones, and kills and stops processes."""

from __future__ import annotations

import pytest

from tests.distributed.groups import Ended
from tests.fuzz import group_faults


@pytest.mark.parametrize("number", [1, 2])
def test_strangers(number):
    assert group_faults.try_strangers(number) is None


@pytest.mark.parametrize(
    ("errors", "victim", "expected"),
    [
        ("purax.errors.ProcessLostError: process 1 (here, process id 7) is lost: it was killed.", 1, True),
        ("purax.errors.ProcessLostError: process 1 (here, process id 7) is lost: it was killed.", 0, False),
        ("RuntimeError: of 3 processes only 2 came within 20 s; missing: process 2", 2, True),
        ("purax.errors.ProcessLostError: the coordinator of the group is lost", -1, True),
        ("*** Check failure stack trace: ***\n  @ coordinator", -1, False),
        ("", 1, False),
    ],
)
def test_what_counts_as_naming_who_was_lost(errors, victim, expected):
    assert group_faults._is_named(Ended(1, "", errors).errors, victim) is expected
