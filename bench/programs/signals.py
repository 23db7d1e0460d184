"""Signals, images and control."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.data import normal, positive_definite, uniform
from bench.programs import program


@program("spectrogram and mel filters")
def spectrogram(space: Any) -> Any:
    jnp = space.jnp

    def apply(signal: Any) -> Any:
        starts = np.arange(0, signal.shape[0] - 128, 64)
        frames = signal[starts[:, None] + np.arange(128)] * jnp.hanning(128)
        power = jnp.abs(jnp.fft.rfft(frames)) ** 2
        edges = 700 * (10 ** (jnp.linspace(0, 2500.0, 14) / 2595) - 1) / 8000 * 64
        bins = jnp.arange(65.0)
        up = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
        down = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
        filters = jnp.clip(jnp.minimum(up, down), 0.0)
        return 10 * jnp.log10(power @ filters.T + 1e-3)

    return apply, (normal(1024),)


@program("recursive filter by scan and convolution")
def filters(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(x: Any, b: Any, a: Any) -> Any:
        def step(z: Any, value: Any) -> Any:
            y = b[0] * value + z[0]
            z = jnp.append(z[1:], 0.0) + b[1:] * value - a[1:] * y
            return z, y

        _, filtered = lax.scan(step, jnp.zeros(len(b) - 1), x)
        smooth = jnp.convolve(filtered, jnp.ones(9) / 9, mode="same")
        peaks = (smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] > smooth[2:])
        return filtered, smooth, jnp.sum(peaks), jnp.correlate(x, x[:20])

    return apply, (normal(200), uniform(4, high=0.5), np.array([1.0, -0.3, 0.1, 0.05], np.float32))


@program("image: blur, Sobel, threshold, histogram")
def edges(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(image: Any) -> Any:
        def filtered(x: Any, kernel: Any) -> Any:
            return lax.conv_general_dilated(x[None, None], kernel[None, None], (1, 1), "SAME")[0, 0]

        line = jnp.exp(-0.5 * (jnp.arange(-2.0, 3.0)) ** 2)
        blurred = filtered(image, jnp.outer(line, line) / jnp.sum(line) ** 2)
        sobel = jnp.array([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
        dx, dy = filtered(blurred, sobel), filtered(blurred, sobel.T)
        size, angle = jnp.hypot(dx, dy), jnp.arctan2(dy, dx)
        counts, _ = jnp.histogram(size, bins=16, range=(0.0, 8.0))
        return (
            jnp.where(size > jnp.mean(size), angle, 0.0),
            counts,
            lax.reduce_window(size, 0.0, lax.add, (4, 4), (4, 4), "VALID"),
        )

    return apply, (uniform(32, 32),)


@program("bilinear warp of an image, gradient")
def warp(space: Any) -> Any:
    px, jnp = space.px, space.jnp

    def sample(image: Any, y: Any, x: Any) -> Any:
        y0, x0 = jnp.floor(y).astype(jnp.int32), jnp.floor(x).astype(jnp.int32)
        total = 0.0
        for dy in (0, 1):
            for dx in (0, 1):
                iy = jnp.clip(y0 + dy, 0, image.shape[0] - 1)
                ix = jnp.clip(x0 + dx, 0, image.shape[1] - 1)
                total += (1 - jnp.abs(y - y0 - dy)) * (1 - jnp.abs(x - x0 - dx)) * image[iy, ix]
        return total

    def loss(p: Any, image: Any, target: Any) -> Any:
        y, x = jnp.meshgrid(jnp.arange(16.0), jnp.arange(16.0), indexing="ij")
        c, s = jnp.cos(p[0]), jnp.sin(p[0])
        moved = sample(image, c * (y - 8) - s * (x - 8) + 8 + p[1], s * (y - 8) + c * (x - 8) + 8 + p[2])
        return jnp.mean((moved - target) ** 2)

    return px.value_and_grad(loss), (
        np.array([0.1, 0.5, -0.5], np.float32),
        uniform(16, 16),
        uniform(16, 16, seed=1),
    )


@program("linear quadratic regulator and rollout")
def regulator(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(a: Any, b: Any, q: Any, r: Any, start: Any) -> Any:
        def riccati(p: Any, _: Any) -> Any:
            k = jnp.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
            return q + a.T @ p @ (a - b @ k), k

        _, gains = lax.scan(riccati, q, None, length=20, reverse=True)

        def roll(x: Any, k: Any) -> Any:
            u = -k @ x
            return a @ x + b @ u, (x, u, x @ q @ x + u @ r @ u)

        last, (path, inputs, costs) = lax.scan(roll, start, gains)
        return last, path, inputs, jnp.sum(costs)

    return apply, (
        np.eye(4, dtype=np.float32) + 0.1 * normal(4, 4), normal(4, 2, seed=1), positive_definite(4, 4),
        positive_definite(2, 2), normal(4, seed=3),
    )  # fmt: skip


@program("sparse recovery by accelerated thresholding")
def sparse_recovery(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(a: Any, y: Any) -> Any:
        size = 1 / jnp.linalg.norm(a) ** 2

        def step(state: Any, _: Any) -> Any:
            x, z, t = state
            v = z - size * a.T @ (a @ z - y)
            new = jnp.sign(v) * jnp.maximum(jnp.abs(v) - 0.1 * size, 0)
            t_new = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
            return (new, new + (t - 1) / t_new * (new - x), t_new), 0.5 * jnp.sum((a @ new - y) ** 2)

        zeros = jnp.zeros(a.shape[1])
        return lax.scan(step, (zeros, zeros, 1.0), None, length=30)

    return apply, (normal(20, 50), normal(20, seed=1))
