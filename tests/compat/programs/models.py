"""A logistic model on a class that is a pytree, trained with plain gradient descent; jvp, vjp, scan and cond."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.flatten_util import ravel_pytree
from jax.nn import sigmoid
from jax.tree_util import register_pytree_node_class


@register_pytree_node_class
class Weights:
    def __init__(self, slope, offset):
        self.slope, self.offset = slope, offset

    def tree_flatten(self):
        return (self.slope, self.offset), None

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        return cls(*children)


inputs = jnp.array([[0.5, 1.0], [0.9, -1.1], [0.5, 0.1], [0.7, -2.5]])
targets = jnp.array([True, False, True, False])


def predict(weights, inputs):
    return sigmoid(inputs @ weights.slope + weights.offset)


def loss(weights):
    probabilities = predict(weights, inputs)
    return -jnp.mean(jnp.log(jnp.where(targets, probabilities, 1 - probabilities)))


@partial(jax.jit, static_argnames="rate")
def step(weights, _, rate=0.5):
    value, slopes = jax.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - rate * g, weights, slopes), value


weights = Weights(random.normal(random.PRNGKey(0), (2,)), jnp.zeros(()))
weights, losses = lax.scan(step, weights, length=50)
assert losses[-1] < 0.1 < losses[0] and jnp.all((predict(weights, inputs) > 0.5) == targets)
flat, unravel = ravel_pytree(weights)
assert flat.shape == (3,) and jnp.array_equal(unravel(flat).slope, weights.slope)
_, tangent = jax.jvp(lambda w: predict(w, inputs), (weights,), (weights,))
out, pull = jax.vjp(lambda w: predict(w, inputs), weights)
(cotangent,) = pull(jnp.eye(4)[0])
assert jnp.allclose(
    tangent[0], jnp.vdot(cotangent.slope, weights.slope) + cotangent.offset * weights.offset, rtol=1e-5
)
print(jax.jit(lambda x: lax.cond(x > 0, lambda v: v, lambda v: -v, x))(-3.0))
print(
    lax.fori_loop(0, 5, lambda i, total: total + i, 0), lax.while_loop(lambda n: n < 50, lambda n: n * 2, 3)
)
print(jax.lax.switch(1, [lambda x: x, lambda x: x + 1], 5), jax.nn.relu(jnp.array([-1.0, 2.0])))
