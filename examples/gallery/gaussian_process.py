"""Gaussian process.

Length and noise of the process maximise the likelihood, by its gradient through a Cholesky factorization.
"""

import sys

import matplotlib.pyplot as plt

import purax as px
import purax.numpy as jnp
from purax.scipy.linalg import cho_solve
from purax.scipy.optimize import minimize

x = 10 * px.random.uniform(px.random.key(0), (25,))
y = jnp.sin(x) + 0.3 * x + 0.15 * px.random.normal(px.random.key(1), x.shape)


def kernel(a: px.Array, b: px.Array, p: px.Array) -> px.Array:
    return jnp.exp(2 * p[1] - 0.5 * (a[:, None] - b[None, :]) ** 2 / jnp.exp(2 * p[0]))


def factor(p: px.Array) -> px.Array:
    return jnp.linalg.cholesky(kernel(x, x, p) + (1e-4 + jnp.exp(2 * p[2])) * jnp.eye(len(x)))


def cost(p: px.Array) -> px.Array:
    lower = factor(p)
    return 0.5 * y @ cho_solve((lower, True), y) + jnp.sum(jnp.log(jnp.diagonal(lower)))


p = minimize(cost, jnp.array([0.0, 0.0, -1.0]), method="BFGS").x
t = jnp.linspace(-1, 11, 200)
across, lower = kernel(t, x, p), factor(p)
mean = across @ cho_solve((lower, True), y)
spread = jnp.sqrt(jnp.exp(2 * p[1]) - jnp.sum(across * cho_solve((lower, True), across.T).T, axis=1))
plt.figure(figsize=(6, 3.2), layout="constrained")
plt.fill_between(t, mean - 2 * spread, mean + 2 * spread, color="tab:purple", alpha=0.2, lw=0)
plt.plot(t, mean, c="tab:purple")
plt.scatter(x, y, s=14, c="k", zorder=3)
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "gaussian_process.png", dpi=110)
