"""Simulations, solvers and inverse problems of physics, chemistry and engineering."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.data import normal, positive_definite, uniform
from bench.programs import program


@program("n-body leapfrog by fori_loop")
def n_body(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def accelerations(x: Any, mass: Any) -> Any:
        d = x[None] - x[:, None]
        r2 = jnp.sum(d**2, -1) + 0.01
        return jnp.sum(mass[None, :, None] * d / r2[..., None] ** 1.5, axis=1)

    def apply(x: Any, v: Any, mass: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            x, v = state
            v = v + 0.005 * accelerations(x, mass)
            x = x + 0.01 * v
            return x, v + 0.005 * accelerations(x, mass)

        x, v = lax.fori_loop(0, 20, step, (x, v))
        return x, v, 0.5 * jnp.sum(mass * jnp.sum(v**2, -1))

    return apply, (normal(12, 3), normal(12, 3, seed=1, scale=0.1), uniform(12, seed=2, low=0.5, high=1.5))


@program("heat equation, gradient with respect to the diffusivity")
def heat(space: Any) -> Any:
    px, jnp, lax = space.px, space.jnp, space.lax

    def loss(k: Any, field: Any, target: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            laplacian = -4 * u
            for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
                laplacian = laplacian + jnp.roll(u, shift, axis)
            return u + 0.1 * k * laplacian, None

        last, _ = lax.scan(step, field, None, length=40)
        return jnp.mean((last - target) ** 2)

    return px.value_and_grad(loss), (uniform(20, 20), normal(20, 20), normal(20, 20, seed=1))


@program("lattice Boltzmann step")
def lattice_boltzmann(space: Any) -> Any:
    jnp = space.jnp
    directions = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
    weights = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, np.float32)

    def apply(f: Any, wall: Any) -> Any:
        density = jnp.sum(f, -1)
        velocity = jnp.einsum("xyq,qd->xyd", f, directions.astype(np.float32)) / density[..., None]
        projected = jnp.einsum("xyd,qd->xyq", velocity, directions.astype(np.float32))
        square = jnp.sum(velocity**2, -1, keepdims=True)
        equal = density[..., None] * weights * (1 + 3 * projected + 4.5 * projected**2 - 1.5 * square)
        f = f - (f - equal) / 0.6
        moved = [jnp.roll(f[..., q], tuple(directions[q]), (0, 1)) for q in range(9)]
        f = jnp.stack(moved, -1)
        return jnp.where(wall[..., None], f[..., np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])], f)

    return apply, (1 + 0.01 * normal(24, 32, 9), normal(24, 32, seed=1) > 1.5)


@program("conjugate gradients by while_loop")
def conjugate_gradients(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(a: Any, b: Any) -> Any:
        def go_on(state: Any) -> Any:
            return (state[3] > 1e-8) & (state[4] < 50)

        def step(state: Any) -> Any:
            x, r, p, rs, i = state
            ap = a @ p
            alpha = rs / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            return x, r, r + new / rs * p, new, i + 1

        return lax.while_loop(go_on, step, (jnp.zeros_like(b), b, b, b @ b, 0))[0]

    return apply, (positive_definite(24, 24), normal(24))


@program("Newton's method for a system, vmap")
def newton(space: Any) -> Any:
    px, jnp = space.px, space.jnp

    def residual(x: Any, c: Any) -> Any:
        return jnp.array([x[0] ** 2 + x[1] ** 2 - c, jnp.exp(x[0]) * x[1] - 1.0, x[2] - x[0] * x[1]])

    def solve(c: Any) -> Any:
        x = jnp.array([1.0, 0.5, 0.5])
        for _ in range(6):
            x = x - jnp.linalg.solve(px.jacfwd(residual)(x, c) + 1e-3 * jnp.eye(3), residual(x, c))
        return x

    return px.vmap(solve), (uniform(10, low=1.5, high=3.0),)


@program("Kepler orbits and coordinate rotations")
def kepler(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(mean: Any, e: Any, tilt: Any, node: Any) -> Any:
        anomaly = lax.fori_loop(
            0, 8, lambda _, x: x - (x - e * jnp.sin(x) - mean) / (1 - e * jnp.cos(x)), mean
        )
        true = 2 * jnp.arctan2(jnp.sqrt(1 + e) * jnp.sin(anomaly / 2), jnp.sqrt(1 - e) * jnp.cos(anomaly / 2))
        radius = 1 - e * jnp.cos(anomaly)
        x, y = radius * jnp.cos(true), radius * jnp.sin(true)
        zero, one = jnp.zeros_like(tilt), jnp.ones_like(tilt)
        about_x = jnp.array(
            [[one, zero, zero], [zero, jnp.cos(tilt), -jnp.sin(tilt)], [zero, jnp.sin(tilt), jnp.cos(tilt)]]
        )
        about_z = jnp.array(
            [[jnp.cos(node), -jnp.sin(node), zero], [jnp.sin(node), jnp.cos(node), zero], [zero, zero, one]]
        )
        place = about_z @ about_x @ jnp.stack([x, y, jnp.zeros_like(x)])
        return place, jnp.degrees(jnp.arcsin(place[2] / jnp.linalg.norm(place, axis=0))), jnp.hypot(x, y)

    return apply, (uniform(40, high=6.0), np.float32(0.3), np.float32(0.4), np.float32(1.1))


@program("molecular dynamics: Lennard-Jones in a periodic box")
def molecular_dynamics(space: Any) -> Any:
    px, jnp, lax = space.px, space.jnp, space.lax

    def energy(x: Any) -> Any:
        d = x[:, None] - x
        d = d - 5.0 * jnp.round(d / 5.0)
        r2 = jnp.sum(d**2, -1) + jnp.eye(x.shape[0]) * 1e6
        s6 = (1 / r2) ** 3
        return 2.0 * jnp.sum(jnp.where(r2 < 6.25, s6**2 - s6, 0.0))

    def apply(x: Any, v: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            x, v, force = state
            v = v + 0.0005 * force
            x = (x + 0.001 * v) % 5.0
            force = -px.grad(energy)(x)
            v = v + 0.0005 * force
            return (x, v, force), (energy(x), 0.5 * jnp.sum(v**2))

        return lax.scan(step, (x, v, -px.grad(energy)(x)), None, length=10)

    grid = np.stack(np.meshgrid(*[np.arange(3) * 1.6] * 3), -1).reshape(-1, 3).astype(np.float32)
    return apply, (grid, normal(27, 3, scale=0.1))


@program("spectral solver: Kuramoto-Sivashinsky")
def spectral(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(u: Any) -> Any:
        k = jnp.fft.rfftfreq(64, 1 / 64) * 2 * jnp.pi / 22
        linear = k**2 - k**4

        def step(v: Any, _: Any) -> Any:
            real = jnp.fft.irfft(v, 64)
            nonlinear = -0.5j * k * jnp.fft.rfft(real**2)
            v = (v + 0.01 * nonlinear) / (1 - 0.01 * linear)
            return v, jnp.max(jnp.abs(real))

        v, peaks = lax.scan(step, jnp.fft.rfft(u), None, length=20)
        return jnp.fft.irfft(v, 64), peaks

    return apply, (normal(64, scale=0.1),)


@program("implicit differentiation of a fixed point")
def fixed_point(space: Any) -> Any:
    px, jnp, lax = space.px, space.jnp, space.lax

    def update(w: Any, x: Any, z: Any) -> Any:
        return jnp.tanh(w @ z + x)

    @px.custom_vjp
    def solve(w: Any, x: Any) -> Any:
        def go_on(state: Any) -> Any:
            return jnp.linalg.norm(state[0] - state[1]) > 1e-6

        return lax.while_loop(
            go_on, lambda s: (s[1], update(w, x, s[1])), (jnp.ones_like(x), jnp.zeros_like(x))
        )[1]

    def forward(w: Any, x: Any) -> Any:
        z = solve(w, x)
        return z, (w, x, z)

    def backward(kept: Any, g: Any) -> Any:
        w, x, z = kept
        back = px.vjp(lambda z: update(w, x, z), z)[1]
        u = lax.fori_loop(0, 30, lambda _, u: g + back(u)[0], g)
        return px.vjp(lambda w, x: update(w, x, z), w, x)[1](u)

    solve.defvjp(forward, backward)
    return px.grad(lambda w, x: jnp.sum(solve(w, x) ** 2), argnums=(0, 1)), (
        normal(10, 10, scale=0.1),
        normal(10, seed=1),
    )


@program("finite elements: assembly and solution of a beam")
def finite_elements(space: Any) -> Any:
    px, jnp = space.px, space.jnp

    def apply(stiffness: Any, load: Any) -> Any:
        count = stiffness.shape[0]
        local = jnp.array([[12.0, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]])
        places = 2 * np.arange(count)[:, None] + np.arange(4)
        k = jnp.zeros((2 * count + 2, 2 * count + 2))
        k = k.at[places[:, :, None], places[:, None, :]].add(stiffness[:, None, None] * local)
        u = jnp.linalg.solve(k[2:, 2:], jnp.zeros(2 * count).at[::2].set(load))
        return 0.5 * u[::2] @ load

    return px.value_and_grad(apply), (uniform(12, low=1.0, high=2.0), normal(12, scale=0.01))


@program("adaptive integrator (Dormand-Prince) by while_loop")
def adaptive(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax
    a = [[1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
         [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
         [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
         [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]]  # fmt: skip
    error = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]

    def apply(y: Any, mu: Any) -> Any:
        def field(y: Any) -> Any:
            return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

        def step(state: Any) -> Any:
            t, y, h, count = state
            ks = [field(y)]
            for row in a:
                ks.append(field(y + h * sum(c * k for c, k in zip(row, ks, strict=False) if c)))
            new = y + h * sum(c * k for c, k in zip(a[-1], ks, strict=False) if c)
            wrong = jnp.sqrt(
                jnp.mean(
                    (h * sum(c * k for c, k in zip(error, ks, strict=True) if c) / (1e-4 + 1e-4 * jnp.abs(y)))
                    ** 2
                )
            )
            good = wrong <= 1.0
            h = h * jnp.clip(0.9 * wrong**-0.2, 0.2, 5.0)
            return jnp.where(good, t + state[2], t), jnp.where(good, new, y), h, count + 1

        return lax.while_loop(lambda s: (s[0] < 1.0) & (s[3] < 200), step, (0.0, y, 0.01, 0))[1]

    return apply, (np.array([1.0, 0.0], np.float32), np.float32(2.0))
