"""What attention looks at.

A layer of attention learns to sort: each place of the output has to find its number in the input.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp

LENGTH, WIDTH = 10, 32
glorot = px.nn.initializers.glorot_normal()
keys = px.random.split(px.random.key(0), 5)
Parameters = dict[str, px.Array]
parameters: Parameters = {
    "in": glorot(keys[0], (2, WIDTH)), "hidden": glorot(keys[1], (WIDTH, WIDTH)),
    "query": 0.3 * px.random.normal(keys[2], (LENGTH, WIDTH)), "key": glorot(keys[3], (WIDTH, WIDTH)),
}  # fmt: skip
numbers = px.random.uniform(keys[4], (256, LENGTH))


def weights(p: Parameters, x: px.Array) -> px.Array:
    rank = (x[:, None] > x[None, :]).mean(axis=1)
    h = jnp.tanh(jnp.stack([x, rank], axis=1) @ p["in"])
    return px.nn.softmax(p["query"] @ (jnp.tanh(h @ p["hidden"]) @ p["key"]).T, axis=1)


def loss(p: Parameters) -> px.Array:
    found = px.vmap(lambda x: weights(p, x) @ x)(numbers)
    return jnp.mean((found - jnp.sort(numbers, axis=1)) ** 2)


@px.jit
def train(p: Parameters) -> Parameters:
    def step(i: px.Array, state: tuple[Parameters, Parameters]) -> tuple[Parameters, Parameters]:
        p, m = state
        m = px.tree.map(lambda m, g: 0.95 * m - 2.0 * g, m, px.grad(loss)(p))
        return px.tree.map(jnp.add, p, m), m

    return px.lax.fori_loop(0, 3000, step, (p, px.tree.map(jnp.zeros_like, p)))[0]


trained = train(parameters)
figure, axes = plt.subplots(1, 3, figsize=(6.6, 2.4), layout="constrained")
for place, x in zip(axes, numbers[:3], strict=True):
    place.imshow(weights(trained, x), cmap="Purples")
    place.set_xticks(range(LENGTH), [f"{float(n):.1f}" for n in x], fontsize=6, rotation=90)
    place.set_yticks([])
axes[0].set_ylabel("place in the result")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "attention_maps.png", dpi=110)
