"""Grain: a pipeline of examples that ends in a training step, with its state saved and restored."""

import grain
import jax
import jax.numpy as jnp
import numpy as np

points = np.arange(40.0, dtype=np.float32).reshape(20, 2) / 40
dataset = (
    grain.MapDataset.source(list(zip(points, points.sum(1), strict=True)))
    .seed(0)
    .shuffle()
    .map(lambda pair: {"x": pair[0], "y": pair[1]})
    .repeat(60)
    .to_iter_dataset()
    .batch(5)
)


@jax.jit
def step(weights, batch):
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((batch["x"] @ w - batch["y"]) ** 2))(weights)
    return weights - 0.5 * slope, loss


weights = jnp.zeros(2)
iterator = iter(dataset)
losses = []
for count, batch in enumerate(iterator):
    if count == 3:
        state = iterator.get_state()
    weights, loss = step(weights, jax.tree.map(jnp.asarray, batch))
    losses.append(float(loss))
assert len(losses) == 240
np.testing.assert_allclose(weights, [1.0, 1.0], atol=0.05)
again = iter(dataset)
again.set_state(state)
fifth = next(again)
iterator = iter(dataset)
for _ in range(4):
    next(iterator)
np.testing.assert_array_equal(fifth["x"], next(iterator)["x"])
print("done")
