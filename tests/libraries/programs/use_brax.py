"""Brax: an environment steps under jit, vmap and scan."""

import jax
import jax.numpy as jnp
import numpy as np
from brax import envs

env = envs.get_environment("inverted_pendulum", backend="generalized")
state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.PRNGKey(0), 3))
assert state.obs.shape == (3, 4)


@jax.jit
def run(state):
    step = jax.vmap(env.step)
    return jax.lax.scan(lambda s, _: (step(s, jnp.zeros((3, 1))), s.obs), state, None, length=5)


last, observations = run(state)
assert bool(jnp.isfinite(observations).all())
np.testing.assert_allclose(observations[0], state.obs)
assert bool((jnp.abs(last.obs[:, 1]) > 0).all())
print("done")
