"""A short run of interrupts at random moments; `interrupts.run` takes longer ones."""

from __future__ import annotations

from tests.fuzz import interrupts


def test_after_an_interrupt_everything_works():
    assert interrupts.failure(seed=2, count=4) is None
