"""Elementwise chains, unrolled scans, special functions, integrators, Hessians, networks, sorts: the mixed programs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.data import integers, normal, uniform
from bench.models import lstm_loss, lstm_parameters, weight
from bench.programs import program


@program("200 elementwise operations")
def elementwise(space: Any) -> Any:
    jnp = space.jnp

    def apply(x: Any) -> Any:
        for step in range(50):
            x = jnp.sin(x) * 0.9 + step * 0.01
            x = jnp.exp(-jnp.abs(x))
        return x

    return apply, (normal(8, 16),)


def unrolled(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(x: Any) -> Any:
        def body(carry: Any, t: Any) -> Any:
            carry = jnp.sin(carry) * t + jnp.cos(carry) + jnp.tan(carry * 0.1)
            return carry, jnp.sum(carry)

        last, sums = lax.scan(body, x, jnp.linspace(0.0, 1.0, 100), unroll=5)
        return jnp.sum(last) + jnp.sum(sums)

    return apply


@program("scan with unroll=5")
def unrolled_scan(space: Any) -> Any:
    return unrolled(space), (normal(16),)


@program("scan with unroll=5, gradient")
def unrolled_scan_gradient(space: Any) -> Any:
    return space.px.value_and_grad(unrolled(space)), (normal(16),)


@program("special functions, gradient")
def special_functions(space: Any) -> Any:
    jnp, special = space.jnp, space.special

    def apply(a: Any, b: Any) -> Any:
        values = special.betaln(a, b) + special.gammainc(a, b) + special.digamma(a) * special.erf(b)
        return jnp.sum(values + special.gammaln(a) + special.betainc(2.0, 3.0, a / 4) + special.log_ndtr(b))

    return space.px.grad(apply), (uniform(20, low=0.5, high=3.0), uniform(20, seed=1, low=0.5, high=3.0))


@program("gamma and beta samples, gradient")
def gamma_samples(space: Any) -> Any:
    px, jnp, random = space.px, space.jnp, space.random

    def apply(a: Any, seed: Any) -> Any:
        first, second, third = random.split(random.key(seed), 3)
        gammas = random.gamma(first, a, (64,))
        return (
            jnp.sum(gammas**2)
            + jnp.sum(random.beta(second, a, 2.0, (64,)))
            + random.dirichlet(third, a * jnp.ones(4))[0]
        )

    return px.grad(apply), (np.float32(1.5), np.int32(3))


@program("RK4 by scan, vmap(value_and_grad)")
def runge_kutta(space: Any) -> Any:
    px, jnp, lax = space.px, space.jnp, space.lax

    def field(state: Any, mass: Any) -> Any:
        x, v = state
        return v, -jnp.sin(x) * mass - 0.1 * v

    def step(mass: Any, h: float, state: Any, _: Any) -> Any:
        moved = lambda d, s: tuple(a + s * b for a, b in zip(state, d, strict=True))  # noqa: E731
        k1 = field(state, mass)
        k2 = field(moved(k1, h / 2), mass)
        k3 = field(moved(k2, h / 2), mass)
        k4 = field(moved(k3, h), mass)
        mean = tuple((a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        state = moved(mean, h)
        return state, state[0]

    def loss(mass: Any, start: Any) -> Any:
        _, path = lax.scan(partial(step, mass, 0.05), (start, jnp.zeros_like(start)), None, length=100)
        return jnp.mean(path**2)

    return px.vmap(px.value_and_grad(loss), in_axes=(None, 0)), (np.float32(1.3), normal(32))


@program("Hessian of a pair potential")
def pair_potential(space: Any) -> Any:
    px, jnp = space.px, space.jnp

    def energy(positions: Any) -> Any:
        r = positions.reshape(-1, 3)
        i, j = np.triu_indices(r.shape[0], 1)
        d2 = jnp.sum((r[i] - r[j]) ** 2, axis=-1)
        inverse = 1.0 / d2**3
        return jnp.sum(4 * (inverse**2 - inverse) + jnp.exp(-jnp.sqrt(d2)))

    return px.hessian(energy), (normal(30, seed=4, scale=2.0),)


@program("MLP with Adam")
def adam(space: Any) -> Any:
    px, jnp, nn = space.px, space.jnp, space.nn
    tree = px.tree_util

    def loss(layers: Any, x: Any, y: Any) -> Any:
        for layer in layers[:-1]:
            x = nn.gelu(x @ layer["w"] + layer["b"])
        logits = nn.log_softmax(x @ layers[-1]["w"] + layers[-1]["b"])
        return -jnp.mean(jnp.sum(logits * nn.one_hot(y, 10), axis=-1))

    def step(layers: Any, first: Any, second: Any, count: Any, x: Any, y: Any) -> Any:
        value, grads = px.value_and_grad(loss)(layers, x, y)
        count = count + 1
        first = tree.tree_map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = tree.tree_map(lambda v, g: 0.999 * v + 0.001 * g**2, second, grads)

        def update(p: Any, m: Any, v: Any) -> Any:
            return p - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

        return tree.tree_map(update, layers, first, second), first, second, count, value

    sizes = (20, 64, 64, 32, 10)
    layers = [
        {"w": weight(a, b, seed=a + b), "b": np.zeros(b, np.float32)}
        for a, b in zip(sizes[:-1], sizes[1:], strict=True)
    ]
    zeros = [{name: np.zeros_like(value) for name, value in layer.items()} for layer in layers]
    return step, (layers, zeros, zeros, np.int32(0), normal(32, 20), integers(10, 32))


@program("LSTM gradient")
def lstm(space: Any) -> Any:
    return space.px.value_and_grad(lstm_loss(space)), (lstm_parameters(16, 32), normal(20, 4, 16))


@program("convnet gradient")
def convnet(space: Any) -> Any:
    px, jnp, nn, lax = space.px, space.jnp, space.nn, space.lax

    def loss(parameters: Any, images: Any, labels: Any) -> Any:
        x = images
        for kernel in parameters["kernels"]:
            x = lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            mean, var = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
            x = nn.relu((x - mean) * lax.rsqrt(var + 1e-5))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logits = nn.log_softmax(x.reshape(x.shape[0], -1) @ parameters["dense"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))

    kernels = [normal(3, 3, a, b, seed=b, scale=(9 * a) ** -0.5) for a, b in ((3, 16), (16, 32), (32, 32))]
    parameters = {"kernels": kernels, "dense": weight(4 * 4 * 32, 10, seed=9)}
    return px.value_and_grad(loss), (parameters, normal(8, 32, 32, 3), integers(10, 8))


@program("sort, quantile, unique, scatter")
def order_statistics(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(x: Any, i: Any) -> Any:
        ordered = jnp.sort(x, axis=0)
        quantiles = jnp.quantile(x, jnp.array([0.1, 0.5, 0.9]), axis=0)
        values, counts = jnp.unique(i, size=10, return_counts=True)
        sums = jnp.zeros((10, x.shape[1])).at[i].add(x)
        top, where = lax.top_k(x.T, 3)
        return (
            ordered,
            quantiles,
            values,
            counts,
            sums,
            top,
            where,
            jnp.argsort(i),
            jnp.median(x),
            jnp.cumsum(x, 0),
        )

    return apply, (normal(100, 8), integers(10, 100))


@program("unrolled chain of 20,000 operations", heavy=True)
def long_chain(space: Any) -> Any:
    jnp = space.jnp

    def apply(x: Any) -> Any:
        for step in range(10_000):
            x = jnp.sin(x) + step % 7
        return x

    return apply, (normal(8),)
