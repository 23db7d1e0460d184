"""Reaction and diffusion.

Two substances that react and spread (Gray and Scott's model): 4,000 steps on a grid of 128 × 128, one compiled loop.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp


def laplacian(u: px.Array) -> px.Array:
    return jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u


@px.jit
def simulate(u: px.Array, v: px.Array) -> tuple[px.Array, px.Array]:
    def step(i: px.Array, state: tuple[px.Array, px.Array]) -> tuple[px.Array, px.Array]:
        u, v = state
        reaction = u * v * v
        u = u + 0.16 * laplacian(u) - reaction + 0.035 * (1 - u)
        v = v + 0.08 * laplacian(v) + reaction - (0.035 + 0.06) * v
        return u, v

    return px.lax.fori_loop(0, 4000, step, (u, v))


spots = px.random.uniform(px.random.key(0), (128, 128)) < 0.03
v = jnp.where(spots, 0.5, 0.0) + 0.02 * px.random.uniform(px.random.key(1), (128, 128))
u, v = simulate(1.0 - v, v)
plt.figure(figsize=(4, 4), layout="constrained")
plt.imshow(v, cmap="magma", interpolation="bicubic")
plt.axis("off")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "reaction_diffusion.png", dpi=110)
