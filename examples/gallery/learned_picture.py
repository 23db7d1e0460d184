"""A network that remembers a picture.

From a position to a brightness: sines of the position as features, three layers, and a picture that is a formula.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp

axis = jnp.linspace(-1, 1, 64)
places = jnp.stack(jnp.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
radius, angle = jnp.hypot(places[:, 0], places[:, 1]), jnp.arctan2(places[:, 1], places[:, 0])
picture = jnp.where(radius < 0.9, 0.5 + 0.5 * jnp.sin(6 * angle + 12 * radius), 0.0)

frequencies = 4 * px.random.normal(px.random.key(0), (2, 32))
features = jnp.concatenate([jnp.sin(places @ frequencies), jnp.cos(places @ frequencies)], axis=1)
keys = px.random.split(px.random.key(1), 3)
weights = [px.random.normal(k, s) / s[0] ** 0.5 for k, s in zip(keys, [(64, 64), (64, 64), (64, 1)], strict=True)]


def network(weights: list[px.Array]) -> px.Array:
    h = px.nn.relu(px.nn.relu(features @ weights[0]) @ weights[1])
    return px.nn.sigmoid(h @ weights[2])[:, 0]


State = tuple[list[px.Array], list[px.Array], list[px.Array]]


@px.jit
def train(weights: list[px.Array]) -> list[px.Array]:
    zeros = [jnp.zeros_like(w) for w in weights]

    def step(i: px.Array, state: State) -> State:
        weights, mean, square = state
        slope = px.grad(lambda w: jnp.mean((network(w) - picture) ** 2))(weights)
        mean = [0.9 * m + 0.1 * g for m, g in zip(mean, slope, strict=True)]
        square = [0.99 * s + 0.01 * g * g for s, g in zip(square, slope, strict=True)]
        parts = zip(weights, mean, square, strict=True)
        return [w - 0.01 * m / (jnp.sqrt(s) + 1e-8) for w, m, s in parts], mean, square

    return px.lax.fori_loop(0, 250, step, (weights, zeros, zeros))[0]


shown = [picture, network(weights), network(train(weights))]
figure, axes = plt.subplots(1, 3, figsize=(6, 2.2), layout="constrained")
for place, image, title in zip(axes, shown, ["picture", "before", "after 250 steps"], strict=True):
    place.imshow(image.reshape(64, 64), cmap="gray", vmin=0, vmax=1)
    place.set_title(title, fontsize=9)
    place.axis("off")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "learned_picture.png", dpi=110)
