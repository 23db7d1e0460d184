"""`jax.config`, its contexts, and the variables JAX_ENABLE_X64 and JAX_NUMPY_RANK_PROMOTION, which the test sets."""

import jax
import jax.numpy as jnp
from jax.experimental import enable_x64

print(jax.config.jax_enable_x64, jax.config.jax_numpy_rank_promotion, jnp.arange(2.0).dtype)
jax.config.update("jax_enable_x64", False)
print(jax.config.jax_enable_x64, jax.config.read("jax_enable_x64"), jnp.arange(2.0).dtype)
with enable_x64():
    print(jnp.arange(2.0).dtype)
with jax.disable_jit():
    jax.jit(lambda x: print(type(x).__name__))(1.0)
with jax.default_matmul_precision("float32"), jax.numpy_rank_promotion("allow"):
    print(jnp.ones((2, 3)) + jnp.ones(3))
jax.config.update("jax_optimization_level", "O2")
print(jax.config.jax_optimization_level, "jax_debug_nans" in jax.config.values)
for act in (lambda: jax.config.update("jax_enable_x46", True), lambda: jax.config.jax_nothing):
    try:
        act()
    except AttributeError as error:
        print(error)
