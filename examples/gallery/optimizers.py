"""Ways down a valley.

Four methods on Rosenbrock's function, each a function of a gradient and a state.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp


def height(p: px.Array) -> px.Array:
    return (1 - p[0]) ** 2 + 20 * (p[1] - p[0] ** 2) ** 2


slope = px.grad(height)


def descent(p: px.Array, i: px.Array, m: px.Array, s: px.Array) -> tuple[px.Array, px.Array, px.Array]:
    return p - 0.004 * slope(p), m, s


def momentum(p: px.Array, i: px.Array, m: px.Array, s: px.Array) -> tuple[px.Array, px.Array, px.Array]:
    m = 0.9 * m - 0.002 * slope(p)
    return p + m, m, s


def adam(p: px.Array, i: px.Array, m: px.Array, s: px.Array) -> tuple[px.Array, px.Array, px.Array]:
    g = slope(p)
    m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
    return p - 0.05 * (m / (1 - 0.9**i)) / (jnp.sqrt(s / (1 - 0.999**i)) + 1e-8), m, s


def newton(p: px.Array, i: px.Array, m: px.Array, s: px.Array) -> tuple[px.Array, px.Array, px.Array]:
    return p - 0.2 * jnp.linalg.solve(px.hessian(height)(p), slope(p)), m, s


x, y = jnp.meshgrid(jnp.linspace(-1.6, 1.4, 150), jnp.linspace(-0.5, 2.2, 150))
plt.figure(figsize=(5.4, 3.6), layout="constrained")
heights = px.vmap(px.vmap(height))(jnp.stack([x, y], -1))
plt.contour(x, y, heights, jnp.geomspace(0.1, 100, 16), cmap="Greys_r", linewidths=0.5)
for method in (descent, momentum, adam, newton):

    def step(state: tuple[px.Array, ...], i: px.Array) -> tuple[tuple[px.Array, ...], px.Array]:
        new = method(state[0], i, *state[1:])  # noqa: B023
        return new, new[0]

    begin = (jnp.array([-1.3, 1.9]), jnp.zeros(2), jnp.zeros(2))
    path = px.jit(lambda begin: px.lax.scan(step, begin, jnp.arange(1.0, 250.0))[1])(begin)  # noqa: B023
    plt.plot(path[:, 0], path[:, 1], lw=1.2, label=method.__name__)
plt.plot(1, 1, "k*")
plt.ylim(-0.5, 2.2)
plt.legend(fontsize=8)
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "optimizers.png", dpi=110)
