"""grad, jit, vmap and their compositions, with the imports that JAX programs have."""

import jax
import jax.numpy as jnp
from jax import grad, jit, vmap
from jax import numpy as also_jnp

assert also_jnp is jnp and jax.numpy is jnp

print("grad", grad(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0, 3.0])))


@jit
def standardize(table):
    centered = table - table.mean(0)
    return centered / centered.std(0)


print("jit", standardize(jnp.array([[1.0, 2.0], [3.0, 6.0]])))


def inner(x, y):
    return jnp.dot(x, y)


rows = jnp.array([[1, 0, 2], [3, 1, 1]])
print("vmap", repr(vmap(inner, in_axes=(0, None), out_axes=0)(rows, jnp.array([1, 1, 1]))))
table = jnp.arange(6.0).reshape(2, 3)
product = vmap(vmap(inner, in_axes=(None, 1)), in_axes=(0, None))
assert jnp.array_equal(product(table, table.T), table @ table.T)
print("pairs", vmap(vmap(lambda x, y: jnp.sum(jnp.abs(x - y)), (0, None)), (None, 0))(table, table))
batched = jit(vmap(grad(lambda x: jnp.cos(x) + x**2)))
print("all three", batched(jnp.linspace(0, 1, 4)).round(4))
value, slope = jax.value_and_grad(lambda x, y: x * y, argnums=1)(2.0, 3.0)
print("value and slope", value, slope, jax.grad(jax.grad(lambda x: x**3))(2.0))
print("hessian", jax.hessian(lambda x: jnp.sum(x) ** 2)(jnp.ones(2)))
_, pushed = jax.jvp(jnp.sin, primals=(0.0,), tangents=(2.0,))
out, pull = jax.vjp(lambda x: (x, x**2), jnp.float32(3))
print("jvp and vjp", pushed, out, pull((1.0, 1.0)))
assert jax.device_count() >= 1 and jax.devices()[0].platform == jax.default_backend()
print(jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0))
print(jax.eval_shape(lambda x: x @ x.T, jax.ShapeDtypeStruct((2, 3), jnp.float32)))
