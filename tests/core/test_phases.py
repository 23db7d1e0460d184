"""Phases: what is measured is each second once, and nothing unless somebody listens."""

import random
import time

import numpy as np
import pytest

import purax as px
from purax.core import phases


def nested(rng: random.Random, depth: int) -> None:
    """Phases in one another, with time in between."""
    for _ in range(rng.randrange(1, 4)):
        with phases.phase(rng.choice(phases.PHASES)):
            time.sleep(0.0005)
            if depth and rng.random() < 0.7:
                nested(rng, depth - 1)


@pytest.mark.parametrize("seed", range(3))
def test_each_second_is_counted_once(seed):
    made: list[dict[str, float]] = []
    with phases.listening(lambda _, seconds: made.append(seconds)):
        start = time.perf_counter()
        nested(random.Random(seed), 3)
        total = time.perf_counter() - start
        phases.finish("program")
    assert 0.5 * total < sum(made[0].values()) <= total


def test_programs_say_what_they_took():
    totals = phases.Totals()
    outer = px.jit(lambda x: px.jit(px.numpy.sin)(x * 3.25) + 17.5)
    with phases.listening(totals):
        outer(np.ones(3, np.float32))
        outer(np.ones(3, np.float32))
    [(_, seconds)] = totals.programs  # the second call makes none, and what is inside belongs to it
    assert {"tracing", "analysis", "hashing", "passes", "lowering"} <= set(seconds)
    assert {"XLA", "loading"} & set(seconds)
    assert "1 program made" in totals.report() and all(name in totals.report() for name in seconds)


def test_phases_end_with_errors():
    made: list[str] = []
    with phases.listening(lambda program, _: made.append(program)):
        with pytest.raises(ZeroDivisionError):
            px.jit(lambda x: x * (1 // 0))(1.0)
        phases.finish("after")  # which none would hear of while a phase is open
    assert made == ["after"]
    assert not phases._listeners


def test_nobody_is_told_unless_somebody_listens():
    assert phases.phase("tracing") is phases.phase("XLA")
    phases.finish("unheard")
    assert not phases._state.seconds


def test_cache_misses_tell_phases(caplog):
    with px.explain_cache_misses(True):
        px.jit(lambda x: x - 31.5)(np.ones(3, np.float32))
    assert any("is ready to run after" in message and "tracing" in message for message in caplog.messages)
