"""Factorizations of many small matrices by native kernels: as accurate as LAPACK's, for matrices of every kind."""

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.config import config
from purax.primitives.linalg import lapack
from purax.primitives.linalg.eigen import eigh_p
from purax.primitives.linalg.orthogonal import qr_p
from purax.primitives.linalg.singular_values import svd_p
from purax.xla import native

pytestmark = pytest.mark.skipif(native.build() is None, reason="the native kernels were not built")
GENERATOR = np.random.default_rng(11)

SHAPES = (
    (17, 1, 1),
    (16, 2, 2),
    (33, 3, 3),
    (40, 16, 16),
    (17, 5, 9),
    (19, 9, 5),
    (16, 7, 1),
    (16, 1, 7),
    (2, 9, 24, 13),
)


@pytest.fixture
def always_rotating(monkeypatch):
    """Jacobi's methods also where vectors are too short for them to win."""
    monkeypatch.setattr(lapack, "_VECTOR_TO_ROTATE", 0)


def matrices(shape, dtype):
    """Random matrices, and singular, graded, huge, tiny, integer and constant ones among them."""
    x = GENERATOR.normal(size=shape)
    rows, columns = shape[-2:]
    each = x.reshape(-1, rows, columns)
    each[1] = 0
    each[2] = each[2, :, :1]
    each[3] = np.eye(rows, columns)
    each[4] *= 1e-30
    each[5] *= 1e30
    each[6] = 1
    each[7] *= 10.0 ** -np.arange(columns)
    each[8] *= (10.0 ** -np.arange(rows))[:, None]
    each[9] = 0
    each[9, 0, 0] = 3
    each[10] = GENERATOR.integers(-1, 2, (rows, columns))
    each[11, :, -1] = 0
    return x.astype(dtype)


def largest(x):
    """The largest magnitude of each matrix, as a matrix; 1 for zero."""
    scale = np.abs(x).max((-1, -2), keepdims=True)
    return np.where(scale == 0, 1, scale).astype(np.float64)


def from_orthonormal(q):
    """How far the columns of `q` are from orthonormal."""
    q = np.asarray(q, np.float64)
    return np.abs(np.swapaxes(q, -1, -2) @ q - np.eye(q.shape[-1])).max()


def lowered(function, *arguments):
    return px.jit(function).lower(*arguments).as_text()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_qr(dtype):
    bound = 40 * np.finfo(dtype).eps
    xs = [matrices(shape, dtype) for shape in SHAPES]

    def everything(xs):
        return [[qr_p.bind(x, pivoting=False, full_matrices=full) for full in (False, True)] for x in xs]

    xs = [jnp.asarray(x, dtype=x.dtype) for x in xs]
    assert "lapack" not in lowered(everything, xs)
    for x, both in zip(xs, px.jit(everything)(xs), strict=True):
        x = np.asarray(x)
        for full, (q, r) in zip((False, True), both, strict=True):
            expected = [(y.shape, y.dtype) for y in qr_p.host(x, pivoting=False, full_matrices=full)]
            assert [(y.shape, y.dtype) for y in (q, r)] == expected
            assert from_orthonormal(q) < bound
            assert not np.tril(r, -1).any()
            product = np.asarray(q, np.float64) @ np.asarray(r, np.float64)
            assert (np.abs(product - x) / largest(x)).max() < bound
            random = [0, *range(12, len(x))] if x.ndim == 3 else (0, 0)
            own = qr_p.host(x[random], pivoting=False, full_matrices=full)[1]  # the signs are LAPACK's
            np.testing.assert_allclose(np.asarray(r)[random], own, atol=30 * bound)


@pytest.mark.usefixtures("always_rotating")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_svd(dtype):
    bound = 25 * np.finfo(dtype).eps
    xs = [matrices(shape, dtype) for shape in SHAPES]

    def everything(xs):
        return [
            [
                *(
                    svd_p.bind(x, full_matrices=full, compute_uv=True, algorithm=None)
                    for full in (False, True)
                ),
                svd_p.bind(x, full_matrices=False, compute_uv=False, algorithm=None),
            ]
            for x in xs
        ]

    xs = [jnp.asarray(x, dtype=x.dtype) for x in xs]
    assert "lapack" not in lowered(everything, xs)
    for x, (*both, (values,)) in zip(xs, px.jit(everything)(xs), strict=True):
        x = np.asarray(x)
        k = min(x.shape[-2:])
        exact = np.linalg.svd(x.astype(np.float64), compute_uv=False)
        scale = np.maximum(exact[..., :1], 1e-300)
        assert (np.abs(np.asarray(values) - exact) / scale).max() < bound
        for full, (s, u, vt) in zip((False, True), both, strict=True):
            assert (np.diff(s) <= 0).all()
            assert (np.abs(np.asarray(s) - exact) / scale).max() < bound
            assert u.shape[-1] == (x.shape[-2] if full else k)
            assert vt.shape[-2] == (x.shape[-1] if full else k)
            assert from_orthonormal(u) < bound
            assert from_orthonormal(np.swapaxes(vt, -1, -2)) < bound
            left, right = np.asarray(u, np.float64)[..., :k], np.asarray(vt, np.float64)[..., :k, :]
            product = (left * np.asarray(s)[..., None, :]) @ right
            assert (np.abs(product - x) / largest(x)).max() < bound


