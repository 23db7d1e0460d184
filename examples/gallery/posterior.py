"""A banana, sampled.

Hamiltonian Monte Carlo: a hundred chains at once on a density that is hard to walk on.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp


def log_density(p: px.Array) -> px.Array:
    return -0.5 * (p[0] ** 2 / 4 + (p[1] - 0.5 * p[0] ** 2) ** 2 / 0.3)


def transition(q: px.Array, key: px.Array) -> tuple[px.Array, px.Array]:
    kick, choice = px.random.split(key)
    p = start = px.random.normal(kick, q.shape)
    new = q
    for _ in range(10):
        p = p + 0.075 * px.grad(log_density)(new)
        new = new + 0.15 * p
        p = p + 0.075 * px.grad(log_density)(new)
    gain = log_density(new) - log_density(q) + 0.5 * (start @ start - p @ p)
    q = jnp.where(jnp.log(px.random.uniform(choice)) < gain, new, q)
    return q, q


@px.jit
@px.vmap
def chain(key: px.Array) -> px.Array:
    return px.lax.scan(transition, jnp.zeros(2), px.random.split(key, 100))[1]


samples = chain(px.random.split(px.random.key(0), 100))
points = samples[:, 20:].reshape(-1, 2)
plt.figure(figsize=(4, 3.2), layout="constrained")
plt.scatter(points[:, 0], points[:, 1], s=1, alpha=0.3, c="tab:purple")
plt.plot(samples[0, :40, 0], samples[0, :40, 1], c="k", lw=0.6)
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "posterior.png", dpi=110)
