"""BlackJAX: HMC and NUTS with adapted steps, and other samplers, on a normal density whose moments are known."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

scale = jnp.array([0.5, 2.0])


def log_density(position):
    return -0.5 * jnp.sum((position["x"] - 1.0) ** 2 / scale**2)


def run(key, kernel, state, count):
    def step(state, key):
        state, info = kernel.step(key, state)
        return state, (state.position["x"], info)

    return jax.lax.scan(step, state, jax.random.split(key, count))[1]


key = jax.random.PRNGKey(0)
start = {"x": jnp.zeros(2)}
warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
(state, parameters), _ = warmup.run(key, start, num_steps=300)
draws, info = jax.jit(lambda key: run(key, blackjax.nuts(log_density, **parameters), state, 1500))(key)
np.testing.assert_allclose(draws.mean(0), [1, 1], atol=0.3)
np.testing.assert_allclose(draws.std(0), scale, rtol=0.2)
assert float(info.acceptance_rate.mean()) > 0.6 and not info.is_divergent.any()

hmc = blackjax.hmc(log_density, 0.4, scale**2, 8)
chains = jax.vmap(lambda key: run(key, hmc, hmc.init(start), 200)[0])(jax.random.split(key, 4))
assert chains.shape == (4, 200, 2)
np.testing.assert_allclose(chains[:, 50:].mean((0, 1)), [1, 1], atol=0.4)
assert float(blackjax.diagnostics.potential_scale_reduction(chains).max()) < 1.2

for kernel in (
    blackjax.mala(log_density, 0.3),
    blackjax.additive_step_random_walk(log_density, blackjax.mcmc.random_walk.normal(scale)),
):
    draws, _ = run(key, kernel, kernel.init(start), 800)
    np.testing.assert_allclose(draws[200:].mean(0), [1, 1], atol=0.9)
print("done")
