"""Indices out of bounds, which JAX clamps where it reads and drops where it writes."""

import jax
import jax.numpy as jnp
import numpy as np

x = jnp.arange(10.0, 14.0)
m = x.reshape(2, 2)
places = jnp.array([0, 4, -5])


def read(x):
    return x[9], x[-9], x[np.array([1, 7])], x[places], x[places.astype("uint8")[:2]], x.at[7].get()


def write(x):
    return x.at[9].set(0.0), x.at[-9].add(1.0), x.at[np.array([1, 7])].multiply(2.0), x.at[places].min(0.0)


for values in (read(x), jax.jit(read)(x), write(x), jax.jit(write)(x)):
    print([value.tolist() for value in values])
print(m[5].tolist(), m[0, 5].tolist(), m[places, 1].tolist(), m[:, -7].tolist(), m.at[1, 3].set(0.0).tolist())
print(jax.grad(lambda x: x[9] + x.at[8].set(2.0).sum())(x).tolist())
print(jax.vmap(lambda x, i: x[i])(m, jnp.array([1, 5])).tolist(), x.at[7].get(mode="fill").tolist())
print([row.tolist() for row in m], len(list(x)))

history = jnp.zeros(3)
for step in range(5):  # writes past the end are left out
    history = history.at[step].set(step)
print(history.tolist())

jax.config.update("jax_check_indices", True)  # a setting of purax
try:
    print(x[9].tolist())
except IndexError as error:
    print(str(error).splitlines()[0])
