"""Flax linen: layers, lifted transformations, batch statistics, dropout, serialization, training."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax import serialization
from flax.training import train_state


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.relu(nn.Conv(4, (3, 3))(x))
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.max_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
        x = nn.Dropout(0.2, deterministic=not train)(nn.remat(nn.Dense)(8)(x))
        return nn.Dense(2)(x)


images = jax.random.normal(jax.random.key(1), (8, 6, 6, 1))
labels = jnp.arange(8) % 2
network = Network()
variables = network.init(jax.random.key(0), images, train=False)
assert variables["params"]["Conv_0"]["kernel"].shape == (3, 3, 1, 4)
assert "Dense_0" in nn.tabulate(network, jax.random.key(0))(images, train=False)


class State(train_state.TrainState):
    statistics: dict


state = State.create(
    apply_fn=network.apply,
    params=variables["params"],
    statistics=variables["batch_stats"],
    tx=optax.adam(1e-2),
)


@jax.jit
def step(state, key):
    def loss(params):
        logits, new = state.apply_fn(
            {"params": params, "batch_stats": state.statistics},
            images,
            train=True,
            rngs={"dropout": key},
            mutable=["batch_stats"],
        )
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), new

    (value, new), gradient = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=gradient, statistics=new["batch_stats"]), value


losses = []
for key in jax.random.split(jax.random.key(2), 40):
    state, value = step(state, key)
    losses.append(float(value))
assert losses[-1] < 0.3 * losses[0], losses
restored = serialization.from_bytes(state.params, serialization.to_bytes(state.params))
assert jax.tree.all(jax.tree.map(np.array_equal, restored, state.params))


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return nn.tanh(nn.Dense(5)(x)), None


stacked = nn.scan(Layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)()
parameters = stacked.init(jax.random.key(0), jnp.ones(5), None)
kernels = parameters["params"]["Dense_0"]["kernel"]
assert kernels.shape == (3, 5, 5)
x = jnp.ones(5)
for kernel in kernels:
    x = jnp.tanh(x @ kernel)
np.testing.assert_allclose(stacked.apply(parameters, jnp.ones(5), None)[0], x, rtol=1e-5)
cell = nn.RNN(nn.OptimizedLSTMCell(4))
sequence = jnp.ones((2, 7, 3))
assert cell.apply(cell.init(jax.random.key(0), sequence), sequence).shape == (2, 7, 4)
print("done")
