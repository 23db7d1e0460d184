"""`explain_cache_misses` says what differs from the nearest call that was traced, and `log_compiles` what is
compiled."""

from __future__ import annotations

import logging

import pytest

import purax
import purax.numpy as jnp


def function(x, n=1, *, options=None):
    return x * n


@pytest.fixture
def messages(caplog):
    """What was logged since the last time it was asked for, but for what first calls took."""

    def take():
        texts = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return [text for text in texts if "is ready to run after" not in text]

    with caplog.at_level(logging.WARNING, "purax"):
        yield take


def calls(f):
    """Pairs of a call and the words that explain why it is traced."""
    with_tree = {"w": jnp.ones(2), "b": 1.0}
    yield lambda: f(jnp.ones(3)), ["traced for the first time"]
    yield lambda: f(jnp.ones(4)), ["argument x: f32[3] -> f32[4]"]
    yield lambda: f(jnp.ones(4, int)), ["argument x: f32[4] -> i32[4]"]
    yield lambda: f(jnp.ones(4), 2), ["static argument n was not given before"]
    yield lambda: f(jnp.ones(4), 3), ["static argument n: 2 -> 3"]
    yield lambda: f(2), ["argument x", "-> i32[] (weak: a Python number)"]
    yield lambda: f(jnp.ones(3), options=with_tree), ["the structure of the arguments", "'options'"]
    changed = {"w": jnp.ones(5), "b": 1.0}
    yield lambda: f(jnp.ones(3), options=changed), ["argument options['w']: f32[2] -> f32[5]"]


def test_says_what_differs(messages):
    f = purax.jit(function, static_argnums=1)
    with purax.explain_cache_misses():
        for call, words in calls(f):
            call()
            (text,) = messages()
            assert "`function`" in text and "test_cache_misses.py" in text
            for word in words:
                assert word in text, text
            call()
            assert messages() == []
        with purax.numpy_rank_promotion("raise"):
            f(jnp.ones(3))
        (text,) = messages()
        assert "the flag numpy_rank_promotion: 'allow' -> 'raise'" in text
        purax.vmap(lambda x: f(x), axis_name="i")(jnp.ones((2, 3)))
        (text,) = messages()
        assert "the named axes in scope: none -> {'i': 2}" in text


def test_new_functions_with_the_same_code(messages):
    with purax.explain_cache_misses():
        for _ in range(2):
            purax.jit(lambda x: x + 1)(1.0)
    first, second = messages()
    assert "first time" in first and "new function object" in second


def test_says_what_a_first_call_took(caplog):
    f = purax.jit(lambda x: x - 11)
    with caplog.at_level(logging.WARNING, "purax"), purax.explain_cache_misses():
        f(jnp.ones(3))
        (told,) = [r.getMessage() for r in caplog.records if "is ready to run after" in r.getMessage()]
        assert all(f"{phase} " in told for phase in ("tracing", "hashing", "lowering")) and "`<lambda>`" in told
        caplog.clear()
        f(jnp.ones(3))
        assert not caplog.records


def test_quiet_by_default_and_log_compiles(messages):
    purax.jit(lambda x: x - 12)(jnp.ones(3))
    assert messages() == []
    with purax.log_compiles():
        purax.jit(lambda x: x - 13)(jnp.ones(3))
    texts = messages()
    assert any(text.startswith("traced <lambda> in ") for text in texts)
    assert any(text.startswith("compiled") for text in texts)
