"""mctx: a search of a small tree prefers the action with the greatest reward."""

import jax
import jax.numpy as jnp
import mctx
import numpy as np

rewards = jnp.array([0.1, 0.9, 0.3])
batch = 4


def dynamics(parameters, key, action, embedding):
    output = mctx.RecurrentFnOutput(
        reward=rewards[action],
        discount=jnp.full((batch,), 0.5),
        prior_logits=jnp.zeros((batch, 3)),
        value=jnp.zeros((batch,)),
    )
    return output, embedding + 1


root = mctx.RootFnOutput(
    prior_logits=jnp.zeros((batch, 3)), value=jnp.zeros((batch,)), embedding=jnp.zeros((batch,), jnp.int32)
)
for policy in (mctx.gumbel_muzero_policy, mctx.muzero_policy):
    run = jax.jit(
        lambda key, policy=policy: policy(
            params=(), rng_key=key, root=root, recurrent_fn=dynamics, num_simulations=48, max_depth=3
        )
    )
    output = run(jax.random.PRNGKey(0))
    weights = np.asarray(output.action_weights)
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)
    assert (weights.argmax(1) == 1).all(), weights
print("done")
