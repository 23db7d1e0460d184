"""Generators that users define take part in everything that keys do."""

from __future__ import annotations

import pickle

import pytest

import purax as px
import purax.numpy as jnp
from purax.random.custom_implementations import IMPLEMENTATIONS, define_prng_impl


@pytest.fixture(scope="module")
def counter():
    made = define_prng_impl(
        key_shape=(1,),
        seed=lambda seed: jnp.asarray(seed).astype("uint32").reshape(1),
        split=lambda key, shape: (
            key + 1 + jnp.arange(jnp.zeros(shape).size, dtype="uint32").reshape(*shape, 1)
        ),
        random_bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
        fold_in=lambda key, data: key + jnp.asarray(data, "uint32"),
        name="counter for tests",
        tag="cnt",
    )
    yield made
    del IMPLEMENTATIONS[made.name]  # messages list them


def test_keys_of_an_own_generator(counter):
    key = px.random.key(7, impl=counter)
    assert str(key.dtype) == "key<cnt>" and px.random.key_data(key).tolist() == [7]
    assert px.random.bits(key, (2,)).tolist() == [7, 7]
    assert px.random.key_data(px.random.fold_in(key, 5)).tolist() == [12]
    keys = px.random.split(key, 3)
    assert px.random.key_data(keys).tolist() == [[8], [9], [10]]
    assert px.random.key_data(px.random.split(key, (2, 2))).shape == (2, 2, 1)
    assert px.vmap(lambda k: px.random.bits(k, (2,)))(keys).tolist() == [[8, 8], [9, 9], [10, 10]]
    assert px.jit(lambda k: px.random.bits(k))(key) == 7
    assert px.random.key_data(px.vmap(lambda k: px.random.split(k, 2))(keys)).shape == (3, 2, 1)
    assert 0 <= float(px.random.uniform(key)) < 1
    assert pickle.loads(pickle.dumps(key.dtype)) == key.dtype


def test_a_key_that_is_no_vector_is_refused():
    with pytest.raises(NotImplementedError, match=r"key_shape must be \(n,\)"):
        define_prng_impl(key_shape=(2, 2), seed=None, split=None, random_bits=None, fold_in=None)  # type: ignore[arg-type]
