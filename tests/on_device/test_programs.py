"""Whole programs on the device that the tests run on, against the CPU: control flow, linear algebra, transforms, sorts,
random numbers, calls of Python, and programs that were exported.
"""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import export, lax
from purax.scipy import linalg

DEVICE, CPU = px.devices()[0], px.devices("cpu")[0]
PLATFORM = {"gpu": "cuda"}.get(DEVICE.platform, DEVICE.platform)
generator = np.random.default_rng(0)
x = generator.normal(size=(6, 6)).astype(np.float32)
positive = (x @ x.T + 6 * np.eye(6)).astype(np.float32)
long = generator.normal(size=(3, 1000)).astype(np.float32)
integers = generator.integers(-1000, 1000, (3, 1000)).astype(np.int32)
key = px.random.key(3)


def newton(a):
    def better(state):
        step, y = state
        return step + 1, 0.5 * y @ (3 * jnp.eye(6) - a @ y @ y)

    start = (0, jnp.eye(6) / jnp.sqrt(jnp.trace(a)))
    return lax.while_loop(lambda state: state[0] < 20, better, start)[1]


def recurrent(x):
    def step(carry, row):
        carry = jnp.tanh(carry @ x + row)
        return carry, jnp.where(row > 0, carry, lax.cond(row.sum() > 0, jnp.sin, jnp.cos, carry))

    return lax.scan(step, jnp.zeros(6), x)


def network(x):
    hidden = px.nn.gelu(x @ x.T)
    return px.nn.softmax(hidden @ x, axis=-1).var() + jnp.linalg.slogdet(x @ x.T + jnp.eye(6))[1]


PROGRAMS = {
    "while": (newton, positive, 2e-4),
    "scan and cond": (recurrent, x, 2e-5),
    "gradient": (px.grad(network), x, 2e-4),
    "second derivative": (px.hessian(lambda v: network(x + v)), np.float32(0.1), 2e-3),
    "batch of gradients": (px.vmap(px.grad(lambda v, w: jnp.sum(jnp.sin(v) * w)), (0, None)), (x, x[0]), 2e-5),
    "checkpoint": (px.grad(px.checkpoint(network)), x, 2e-4),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x, stable=True), lax.top_k(x, 5)), long, 0),
    "sort integers": (lambda x: (jnp.sort(x, descending=True), jnp.unique(x, size=50), lax.top_k(x, 7)), integers, 0),
    "running": (lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 1), lax.cumlogsumexp(x, 1)), long, 2e-3),
    "associative scan": (lambda x: lax.associative_scan(jnp.multiply, x, axis=1), long[:, :60], 2e-4),
    "running integers": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 1)), integers, 0),
    "fft": (lambda x: (jnp.fft.fft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.fft2(x)), long, 2e-3),
    "scatter": (lambda x: jnp.zeros(100).at[x.astype(np.int32) % 100].add(1.0), long, 0),
    "segments": (lambda x: px.ops.segment_sum(x, x % 7, 7), integers[0], 0),
    "random bits": (lambda k: (px.random.bits(k, (1000,)), px.random.randint(k, (99,), 0, 1000)), key, 0),
    "random numbers": (lambda k: (px.random.uniform(k, (99,)), px.random.normal(k, (99,))), key, 2e-6),
    "permutation": (lambda k: (px.random.permutation(k, 500), px.random.choice(k, 50, (9,), False)), key, 0),
    "cholesky": (lambda a: jnp.linalg.cholesky(a), positive, 2e-5),
    "solve": (lambda a: (jnp.linalg.solve(a, a[:, :2]), jnp.linalg.inv(a), jnp.linalg.det(a)), positive, 2e-4),
    "eigenvalues": (lambda a: (jnp.linalg.eigvalsh(a), jnp.linalg.svd(a, compute_uv=False)), positive, 2e-4),
    "qr": (lambda a: jnp.linalg.qr(a), x, 2e-5),
    "least squares": (lambda a: (jnp.linalg.lstsq(a[:, :3], a[:, 3])[0], jnp.linalg.pinv(a)), positive, 2e-4),
    "expm": (lambda a: linalg.expm(a / 10), positive, 2e-4),
    "sqrtm": (lambda a: linalg.sqrtm(a).real, positive, 2e-4),
    "hessenberg": (lambda a: abs(linalg.hessenberg(a)), x, 2e-5),
    "polynomial roots": (lambda v: jnp.sort(abs(jnp.roots(v, strip_zeros=False))), x[0], 2e-4),
    "schur": (lambda a: jnp.sort(abs(jnp.diagonal(linalg.schur(a, output="complex")[0]))), x, 2e-4),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_device_computes_what_the_cpu_does(name):
    function, arguments, tolerance = PROGRAMS[name]
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    results = []
    with px.default_matmul_precision("highest"):
        for device in (DEVICE, CPU):
            placed = px.device_put(arguments, device)
            results.append(px.jit(function)(*placed))
            assert px.tree.leaves(results[-1])[0].devices() == {device}
    for found, expected in zip(*map(px.tree.leaves, results), strict=True):
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if tolerance == 0:
            np.testing.assert_array_equal(found, expected)
        else:
            scale = max(1.0, np.abs(expected).max(initial=0, where=np.isfinite(expected)))
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def test_python_is_called_from_programs_on_the_device():
    seen = []

    @px.jit
    def f(x):
        px.debug.callback(lambda y: seen.append(float(y)), x.sum(), ordered=True)
        y = px.pure_callback(np.linalg.eigvals, px.ShapeDtypeStruct((6,), np.complex64), x @ x.T)
        return jnp.sort(y.real)

    value = px.device_put(x, DEVICE)
    with px.default_matmul_precision("highest"):
        np.testing.assert_allclose(f(value), np.linalg.eigvalsh(x @ x.T), rtol=1e-3, atol=1e-3)
    px.effects_barrier()
    np.testing.assert_allclose(seen, [x.sum()], rtol=1e-4)

    def wrong(y):
        raise ValueError("not this one")

    with pytest.raises(Exception, match="not this one"):
        px.block_until_ready(px.jit(lambda v: px.pure_callback(wrong, v, v))(value))
    np.testing.assert_allclose(f(value), f(value))


def test_what_was_exported_for_several_platforms_runs_here():
    """A machine without the device exports for it; here the bytes are read and run."""
    function = px.jit(lambda v: (jnp.linalg.solve(v, v[0]), jnp.sort(v), jnp.tanh(v) @ v))
    with px.default_matmul_precision("highest"):
        platforms = ["cpu", "cuda", "rocm", "tpu"]
        data = export.export(function, platforms=platforms)(
            px.ShapeDtypeStruct((6, 6), np.float32)
        ).serialize()
        restored = export.deserialize(data)
        assert set(restored.platforms) == set(platforms)
        found = px.jit(restored.call)(px.device_put(positive, DEVICE))
        for a, b in zip(found, function(px.device_put(positive, CPU)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    assert PLATFORM in platforms or DEVICE.platform not in ("cpu", "gpu", "tpu")
