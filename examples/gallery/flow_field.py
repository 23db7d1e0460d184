"""Flow around a cylinder.

A lattice Boltzmann simulation: nine directions, collide and stream, vortices that come off.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp

HEIGHT, WIDTH = 60, 180
directions = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
cx = jnp.array([float(d[0]) for d in directions])[:, None, None]
cy = jnp.array([float(d[1]) for d in directions])[:, None, None]
share = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)[:, None, None]
opposite = jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
row, column = jnp.meshgrid(jnp.arange(HEIGHT), jnp.arange(WIDTH), indexing="ij")
wall = (row - 29.3) ** 2 + (column - 40) ** 2 < 49


def equilibrium(density: px.Array, ux: px.Array, uy: px.Array) -> px.Array:
    along = cx * ux + cy * uy
    return density * share * (1 + 3 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))


def moments(f: px.Array) -> tuple[px.Array, px.Array, px.Array]:
    density = f.sum(axis=0)
    return density, (f * cx).sum(axis=0) / density, (f * cy).sum(axis=0) / density


@px.jit
def flow(f: px.Array) -> px.Array:
    inflow = f[:, :, 0]

    def step(i: px.Array, f: px.Array) -> px.Array:
        f = f.at[:, :, 0].set(inflow).at[:, :, -1].set(f[:, :, -2])
        after = f + (equilibrium(*moments(f)) - f) / 0.56
        after = jnp.where(wall, f[opposite], after)
        return jnp.stack([jnp.roll(g, (d[1], d[0]), (0, 1)) for g, d in zip(after, directions, strict=True)])

    return px.lax.fori_loop(0, 5000, step, f)


ones = jnp.ones((HEIGHT, WIDTH))
start = equilibrium(ones, 0.1 * ones, 0.001 * jnp.sin(column / 9.0))
_, ux, uy = moments(flow(start))
curl = jnp.roll(uy, -1, 1) - jnp.roll(uy, 1, 1) - jnp.roll(ux, -1, 0) + jnp.roll(ux, 1, 0)
plt.figure(figsize=(6.6, 2.4), layout="constrained")
plt.imshow(jnp.where(wall, jnp.nan, curl), cmap="RdBu", vmin=-0.04, vmax=0.04)
plt.axis("off")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "flow_field.png", dpi=110)
