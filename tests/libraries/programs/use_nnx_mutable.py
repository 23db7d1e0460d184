"""Flax nnx with variables that hold references (`ref=True`), and variables as values of their own type (`hijax`)."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

# Variables that hold references are written in place, by functions under jax's own transformations.
count = nnx.Variable(jnp.array(0), ref=True)
weight = nnx.Param(jnp.ones((2, 3)), ref=True)


@jax.jit
def step(weight, x):
    count[...] += 1
    weight[0] = weight[0] + x
    return weight[...].sum()


assert float(step(weight, 2.0)) == 12.0
assert float(step(weight, 1.0)) == 15.0
assert int(count[...]) == 2
np.testing.assert_array_equal(weight[...], [[4, 4, 4], [1, 1, 1]])

jax.vmap(lambda w, x: w.set_value(w[...] * x))(weight, jnp.array([1.0, 5.0]))
np.testing.assert_array_equal(weight[...], [[4, 4, 4], [5, 5, 5]])


# A module whose variables are references, trained without returning it.
class Model(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(2, 1, rngs=rngs)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        return self.linear(x)


with nnx.var_defaults(ref=True):
    model = Model(nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (64, 2))
y = x @ jnp.array([[1.0], [-2.0]]) + 0.5
graphdef, parameters, rest = nnx.split(model, nnx.Param, ...)


@jax.jit
def train(parameters, rest, x, y):
    values = nnx.with_vars(parameters, ref=False)

    def loss(values):
        return jnp.mean((nnx.merge(graphdef, values, rest)(x) - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(values)
    jax.tree.map(
        lambda p, g: p.set_value(p[...] - 0.3 * g[...]),
        parameters,
        gradient,
        is_leaf=lambda v: isinstance(v, nnx.Variable),
    )
    return value


losses = [float(train(parameters, rest, x, y)) for _ in range(40)]
assert losses[-1] < 1e-3 < losses[0], losses
assert int(model.calls[...]) == 40

# Variables as values of their own type: made and read under jit, differentiated around.
if hasattr(jax.experimental, "hijax"):
    v = nnx.Variable(jnp.array(2.0), hijax=True, ref=True)

    def square(x):
        v[...] = jax.lax.stop_gradient(x * 3)
        return x**2 + v[...]

    assert float(jax.grad(square)(jnp.array(4.0))) == 8.0
    assert float(v[...]) == 12.0
    assert float(jax.jit(lambda v: v[...] + 1)(v)) == 13.0

print("done")
