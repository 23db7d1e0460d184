"""Haiku: parameters and state of transformed functions, recurrent networks, attention, training."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

x = jax.random.normal(jax.random.PRNGKey(0), (16, 6))
y = jnp.sum(x**2, 1, keepdims=True)


def network(x, training):
    x = hk.Linear(32, name="first")(x)
    x = hk.BatchNorm(True, True, 0.9)(x, training)
    x = hk.LayerNorm(-1, True, True)(jax.nn.relu(x))
    if training:
        x = hk.dropout(hk.next_rng_key(), 0.1, x)
    calls = hk.get_state("calls", (), jnp.int32, init=jnp.zeros)
    hk.set_state("calls", calls + 1)
    return hk.nets.MLP([16, 1])(x)


model = hk.transform_with_state(network)
parameters, state = model.init(jax.random.PRNGKey(1), x, True)
assert parameters["first"]["w"].shape == (6, 32) and "mlp/~/linear_1" in parameters
optimizer = optax.adam(1e-2)
moments = optimizer.init(parameters)


@jax.jit
def step(parameters, state, moments, key):
    def loss(parameters):
        predicted, new = model.apply(parameters, state, key, x, True)
        return jnp.mean((predicted - y) ** 2), new

    (value, new), gradient = jax.value_and_grad(loss, has_aux=True)(parameters)
    updates, moments = optimizer.update(gradient, moments)
    return optax.apply_updates(parameters, updates), new, moments, value


losses = []
for key in jax.random.split(jax.random.PRNGKey(2), 60):
    parameters, state, moments, value = step(parameters, state, moments, key)
    losses.append(float(value))
assert losses[-1] < 0.3 * losses[0], losses
assert int(state["~"]["calls"]) == 60


def recurrent(sequence):
    core = hk.DeepRNN([hk.LSTM(5), hk.GRU(4)])
    return hk.dynamic_unroll(core, sequence, core.initial_state(2))[0]


def unrolled(sequence):
    core = hk.DeepRNN([hk.LSTM(5), hk.GRU(4)])
    return hk.static_unroll(core, sequence, core.initial_state(2))[0]


sequence = jax.random.normal(jax.random.PRNGKey(3), (7, 2, 3))
looped, written_out = (hk.without_apply_rng(hk.transform(f)) for f in (recurrent, unrolled))
weights = looped.init(jax.random.PRNGKey(4), sequence)
np.testing.assert_allclose(
    jax.jit(looped.apply)(weights, sequence), written_out.apply(weights, sequence), rtol=1e-5, atol=1e-6
)
gradient = jax.grad(lambda w: jnp.sum(looped.apply(w, sequence) ** 2))(weights)
assert jax.tree.structure(gradient) == jax.tree.structure(weights)


def transformer(tokens):
    h = hk.Embed(11, 8)(tokens)
    mask = jnp.tril(jnp.ones((1, 1, tokens.shape[1], tokens.shape[1])))
    initializer = hk.initializers.VarianceScaling(1.0)
    block = lambda h: h + hk.MultiHeadAttention(2, 4, w_init=initializer, model_size=8)(h, h, h, mask)  # noqa: E731
    return hk.Linear(11)(hk.remat(block)(h))


attention = hk.without_apply_rng(hk.transform(transformer))
tokens = jnp.arange(12).reshape(2, 6) % 11
weights = attention.init(jax.random.PRNGKey(5), tokens)
logits = jax.jit(attention.apply)(weights, tokens)
changed = attention.apply(weights, tokens.at[:, -1].set(0))
np.testing.assert_allclose(logits[:, :-1], changed[:, :-1], atol=1e-5)  # no token sees a later one
batched = hk.transform(lambda x: hk.vmap(hk.Linear(2), split_rng=False)(x))
assert batched.apply(batched.init(jax.random.PRNGKey(6), x), None, x).shape == (16, 2)
assert "multi_head_attention" in hk.experimental.tabulate(attention)(tokens)
print("done")
