"""Sharp from blurred.

A picture is blurred and gets noise; the gradient of a likelihood with a prior on steps brings it back.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp

N = 96
row, column = jnp.meshgrid(jnp.arange(N), jnp.arange(N), indexing="ij")
picture = jnp.where((row - 40) ** 2 + (column - 34) ** 2 < 500, 1.0, 0.0)
picture = jnp.where((abs(row - 62) < 16) & (abs(column - 64) < 14), 0.6, picture)
distance = jnp.minimum(row, N - row) ** 2 + jnp.minimum(column, N - column) ** 2
blur = jnp.fft.rfft2(jnp.exp(-distance / 8) / jnp.exp(-distance / 8).sum())


def blurred(x: px.Array) -> px.Array:
    return jnp.fft.irfft2(jnp.fft.rfft2(x) * blur, s=(N, N))


seen = blurred(picture) + 0.01 * px.random.normal(px.random.key(0), (N, N))


def cost(x: px.Array) -> px.Array:
    steps = jnp.sqrt(jnp.diff(x, axis=0)[:, :-1] ** 2 + jnp.diff(x, axis=1)[:-1] ** 2 + 1e-5)
    return jnp.sum((blurred(x) - seen) ** 2) + 0.004 * steps.sum()


@px.jit
def restore(x: px.Array) -> px.Array:
    def step(i: px.Array, state: tuple[px.Array, px.Array]) -> tuple[px.Array, px.Array]:
        x, m = state
        m = 0.9 * m - 0.1 * px.grad(cost)(x)
        return x + m, m

    return px.lax.fori_loop(0, 300, step, (x, jnp.zeros_like(x)))[0]


figure, axes = plt.subplots(1, 3, figsize=(6.6, 2.4), layout="constrained")
for place, image, title in zip(axes, [picture, seen, restore(seen)], ["truth", "seen", "restored"], strict=True):
    place.imshow(image, cmap="gray", vmin=0, vmax=1)
    place.set_title(title, fontsize=9)
    place.axis("off")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "fourier_filter.png", dpi=110)
