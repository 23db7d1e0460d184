"""Generators other than Threefry, and streams that are longer than its counter."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import purax
import purax.numpy
from purax import random
from purax.primitives.random import random_bits as ops
from tests.against_jax import ON_CPU, agree

KEY = np.array([3, 4294967290], np.uint32)
DRAWS = {
    "uniform": lambda r, key: r.uniform(key, (7, 3)),
    "normal": lambda r, key: r.normal(key, (20,)),
    "randint": lambda r, key: r.randint(key, (20,), 0, 10),
    "permutation": lambda r, key: r.permutation(key, 20),
    "bernoulli": lambda r, key: r.bernoulli(key, 0.3, (20,)),
}


@pytest.mark.parametrize("implementation", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("partitionable", [False, True])
def test_keys_of_the_engines_generator(implementation, partitionable):
    words = lambda r, key: np.asarray(r.key_data(key))  # noqa: E731
    with jax.threefry_partitionable(partitionable), purax.threefry_partitionable(partitionable):
        own, theirs = (r.key(7, impl=implementation) for r in (random, jax.random))
        assert random.key_impl(own) == implementation
        assert repr(own.dtype) == repr(theirs.dtype)
        np.testing.assert_array_equal(words(random, own), words(jax.random, theirs))
        for num in (2, (2, 3)):
            np.testing.assert_array_equal(
                words(random, random.split(own, num)), words(jax.random, jax.random.split(theirs, num))
            )
        for data in (0, 5, 4294967295):
            np.testing.assert_array_equal(
                words(random, random.fold_in(own, data)), words(jax.random, jax.random.fold_in(theirs, data))
            )


@pytest.mark.parametrize("implementation", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_the_engines_generator(implementation, name):
    with jax.threefry_partitionable(False):
        want = DRAWS[name](jax.random, jax.random.key(7, impl=implementation))
    have = DRAWS[name](random, random.key(7, impl=implementation))
    if not ON_CPU and have.dtype.kind == "f":
        agree(have, want, name, weak_types=False)
    else:
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_bits_of_the_engines_generator(dtype):
    want = jax.random.bits(jax.random.key(7, impl="rbg"), (3, 5), dtype)
    np.testing.assert_array_equal(random.bits(random.key(7, impl="rbg"), (3, 5), dtype), want)


def test_a_batch_of_such_keys_draws_what_each_of_them_draws():
    """Unlike in jax, where the first key of the batch draws for all."""
    keys = random.split(random.key(0, impl="rbg"), 3)
    want = np.stack([np.asarray(random.uniform(keys[i], (4,))) for i in range(3)])
    np.testing.assert_array_equal(purax.vmap(lambda key: random.uniform(key, (4,)))(keys), want)


def test_the_default_generator_is_a_setting():
    with purax.default_prng_impl("rbg"), jax.default_prng_impl("rbg"):
        key = random.PRNGKey(3)
        assert key.shape == (4,)
        np.testing.assert_array_equal(
            random.uniform(key, (5,)), jax.random.uniform(jax.random.PRNGKey(3), (5,))
        )
        assert random.key_impl(random.key(0)) == "rbg"
    with purax.config.override(enable_custom_prng=True):
        assert repr(random.PRNGKey(0).dtype) == "key<fry>"


@pytest.mark.parametrize("bit_width", [8, 16, 32, 64])
def test_streams_longer_than_the_counter(bit_width, monkeypatch):
    """A stream of more words than the counter tells apart is one of blocks with keys of their own, the last shorter."""
    limit, count = 5, 23
    words = -(-count * bit_width // 32)
    blocks = words // limit
    keys = np.asarray(ops.random_split(KEY, (blocks + 1,), False))
    sizes = [limit] * blocks + [words % limit]
    stream = np.concatenate(
        [np.asarray(ops.random_bits(k, 32, (n,), False)) for k, n in zip(keys, sizes, strict=True)]
    )
    if bit_width == 64:
        want = stream[:count].astype(np.uint64) << np.uint64(32) | stream[count:]
    else:
        want = stream.view(f"u{bit_width // 8}")[:count]
    monkeypatch.setattr(ops, "_MAX_WORDS", limit)
    have = np.asarray(ops.random_bits(KEY, bit_width, (count,), False))
    np.testing.assert_array_equal(have, want)
    np.testing.assert_array_equal(ops.random_bits(KEY, bit_width, (count, 1), False), want[:, None])


@pytest.mark.parametrize("count", [1 << 32, (1 << 32) + 2, 1 << 34])
def test_long_streams_are_cut_like_those_of_jax(count):
    """Seen in the types only: the arrays themselves would not fit into memory."""
    program = purax.make_jaxpr(lambda key: random.bits(key, (count,)))(KEY)
    sizes = [eqn.outvars[0].aval.shape for eqn in program.eqns if eqn.primitive.name == "random_bits"]
    limit = (1 << 32) - 1
    assert sizes == [(count // limit, limit), (count % limit,)]
    assert program.out_avals[0].shape == (count,)
    assert count == sum(map(math.prod, sizes))


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
def test_draws_of_nothing(implementation):
    key = purax.random.key(0, impl=implementation)
    assert purax.random.gamma(key, 0.5, (0, 3)).shape == (0, 3)
    assert purax.random.permutation(key, purax.numpy.zeros((0, 3))).shape == (0, 3)
    assert purax.random.permutation(key, purax.numpy.zeros((3, 0))).shape == (3, 0)
    draw = purax.jit(purax.vmap(lambda one: purax.random.normal(one, (2,))))
    assert draw(purax.random.split(key, 0)).shape == (0, 2)
