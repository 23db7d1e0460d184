"""evosax: CMA-ES and differential evolution find the minimum of a bowl."""

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, DifferentialEvolution

target = jnp.array([0.5, -1.0, 0.3])


def loss(x):
    return jnp.sum((x - target) ** 2)


strategy = CMA_ES(population_size=20, solution=jnp.zeros(3))
parameters = strategy.default_params


@jax.jit
def run(key):
    def step(carry, key):
        state, best = carry
        ask, tell = jax.random.split(key)
        population, state = strategy.ask(ask, state, parameters)
        fitness = jax.vmap(loss)(population)
        state, _ = strategy.tell(tell, population, fitness, state, parameters)
        return (state, jnp.minimum(best, fitness.min())), None

    first, rest = jax.random.split(key)
    state = strategy.init(first, jnp.zeros(3), parameters)
    return jax.lax.scan(step, (state, jnp.inf), jax.random.split(rest, 60))[0]


state, best = run(jax.random.PRNGKey(0))
assert float(best) < 1e-4, best
assert DifferentialEvolution(population_size=8, solution=jnp.zeros(3)).default_params is not None
print("done")
