"""Flax nnx: modules with state, transformations, splitting and merging, training."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Linear(3, 16, rngs=rngs)
        self.normalization = nnx.BatchNorm(16, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.second = nnx.Linear(16, 1, rngs=rngs)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        return self.second(self.dropout(nnx.relu(self.normalization(self.first(x)))))


x = jax.random.normal(jax.random.key(0), (32, 3))
y = jnp.sum(x**2, 1, keepdims=True)
network = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(network, optax.adam(1e-2), wrt=nnx.Param)


@nnx.jit
def step(network, optimizer):
    loss, gradient = nnx.value_and_grad(lambda network: jnp.mean((network(x) - y) ** 2))(network)
    optimizer.update(network, gradient)
    return loss


losses = [float(step(network, optimizer)) for _ in range(60)]
assert losses[-1] < 0.3 * losses[0], losses
assert int(network.calls[...]) == 60
network.eval()
graph, state = nnx.split(network)
np.testing.assert_allclose(nnx.merge(graph, state)(x), network(x), rtol=1e-6)
parameters = nnx.state(network, nnx.Param)
assert parameters["first"]["kernel"].shape == (3, 16)


@nnx.split_rngs(splits=4)
@nnx.vmap(in_axes=(0,), out_axes=0)
def make_layers(rngs):
    return nnx.Linear(5, 5, rngs=rngs)


layers = make_layers(nnx.Rngs(0))
assert layers.kernel.shape == (4, 5, 5)


@nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
def forward(layer, x):
    return jnp.tanh(layer(x))


expected = jnp.ones(5)
for kernel in layers.kernel[...]:
    expected = jnp.tanh(expected @ kernel)
np.testing.assert_allclose(forward(layers, jnp.ones(5)), expected, rtol=1e-5)
assert nnx.eval_shape(lambda: Network(nnx.Rngs(0))).first.kernel.shape == (3, 16)
print("done")
