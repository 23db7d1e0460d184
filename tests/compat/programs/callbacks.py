"""Callbacks receive arrays of jax's kind, which they may keep."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

kept = []


def keep(*args, **kwargs):
    kept.extend([*args, *kwargs.values()])
    return np.float32(len(kept))


one = jax.ShapeDtypeStruct((), jnp.float32)
jax.debug.callback(keep, 1.0, key=jnp.arange(2))
jax.jit(lambda x: jax.debug.callback(keep, x, x * 2))(jnp.ones(2))
jax.pure_callback(keep, one, jnp.ones(3, jnp.bfloat16))
jax.jit(lambda x: io_callback(keep, one, x + 1))(np.arange(3))
jax.vmap(lambda x: jax.pure_callback(keep, one, x, vmap_method="sequential"))(jnp.arange(2.0))
jax.effects_barrier()
print(all(isinstance(x, jax.Array) for x in kept))
for x in kept:
    print(x.dtype, x, x.at[...].add(1), jnp.sum(x))
jax.debug.print("{x!r} {y:.2f}", x=jnp.ones(2), y=1.2345)