@pytest.mark.usefixtures("always_rotating")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigh(dtype):
    bound = 25 * np.finfo(dtype).eps
    xs = []
    for shape in SHAPES:
        if shape[-1] == shape[-2]:
            x = matrices(shape, dtype)
            x = (x + np.swapaxes(x, -1, -2)) / 2
            xs.append(jnp.asarray(x, dtype=x.dtype))

    def everything(xs):
        return [[eigh_p.bind(x, lower=lower, algorithm=None) for lower in (False, True)] for x in xs]

    assert "lapack" not in lowered(everything, xs)
    for x, both in zip(xs, px.jit(everything)(xs), strict=True):
        x = np.asarray(x)
        exact = np.linalg.eigvalsh(x.astype(np.float64))
        scale = np.maximum(np.abs(exact).max(-1, keepdims=True), 1e-300)
        for v, w in both:
            assert (np.diff(w) >= 0).all()
            assert (np.abs(np.asarray(w) - exact) / scale).max() < bound
            assert from_orthonormal(v) < bound
            wide = np.asarray(v, np.float64)
            product = (wide * np.asarray(w)[..., None, :]) @ np.swapaxes(wide, -1, -2)
            assert (np.abs(product - x) / largest(x)).max() < bound


@pytest.mark.usefixtures("always_rotating")
def test_eigh_reads_one_triangle():
    x = GENERATOR.normal(size=(20, 4, 4)).astype(np.float32)
    for lower in (False, True):
        half = np.tril(x) if lower else np.triu(x)
        whole = half + np.swapaxes(half, -1, -2) * (1 - np.eye(4, dtype=np.float32))
        other = np.triu(np.full((4, 4), np.nan, np.float32), 1)
        v, w = px.jit(lambda x, lower=lower: eigh_p.bind(x, lower=lower, algorithm=None))(
            half + (other if lower else other.T)
        )
        np.testing.assert_allclose(w, np.linalg.eigvalsh(whole), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(whole @ np.asarray(v), np.asarray(v) * np.asarray(w)[:, None], atol=1e-5)


def test_matrices_with_nan_do_not_touch_others():
    x = GENERATOR.normal(size=(21, 5, 5)).astype(np.float32)
    x[3, 2, 2], x[9, 0, 0], x[20] = np.nan, np.inf, np.nan
    good = [i for i in range(21) if i not in (3, 9, 20)]

    @px.jit
    def everything(x):
        return [*jnp.linalg.eigh(x), *jnp.linalg.svd(x), *jnp.linalg.qr(x), jnp.linalg.svdvals(x)]

    alone = x.copy()
    alone[[3, 9, 20]] = 0
    for found, expected in zip(everything(x), everything(alone), strict=True):
        found, expected = np.asarray(found), np.asarray(expected)
        np.testing.assert_array_equal(found[good], expected[good])
        assert np.isnan(found[[3, 9, 20]].reshape(3, -1)).any(1).all()
    for each in (*everything(x)[:5], everything(x)[-1]):
        assert np.isnan(np.asarray(each)[[3, 9, 20]]).all()


def test_derivatives():
    x = GENERATOR.normal(size=(18, 4, 3)).astype(np.float32)

    def loss(x):
        q, r = jnp.linalg.qr(x)
        u, s, vt = jnp.linalg.svd(x, full_matrices=False)
        w, v = jnp.linalg.eigh(jnp.swapaxes(x, -1, -2) @ x)
        powers = (v * jnp.sqrt(w)[..., None, :]) @ jnp.swapaxes(v, -1, -2)
        return (jnp.sum(q * jnp.sin(x)) + jnp.sum(r**3) + jnp.sum((u @ vt) * jnp.cos(x)) + jnp.sum(s**2)
                + jnp.sum(powers * powers[..., ::-1, :]))  # fmt: skip

    results = []
    for setting in (True, False):
        with config.override(native_kernels=setting):
            results.append(px.jit(px.value_and_grad(loss))(x))
    (own, slope), (other, expected) = results
    np.testing.assert_allclose(own, other, rtol=1e-4)
    np.testing.assert_allclose(slope, expected, rtol=2e-3, atol=2e-3)
    mapped = px.jit(px.vmap(lambda x: jnp.linalg.svd(x, full_matrices=False)[1]))(x)
    np.testing.assert_allclose(mapped, np.linalg.svd(x, compute_uv=False), rtol=1e-4, atol=1e-5)


def test_few_and_large_matrices_are_left_to_lapack():
    for shape in ((7, 4, 4), (40, 33, 33), (4, 4)):
        text = lowered(
            lambda x: (jnp.linalg.qr(x), jnp.linalg.svd(x), jnp.linalg.eigh(x)), np.zeros(shape, np.float32)
        )
        assert "purax_" not in text
    x = np.zeros((40, 4, 4), np.complex64)
    assert "purax_" not in lowered(lambda x: (jnp.linalg.qr(x), jnp.linalg.svd(x), jnp.linalg.eigh(x)), x)
