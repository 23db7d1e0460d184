"""The check that no key is used twice."""

from __future__ import annotations

import numpy as np
import pytest

import purax
from purax import random


@pytest.fixture(autouse=True)
def checked():
    with purax.config.override(debug_key_reuse=True):
        yield


@pytest.mark.parametrize("make", [random.PRNGKey, random.key])
@pytest.mark.parametrize("first", [random.split, random.normal, lambda key: random.permutation(key, 5)])
@pytest.mark.parametrize("second", [random.split, random.uniform])
def test_a_second_use_is_an_error(make, first, second):
    key = make(0)
    first(key)
    with pytest.raises(random.KeyReuseError, match="used already.*(Split|clone)"):
        second(key)


def test_the_error_says_where_the_first_use_was():
    key = random.key(0)
    random.normal(key)  # the first use
    with pytest.raises(random.KeyReuseError, match=r"`normal` at .*test_reuse.py:\d+"):
        random.uniform(key)


def test_clones_and_folds_are_new_keys():
    for key in (random.PRNGKey(0), random.key(0)):
        np.testing.assert_array_equal(random.normal(random.clone(key)), random.normal(key))
        assert random.uniform(random.fold_in(key, 1)) != random.uniform(random.fold_in(key, 2))


def test_split_keys_are_used_once_each():
    first, second = random.split(random.key(0))
    random.normal(first)
    random.normal(second)
    with pytest.raises(random.KeyReuseError):
        random.normal(first)


def test_the_check_sees_traced_keys():
    def twice(key):
        return random.normal(key) + random.normal(key)

    for transform in (purax.jit, lambda f: purax.vmap(f), lambda f: purax.jit(purax.vmap(f))):
        key = random.split(random.key(0), 3)
        with pytest.raises(random.KeyReuseError):
            transform(twice if transform is not purax.jit else lambda key: twice(key[0]))(key)


def test_many_traced_keys_are_forgotten(monkeypatch):
    from purax.random import reuse

    monkeypatch.setattr(reuse, "_MAX_TRACED", 20)
    before = len(reuse._used)
    for seed in range(5):
        purax.vmap(lambda key: [random.bits(k) for k in random.split(key, 30)])(
            random.split(random.PRNGKey(seed), 2)
        )
    assert len(reuse._used) < before + 75


def test_the_check_is_off_by_default():
    with purax.config.override(debug_key_reuse=False):
        key = random.key(0)
        assert random.normal(key) == random.normal(key)
