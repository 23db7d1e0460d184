"""Basins of Newton's method.

Which root of z³ = 1 does Newton's method find, from each point of the plane? A `while` loop in plain Python, for
160,000 points at once: each stops when it is there.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp


def search(z: px.Array) -> tuple[px.Array, px.Array]:
    steps = jnp.zeros((), int)
    while steps < 40 and abs(z**3 - 1) > 1e-4:
        z = z - (z**3 - 1) / (3 * z**2 + 1e-12)
        steps += 1
    return z, steps


real, imaginary = jnp.meshgrid(jnp.linspace(-1.6, 1.6, 400), jnp.linspace(-1.6, 1.6, 400))
roots, steps = px.jit(px.vmap(px.vmap(search)))(real + 1j * imaginary)
plt.figure(figsize=(4, 4), layout="constrained")
colors = jnp.array([[0.37, 0.21, 0.69], [0.16, 0.62, 0.56], [0.95, 0.61, 0.27]])
which = jnp.round(jnp.angle(roots) * 3 / (2 * jnp.pi)).astype(int)
plt.imshow(colors[which] * jnp.clip(1.15 - steps / 30, 0, 1)[:, :, None])
plt.axis("off")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "newton_fractal.png", dpi=110)
