"""A lens for waves.

Where should a material slow down waves, so that they meet in one point? The gradient goes through a simulation of the
wave equation and shapes the lens.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp

N, STEPS = 80, 160
State = tuple[px.Array, px.Array, px.Array]
column = jnp.arange(N)


def simulate(speed: px.Array) -> tuple[px.Array, px.Array]:
    """The wave at the end, and the energy that went through each point."""

    def step(state: State, i: px.Array) -> tuple[State, None]:
        u, before, energy = state
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
        after = (2 * u - before + speed**2 * around).at[:, 2].set(jnp.sin(0.5 * i))
        after = after.at[:, -1].set(0.0).at[:, 0].set(0.0)
        return (after, u, energy + after**2), None

    still = jnp.zeros((N, N))
    (u, _, energy), _ = px.lax.scan(step, (still, still, still), jnp.arange(float(STEPS)))
    return u, energy


def speed_of(lens: px.Array) -> px.Array:
    return jnp.full((N, N), 0.5).at[:, 20:34].set(0.5 - 0.25 * px.nn.sigmoid(lens))


@px.jit
def improve(lens: px.Array) -> px.Array:
    gain = lambda lens: simulate(speed_of(lens))[1][38:43, 60:65].mean()  # noqa: E731
    slope: px.Array = px.grad(gain)(lens)
    return lens + 0.5 * slope / jnp.abs(slope).max()


lens = jnp.full((N, 14), -1.0)
start = simulate(speed_of(lens))[1]
for _ in range(25):
    lens = improve(lens)
figure, axes = plt.subplots(1, 3, figsize=(6.6, 2.4), layout="constrained")
focused = simulate(speed_of(lens))[1]
for place, image, title in zip(axes, [start, focused, speed_of(lens)], ["before", "after", "speed"], strict=True):
    place.imshow(image, cmap="inferno" if title != "speed" else "viridis", vmax=None if title == "speed" else 60)
    place.set_title(title, fontsize=9)
    place.axis("off")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "wave_lens.png", dpi=110)
