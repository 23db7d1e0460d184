"""Orbits of three bodies.

The famous figure of eight, and what becomes of it when the start is a little off. The force is the gradient of the
energy.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp


def potential(q: px.Array) -> px.Array:
    a, b = jnp.array([0, 0, 1]), jnp.array([1, 2, 2])
    return -jnp.sum(1 / jnp.linalg.norm(q[a] - q[b], axis=1))


@px.jit
@px.vmap
def fly(q: px.Array, v: px.Array) -> px.Array:
    def step(state: tuple[px.Array, px.Array], _: None) -> tuple[tuple[px.Array, px.Array], px.Array]:
        q, v = state
        v = v - 0.001 * px.grad(potential)(q)
        q = q + 0.002 * v
        v = v - 0.001 * px.grad(potential)(q)
        return (q, v), q

    return px.lax.scan(step, (q, v), length=6000)[1]


q = jnp.array([[0.97000436, -0.24308753], [-0.97000436, 0.24308753], [0.0, 0.0]])
v = jnp.array([[0.46620368, 0.43236573], [0.46620368, 0.43236573], [-0.93240737, -0.86473146]])
off = jnp.array([0.0, 0.05, 0.12])
paths = fly(jnp.stack([q] * 3), v * (1 - off[:, None, None]))
figure, axes = plt.subplots(1, 3, figsize=(7, 2.2), layout="constrained")
for place, path, part in zip(axes, paths, off, strict=True):
    for body in range(3):
        place.plot(path[:, body, 0], path[:, body, 1], lw=0.7)
    place.set_title(f"{100 * float(part):.0f} % slower", fontsize=9)
    place.set(xlim=(-1.6, 1.6), ylim=(-0.9, 0.9), xticks=[], yticks=[])
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "orbits.png", dpi=110)
