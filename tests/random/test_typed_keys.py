"""Arrays of typed keys behave as arrays: they are indexed, joined, passed to and returned from every transformation.

Each program runs with purax and with jax, and the words of the keys it returns must be the same.
"""

from __future__ import annotations

import copy
import pickle

import jax
import jax.numpy
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import random

pytestmark = pytest.mark.sampled(2)


def keys(p, num=3, seed=0):
    return p.random.split(p.random.key(seed), num)


def noisy_sum(p, x, key):
    return (x * p.random.normal(key, (3,))).sum()


# Programs of a library p (purax or jax) and its numpy n.
PROGRAMS = {
    "split": lambda p, n: keys(p),
    "one of them": lambda p, n: keys(p)[1],
    "a slice": lambda p, n: keys(p)[::-2],
    "some of them": lambda p, n: keys(p)[n.array([0, 2, 2])],
    "a mask": lambda p, n: keys(p)[np.array([True, False, True])],
    "iteration": lambda p, n: list(keys(p))[2],
    "reshape": lambda p, n: keys(p, 6).reshape(2, 3),
    "stack": lambda p, n: n.stack([p.random.key(0), p.random.key(1)]),
    "concatenate": lambda p, n: n.concatenate([keys(p), keys(p, 2, 1)]),
    "broadcast_to": lambda p, n: n.broadcast_to(keys(p), (2, 3)),
    "equal": lambda p, n: keys(p) == keys(p)[::-1],
    "not equal": lambda p, n: keys(p) != keys(p)[1],
    "where": lambda p, n: n.where(n.array([True, False, True]), keys(p), keys(p, 3, 1)),
    "transpose": lambda p, n: keys(p, (2, 3)).T,
    "swapaxes": lambda p, n: n.swapaxes(keys(p, (2, 3, 1)), 0, 1),
    "squeeze": lambda p, n: n.squeeze(keys(p, (2, 1)), 1),
    "newaxis": lambda p, n: keys(p)[:, None],
    "set": lambda p, n: keys(p).at[1].set(p.random.key(5)),
    "take": lambda p, n: n.take(keys(p), n.array([2, 0]), axis=0),
    "flip": lambda p, n: n.flip(keys(p)),
    "roll": lambda p, n: n.roll(keys(p), 1),
    "ravel": lambda p, n: keys(p, (2, 3)).ravel(),
    "repeat": lambda p, n: n.repeat(keys(p), 2),
    "tile": lambda p, n: n.tile(keys(p), 2),
    "array": lambda p, n: n.array(keys(p)),
    "device_put": lambda p, n: p.device_put(keys(p)),
    "choice": lambda p, n: p.random.choice(p.random.key(1), keys(p), (2,)),
    "rbg": lambda p, n: p.jit(lambda key: p.random.split(key, 3))(p.random.key(0, impl="rbg")),
    "from a traced seed": lambda p, n: p.jit(lambda seed: p.random.key(seed))(3),
    "unchanged": lambda p, n: p.jit(lambda key: (key, key))(p.random.key(0))[1],
    "a traced position": lambda p, n: p.jit(lambda i, ks: ks[i])(1, keys(p)),
    "a traced update": lambda p, n: p.jit(lambda i, ks: ks.at[i].set(p.random.key(9)))(1, keys(p)),
    "captured": lambda p, n: (lambda key: p.jit(lambda s: p.random.normal(key, (3,)) * s)(2.0))(
        p.random.key(7)
    ),
    "donated": lambda p, n: p.jit(lambda key: p.random.split(key)[0], donate_argnums=0)(p.random.key(0)),
    "vmap": lambda p, n: p.vmap(lambda key, x: p.random.normal(key, (3,)) * x)(keys(p), n.arange(3.0)),
    "vmap over axis 1": lambda p, n: p.vmap(lambda ks: ks[0], in_axes=1)(keys(p, (2, 4))),
    "vmap makes keys": lambda p, n: p.vmap(lambda i: p.random.fold_in(p.random.key(0), i))(n.arange(3)),
    "vmap of split": lambda p, n: p.vmap(p.random.split)(keys(p)),
    "scan over keys": lambda p, n: p.lax.scan(
        lambda c, key: (c + p.random.normal(key), p.random.split(key)[0]), n.float32(0), keys(p, 5)
    )[1],
    "a long scan over keys": lambda p, n: p.lax.scan(
        lambda c, key: (c + p.random.normal(key), p.random.split(key)[0]), n.float32(0), keys(p, 300)
    )[1],
    "a key as carry": lambda p, n: p.lax.scan(
        lambda key, _: (p.random.split(key)[0], p.random.normal(key)), p.random.key(0), None, length=50
    )[0],
    "fori_loop": lambda p, n: p.lax.fori_loop(
        0, 60, lambda i, key: p.random.fold_in(key, i), p.random.key(0)
    ),
    "while_loop": lambda p, n: p.lax.while_loop(
        lambda c: c[0] < 60, lambda c: (c[0] + 1, p.random.fold_in(c[1], c[0])), (0, p.random.key(0))
    )[1],
    "cond": lambda p, n: p.jit(
        lambda yes, key: p.lax.cond(yes, lambda key: p.random.split(key)[0], lambda key: key, key)
    )(True, p.random.key(0)),
    "vmap of cond": lambda p, n: p.vmap(
        lambda yes, key: p.lax.cond(yes, lambda key: p.random.split(key)[0], lambda key: key, key)
    )(n.array([True, False, True]), keys(p)),
    "vmap of scan": lambda p, n: p.vmap(
        lambda key: p.lax.scan(
            lambda key, _: (p.random.split(key)[0], p.random.normal(key)), key, None, length=5
        )[1]
    )(keys(p)),
    "grad": lambda p, n: p.grad(lambda x, key: noisy_sum(p, x, key))(n.ones(3), p.random.key(0)),
    "grad of jit": lambda p, n: p.grad(p.jit(lambda x, key: noisy_sum(p, x, key)))(
        n.ones(3), p.random.key(0)
    ),
    "jit of grad": lambda p, n: p.jit(p.grad(lambda x, key: noisy_sum(p, x, key)))(
        n.ones(3), p.random.key(0)
    ),
    "vmap of grad": lambda p, n: p.vmap(p.grad(lambda x, key: noisy_sum(p, x, key)), (None, 0))(
        n.float32(2), keys(p)
    ),
    "checkpoint": lambda p, n: p.grad(p.checkpoint(lambda x, key: noisy_sum(p, n.sin(x), key)))(
        n.ones(3), p.random.key(0)
    ),
    "grad of a scan over keys": lambda p, n: p.grad(
        lambda x: p.lax.scan(lambda c, key: (c * x + p.random.normal(key), None), x, keys(p, 5))[0]
    )(n.float32(1.5)),
    "grad of a scan that carries a key": lambda p, n: p.grad(
        lambda x: p.lax.scan(
            lambda c, _: ((c[0] * x + p.random.normal(c[1]), p.random.split(c[1])[0]), None),
            (x, p.random.key(0)),
            None,
            length=5,
        )[0][0]
    )(n.float32(1.5)),
    "jvp": lambda p, n: p.jvp(
        lambda x: x * p.random.normal(p.random.key(0), (3,)), (n.ones(3),), (n.ones(3),)
    )[1],
}


