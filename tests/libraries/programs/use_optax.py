"""Optax: optimizers, schedules and losses, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

target = jnp.array([1.0, -2.0, 3.0])
optimizers = {
    "sgd": optax.sgd(0.1, momentum=0.9),
    "adam": optax.adam(0.1),
    "adamw with a schedule": optax.adamw(
        optax.warmup_cosine_decay_schedule(0.0, 0.2, 10, 200), weight_decay=0.0
    ),
    "clipped rmsprop": optax.chain(optax.clip_by_global_norm(1.0), optax.rmsprop(0.02)),
    "two groups": optax.multi_transform({"a": optax.adam(0.1), "b": optax.sgd(0.1)}, {"x": "a", "y": "b"}),
}
for name, optimizer in optimizers.items():
    parameters = {"x": jnp.zeros(3), "y": jnp.array(0.0)}

    def loss(p):
        return jnp.sum((p["x"] - target) ** 2) + (p["y"] - 4) ** 2

    @jax.jit
    def step(p, state, optimizer=optimizer):
        updates, state = optimizer.update(jax.grad(loss)(p), state, p)
        return optax.apply_updates(p, updates), state

    state = optimizer.init(parameters)
    for _ in range(400):
        parameters, state = step(parameters, state)
    np.testing.assert_allclose(parameters["x"], target, atol=0.05, err_msg=name)
    np.testing.assert_allclose(parameters["y"], 4, atol=0.05, err_msg=name)

logits, labels = jnp.array([[2.0, 1.0, 0.0], [0.0, 0.0, 5.0]]), jnp.array([0, 2])
expected = -np.log(np.exp([2.0, 5.0]) / np.exp(np.asarray(logits)).sum(1))
np.testing.assert_allclose(
    optax.softmax_cross_entropy_with_integer_labels(logits, labels), expected, atol=1e-6
)
skipping = optax.apply_if_finite(optax.sgd(1.0), 2)
updates, _ = skipping.update({"w": jnp.array(jnp.nan)}, skipping.init({"w": jnp.array(1.0)}))
assert float(updates["w"]) == 0
print("done")
