"""Five hundred double pendulums.

The equations of motion follow from the Lagrangian by derivatives; `vmap` swings pendulums whose starts differ by a
tenth of a degree at most. After some seconds they have nothing in common.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp


def lagrangian(q: px.Array, v: px.Array) -> px.Array:
    kinetic = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * jnp.cos(q[0] - q[1])
    return kinetic + 9.81 * (2 * jnp.cos(q[0]) + jnp.cos(q[1]))


def acceleration(q: px.Array, v: px.Array) -> px.Array:
    """Euler and Lagrange's equation, solved for the acceleration."""
    mass = px.hessian(lagrangian, 1)(q, v)
    force = px.grad(lagrangian, 0)(q, v) - px.jacobian(px.grad(lagrangian, 1), 0)(q, v) @ v
    return jnp.linalg.solve(mass, force)


@px.jit
@px.vmap
def swing(q: px.Array) -> px.Array:
    def step(state: tuple[px.Array, px.Array], _: None) -> tuple[tuple[px.Array, px.Array], px.Array]:
        q, v = state
        middle = v + 0.005 * acceleration(q, v)
        q = q + 0.01 * middle
        v = middle + 0.005 * acceleration(q, middle)
        return (q, v), q

    return px.lax.scan(step, (q, jnp.zeros(2)), length=1500)[1]


starts = jnp.stack([jnp.linspace(2.0, 2.002, 500), jnp.full(500, 2.5)], axis=1)
angles = swing(starts)[::10]
time = jnp.arange(1500) * 0.01
plt.figure(figsize=(6, 3.2), layout="constrained")
plt.plot(time, angles[:, :, 1].T, lw=0.6, alpha=0.6, c="tab:purple")
plt.xlabel("seconds")
plt.ylabel("angle of the lower arm")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "double_pendulums.png", dpi=110)
