"""gymnax: episodes of CartPole, many at once, follow its equations of motion."""

import gymnax
import jax
import jax.numpy as jnp
import numpy as np

env, parameters = gymnax.make("CartPole-v1")
keys = jax.random.split(jax.random.PRNGKey(0), 8)
observation, state = jax.vmap(env.reset, in_axes=(0, None))(keys, parameters)
assert observation.shape == (8, 4) and np.abs(np.asarray(observation)).max() <= 0.05


def step(carry, key):
    state, _ = carry
    observation, state, reward, done, _ = env.step_env(key, state, 1, parameters)
    return (state, observation), (observation, reward, done)


run = jax.jit(jax.vmap(lambda state, o, key: jax.lax.scan(step, (state, o), jax.random.split(key, 12))[1]))
observations, rewards, done = run(state, observation, keys)
assert observations.shape == (8, 12, 4) and bool(jnp.all(rewards[:, :8] == 1))
assert bool(jnp.all(done[:, -1])), "a pole that is pushed to one side falls within 12 steps"
np.testing.assert_allclose(observations[:, 0, 0], observation[:, 0] + 0.02 * observation[:, 1], atol=1e-5)
print("done")
