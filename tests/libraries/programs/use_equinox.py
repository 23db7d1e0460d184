"""Equinox: modules, filtered transformations, run-time errors, loops that can be differentiated, state, files."""

import tempfile

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np

key = jax.random.key(0)
network = eqx.nn.Sequential(
    [
        eqx.nn.Conv2d(1, 2, 3, key=key),
        eqx.nn.Lambda(jax.nn.relu),
        eqx.nn.AdaptiveAvgPool2d(2),
        eqx.nn.Lambda(jnp.ravel),
        eqx.nn.MLP(8, 1, 8, 1, key=key),
    ]
)
images = jax.random.normal(key, (4, 1, 6, 6))
loss = eqx.filter_value_and_grad(lambda network: jnp.mean(jax.vmap(network)(images) ** 2))
value, gradient = eqx.filter_jit(loss)(network)
better = eqx.apply_updates(network, jax.tree.map(lambda g: -0.1 * g, gradient))
assert float(loss(better)[0]) < float(value)


@eqx.filter_jit
def root(x):
    return jnp.sqrt(eqx.error_if(x, x < 0, "x must not be negative"))


assert float(root(jnp.array(4.0))) == 2
np.testing.assert_allclose(jax.vmap(jax.grad(root))(jnp.array([1.0, 4.0])), [0.5, 0.25])
try:
    root(jnp.array(-1.0))
except eqx.EquinoxRuntimeError as error:
    assert "x must not be negative" in str(error)
else:
    raise AssertionError("the check did not fail")


def iterate(x, kind):
    step = lambda carry: (carry[0] + 1, carry[1] * jnp.sin(carry[1]) + x)  # noqa: E731
    return eqxi.while_loop(lambda carry: carry[0] < 5, step, (0, x), max_steps=16, kind=kind)[1]


def unrolled(x):
    y = x
    for _ in range(5):
        y = y * jnp.sin(y) + x
    return y


for kind in ("checkpointed", "bounded"):
    np.testing.assert_allclose(iterate(jnp.array(0.5), kind), unrolled(0.5), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(iterate)(jnp.array(0.5), kind), jax.grad(unrolled)(0.5), rtol=1e-4)

layer, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="batch", mode="batch")
x = jax.random.normal(key, (8, 3))
normalized, state = jax.vmap(layer, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
np.testing.assert_allclose(normalized.mean(0), 0, atol=1e-5)

with tempfile.TemporaryDirectory() as folder:
    eqx.tree_serialise_leaves(f"{folder}/network.eqx", network)
    like = eqx.tree_at(lambda n: n.layers[0].weight, network, replace_fn=jnp.zeros_like)
    assert eqx.tree_equal(eqx.tree_deserialise_leaves(f"{folder}/network.eqx", like), network)

# -- functions that are compiled apart, and programs with the library's own operations replaced
apart = eqxi.noinline(lambda x: jnp.sin(x) * 2)
x = jnp.array(1.0)
np.testing.assert_allclose(jax.jit(apart)(x), 2 * np.sin(1), rtol=1e-6)
np.testing.assert_allclose(jax.jit(jax.grad(apart))(x), 2 * np.cos(1), rtol=1e-6)
np.testing.assert_allclose(jax.jit(jax.vmap(apart))(jnp.arange(3.0)), 2 * np.sin(np.arange(3)), rtol=1e-6)
assert float(jax.jit(lambda x: apart(x) + apart(x * 2))(x)) == float(apart(x) + apart(x * 2))


def checked(x):
    return eqx.error_if(jax.nn.relu(x), x < 0, "negative")


final = eqxi.finalise_fn(checked)
assert float(final(2.0)) == 2.0 and float(jax.jit(final)(2.0)) == 2.0
program = eqxi.finalise_jaxpr(jax.make_jaxpr(checked)(1.0))
assert [float(y) for y in jax.core.eval_jaxpr(program.jaxpr, program.consts, 3.0)] == [3.0]
print("done")