def words(p, x):
    is_key = p.dtypes.issubdtype(x.dtype, p.dtypes.prng_key)
    return np.asarray(p.random.key_data(x) if is_key else x)


@pytest.fixture(scope="module", autouse=True)
def _same_stream():
    with jax.threefry_partitionable(False), px.threefry_partitionable(False):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_jax(name):
    program = PROGRAMS[name]
    own, theirs = program(px, jnp), program(jax, jax.numpy)
    assert str(own.dtype) == str(theirs.dtype) and own.shape == theirs.shape
    np.testing.assert_allclose(words(px, own), words(jax, theirs), rtol=2e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_under_jit(name):
    program = PROGRAMS[name]
    own, eager = px.jit(lambda: program(px, jnp))(), program(px, jnp)
    assert own.dtype == eager.dtype and own.shape == eager.shape
    np.testing.assert_allclose(words(px, own), words(px, eager), rtol=2e-6)


def test_are_kept_by_pickle_and_copy():
    given = random.split(random.key(3))
    for made in (
        pickle.loads(pickle.dumps(given)),
        copy.copy(given),
        copy.deepcopy(given),
        px.device_get(given),
    ):
        assert made.dtype == given.dtype and bool((made == given).all())


def test_permutation_moves_whole_keys():
    given = keys(px, 5)
    order = random.permutation(random.key(1), 5)
    assert bool((random.permutation(random.key(1), given) == given[order]).all())


def test_ahead_of_time():
    lowered = px.jit(random.split).lower(px.ShapeDtypeStruct((), random.key_dtype("threefry2x32")))
    assert lowered.out_info.dtype == random.key_dtype("threefry2x32") and lowered.out_info.shape == (2,)
    assert bool((lowered.compile()(random.key(0)) == random.split(random.key(0))).all())


REFUSED = {
    "arithmetic": (lambda key: key + 1, "does not mix"),
    "arithmetic under jit": (lambda key: px.jit(lambda key: key * 2)(key), "does not mix"),
    "a sum": (lambda key: jnp.sum(random.split(key)), "reduce_sum does not take"),
    "an order": (lambda key: key < key, "lt takes"),
    "a number": (lambda key: float(key), "key_data"),
    "NumPy": (lambda key: np.asarray(key), "key_data"),
    "a gradient": (lambda key: px.grad(lambda key: 1.0)(key), "floating point"),
    "a conversion": (lambda key: key.astype(int), "cannot convert"),
    "an addition in place": (lambda key: random.split(key).at[0].add(1), "only be updated by `set`"),
    "numbers as keys": (lambda key: random.split(key).at[0].set(3), "only be updated by `set`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_are_not_numbers(name):
    program, message = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=message):
        program(random.key(0))
