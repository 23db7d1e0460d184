"""Arrays as NumPy has them, immutability, updates, and random numbers with keys."""

import jax
import numpy as np
from jax import numpy as jnp
from jax import random

ones = jnp.ones((3, 3))
pair = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print(repr(jnp.dot(pair, ones).block_until_ready()))
placed = jax.device_put(np.arange(4, dtype=np.float32))
assert isinstance(placed, jax.Array) and np.array(placed).dtype == np.float32
changed = pair.at[0, 0].set(9.0)
print(pair, changed, sep="\n")
whole = jnp.arange(5, dtype=jnp.int32)
print(whole.at[4].add(6), whole.at[4].max(20), whole.at[4].min(-1), whole.at[1:3].multiply(2))
try:
    whole[4] = 10
except TypeError as error:
    print("TypeError", "immutable" in str(error))
print((np.int8(32) + jnp.int8(4)).dtype, (whole + 5.0).dtype, whole.reshape(-1, 1).shape, whole.max())

key = random.PRNGKey(0)
print(repr(key), random.normal(key, shape=(1,)))
key, subkey = random.split(key)
print(key, subkey, random.normal(subkey, shape=(1,)))
key, *others = random.split(key, 4)
print(key, others)
print(random.normal(random.PRNGKey(0), (4,)))
print(
    random.uniform(jax.random.key(0), (2,)), random.randint(random.PRNGKey(0), shape=[2], minval=0, maxval=5)
)
