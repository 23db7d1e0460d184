"""The stateful generator and LSTM networks give what jax's give."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.experimental import rnn
from purax.experimental.random import stateful_rng

jax = pytest.importorskip("jax")


DRAWS = {
    "random": lambda g: g.random(3),
    "uniform": lambda g: g.uniform(1, 3, (2,)),
    "normal": lambda g: g.normal(2.0, 3.0, 4),
    "normal of arrays": lambda g: g.normal(np.arange(3, dtype=np.float32), 1),
    "integers": lambda g: g.integers(5, size=4),
    "narrow integers": lambda g: g.integers(3, dtype="uint8", size=2),
    "half": lambda g: g.normal(dtype="float16"),
    "spawned": lambda g: g.spawn(2)[1].uniform(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_jax(name):
    from jax.experimental import random as theirs

    with px.threefry_partitionable(True):
        mine, other = stateful_rng(42), theirs.stateful_rng(42)
        for _ in range(2):  # the second draw is another
            np.testing.assert_allclose(DRAWS[name](mine), DRAWS[name](other), rtol=1e-6, atol=1e-6)


def test_a_generator_keeps_its_state_through_transformations():
    with px.threefry_partitionable(True):
        rng, twin = stateful_rng(0), stateful_rng(0)
        draw = px.jit(lambda g: g.uniform())
        assert [float(draw(rng)) for _ in range(3)] == [float(twin.uniform()) for _ in range(3)]
        many = stateful_rng(1).split(3)
        apart = px.vmap(lambda g: g.normal())(many)
        assert len({float(x) for x in apart}) == 3
        with pytest.raises(ValueError, match="cannot operate on split stateful generator"):
            many.key()
    with pytest.raises(TypeError, match="requires an explicit seed"):
        px.jit(lambda: stateful_rng().uniform())()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_is_that_of_jax(layers, bidirectional):
    from jax.experimental import rnn as theirs

    sizes = (3, 4, layers, bidirectional)
    states = layers * (2 if bidirectional else 1)
    generator = np.random.default_rng(0)
    weights = generator.normal(size=rnn.get_num_params_in_lstm(*sizes)).astype(np.float32) * 0.3
    x = generator.normal(size=(2, 6, 3)).astype(np.float32)
    h, c = generator.normal(size=(2, states, 2, 4)).astype(np.float32)
    lengths = np.array([6, 4])
    assert theirs.get_num_params_in_lstm(*sizes) == weights.size
    np.testing.assert_array_equal(
        rnn.swap_lstm_gates(weights, *sizes), theirs.swap_lstm_gates(weights, *sizes)
    )

    def by_jax(w):
        parts = theirs.unpack_lstm_weights(w, *sizes)
        return theirs.lstm_ref(x, h, c, *parts, lengths, *sizes[:3], 0.0, bidirectional)

    def by_purax(w):
        return rnn.lstm(*map(jnp.asarray, (x, h, c)), w, jnp.asarray(lengths), *sizes[:3], 0.0, bidirectional)

    for mine, other in zip(by_purax(jnp.asarray(weights)), by_jax(weights), strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-6)
    gradient = px.grad(lambda w: (by_purax(w)[0] ** 2).sum())(jnp.asarray(weights))
    wanted = jax.grad(lambda w: (by_jax(w)[0] ** 2).sum())(weights)
    np.testing.assert_allclose(gradient, wanted, atol=2e-5)


def test_backward_rule_and_dropout_of_lstm():
    sizes, h = (3, 4, 1), jnp.zeros((1, 2, 4))
    weights = rnn.init_lstm_weight(px.random.key(0), 3, 4, 1, False)
    x, lengths = jnp.ones((2, 5, 3)), jnp.array([5, 3])
    results, kept = rnn.lstm_fwd(x, h, h, weights, lengths, *sizes, 0.0, False, None)
    ones = tuple(jnp.ones_like(y) for y in results)
    by_rule = rnn.lstm_bwd(*sizes, 0.0, False, None, kept, ones)
    run = lambda x, h, c, w: rnn.lstm(x, h, c, w, lengths, *sizes, 0.0, False)  # noqa: E731
    for mine, other in zip(by_rule[:4], px.vjp(run, x, h, h, weights)[1](ones), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-6)
    assert by_rule[4] is None
    with pytest.raises(ValueError, match="dropout=0.5 would need a random key"):
        rnn.lstm(x, h, h, weights, lengths, *sizes, 0.5, False)
