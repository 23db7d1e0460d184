"""A short run of random captured state; `captured_state.run` takes longer ones."""

from __future__ import annotations

import random

import pytest

from tests.fuzz import captured_state


@pytest.mark.parametrize("kind", captured_state.KINDS)
def test_every_kind_of_state_is_seen_to_change(kind):
    """Each way to read a kind of state, in a few random places and nestings."""
    rng = random.Random(kind)
    state = captured_state.KINDS[kind]
    for read in state.reads[:4]:
        only = state._replace(reads=(read,))
        program = captured_state.generate(rng, only)
        assert captured_state.failure(program) is None
