"""pgx: games of tic-tac-toe by the first legal move end as the rules say."""

import jax
import jax.numpy as jnp
import numpy as np
import pgx

env = pgx.make("tic_tac_toe")
init, step = jax.jit(jax.vmap(env.init)), jax.jit(jax.vmap(env.step))
state = init(jax.random.split(jax.random.PRNGKey(0), 5))
assert state.legal_action_mask.shape == (5, 9) and bool(state.legal_action_mask.all())
moves = 0
while not bool(state.terminated.all()):
    state = step(state, jnp.argmax(state.legal_action_mask, axis=1))
    moves += 1
assert moves == 7, "0, 2, 4 and 6 are a diagonal"
np.testing.assert_array_equal(np.sort(np.asarray(state.rewards), axis=1), np.tile([-1.0, 1.0], (5, 1)))
illegal = step(init(jax.random.split(jax.random.PRNGKey(1), 2)), jnp.array([0, 0]))
assert bool(step(illegal, jnp.array([0, 0])).terminated.all()), "an illegal move loses"
print("done")
