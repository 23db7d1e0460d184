"""Factorizations, triangular systems, Fourier transforms and sorts of a sharded batch: a device sees its part alone."""

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.sharding import NamedSharding, PartitionSpec
from purax.sharding import PartitionSpec as P
from purax.xla import native

RNG = np.random.default_rng(23)


def matrices(*shape, dtype=np.float32):
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def positive(*shape, dtype=np.float32):
    x = matrices(*shape, dtype=dtype)
    return (x @ x.swapaxes(-1, -2).conj() + shape[-1] * np.eye(shape[-1])).astype(dtype)


def rebuilt_by_eigh(x):
    w, v = jnp.linalg.eigh(x)
    return w, (v * w[..., None, :]) @ v.swapaxes(-1, -2).conj()


def rebuilt_by_svd(x):
    u, s, vt = jnp.linalg.svd(x, full_matrices=False)
    return s, (u * s[..., None, :]) @ vt


def rebuilt_by_qr(x):
    q, r = jnp.linalg.qr(x)
    return q @ r, jnp.abs(r)


def by_schur(x):
    t, z = lax.linalg.schur(x)
    return z @ t @ z.swapaxes(-1, -2)


def by_eig(x):
    w, v = jnp.linalg.eig(x)
    return v * w[..., None, :], x @ v


# Functions of batches, with operands that are small enough for native kernels, and others that LAPACK takes.
ROWS = {
    "cholesky": (jnp.linalg.cholesky, positive(16, 4, 4)),
    "cholesky, large": (jnp.linalg.cholesky, positive(16, 40, 40)),
    "cholesky, complex": (jnp.linalg.cholesky, positive(16, 3, 3, dtype=np.complex64)),
    "lu": (lax.linalg.lu, positive(16, 5, 5)),
    "lu, rectangular": (lax.linalg.lu, matrices(16, 7, 4)),
    "qr": (rebuilt_by_qr, matrices(16, 6, 4)),
    "qr, large": (rebuilt_by_qr, matrices(16, 40, 36)),
    "qr, pivoting": (lambda x: lax.linalg.qr(x, pivoting=True), matrices(16, 4, 4)),
    "eigh": (rebuilt_by_eigh, positive(16, 4, 4)),
    "eigh, large": (rebuilt_by_eigh, positive(16, 36, 36)),
    "eig": (by_eig, matrices(16, 4, 4)),
    "svd": (rebuilt_by_svd, matrices(16, 5, 3)),
    "svd, large": (rebuilt_by_svd, matrices(16, 40, 34)),
    "singular values": (lambda x: jnp.linalg.svd(x, compute_uv=False), matrices(16, 5, 3)),
    "schur": (by_schur, matrices(16, 4, 4)),
    "hessenberg": (lax.linalg.hessenberg, matrices(16, 4, 4)),
    "tridiagonal": (lambda x: lax.linalg.tridiagonal(x, lower=True), positive(16, 4, 4)),
    "householder": (lambda x: lax.linalg.householder_product(x, x[:, 0] / 8), matrices(16, 4, 3)),
    "triangular": (
        lambda x: lax.linalg.triangular_solve(x, x[..., :2], left_side=True, lower=True),
        positive(16, 4, 4),
    ),
    "triangular, large": (
        lambda x: lax.linalg.triangular_solve(x, x[..., :2], left_side=True),
        positive(16, 40, 40),
    ),
    "tridiagonal system": (
        lambda x: lax.linalg.tridiagonal_solve(x[:, 0], x[:, 1] + 9, x[:, 2], x[..., :2]),
        positive(16, 4, 4),
    ),
    "solve": (lambda x: jnp.linalg.solve(x, x[..., :2]), positive(16, 4, 4)),
    "inverse": (jnp.linalg.inv, positive(16, 4, 4)),
    "determinant": (jnp.linalg.slogdet, positive(16, 4, 4)),
    "least squares": (lambda x: px.vmap(lambda a: jnp.linalg.lstsq(a, a[:, 0])[0])(x), positive(16, 5, 5)),
    "derivative": (px.grad(lambda x: jnp.linalg.cholesky(x).sum()), positive(16, 4, 4)),
    "derivative of a solution": (px.grad(lambda x: jnp.linalg.solve(x, x[..., 0:1]).sum()), positive(16, 4, 4)),
    "fft": (jnp.fft.fft, matrices(16, 60, dtype=np.complex64)),
    "fft, backwards": (jnp.fft.ifft, matrices(16, 64, dtype=np.complex128)),
    "fft of three axes": (lambda x: jnp.fft.fftn(x, axes=(1, 2, 3)), matrices(16, 4, 6, 8, dtype=np.complex64)),
    "rfft": (jnp.fft.rfft, matrices(16, 64)),
    "rfft of two axes": (jnp.fft.rfft2, matrices(16, 6, 10)),
    "irfft": (jnp.fft.irfft, matrices(16, 33, dtype=np.complex64)),
    "irfft of two axes": (jnp.fft.irfft2, matrices(16, 6, 5, dtype=np.complex64)),
    "sort": (jnp.sort, matrices(16, 64)),
    "argsort": (jnp.argsort, matrices(16, 64)),
    "sort with values": (lambda x: lax.sort((x, x * 2), num_keys=1), matrices(16, 64)),
    "top k": (lambda x: lax.top_k(x, 5), matrices(16, 64)),
    "top k, approximate": (lambda x: lax.approx_max_k(x, 5), matrices(16, 64)),
    "median": (lambda x: jnp.median(x, 1), matrices(16, 64)),
}  # fmt: skip


def communicates(compiled):
    return [found for found in compiled.collectives() if found.devices > 1]


@pytest.mark.parametrize("name", ROWS)
def test_a_sharded_batch_is_not_gathered(name):
    function, x = ROWS[name]
    mesh = px.make_mesh((8,), ("data",))
    rows = px.device_put(x, NamedSharding(mesh, P("data")))
    compiled = px.jit(function).lower(rows).compile()
    assert not communicates(compiled), name
    results, wanted = compiled(rows), px.jit(function)(x)
    for found, expected in zip(px.tree.leaves(results), px.tree.leaves(wanted), strict=True):
        assert found.sharding.shard_shape(found.shape)[0] == 2, found.sharding
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    "spec", [P("data", "model"), P(("model", "data")), P(None, "data"), P("model", None, "data"), P()]
)
@pytest.mark.parametrize(
    ("name", "function", "core"),
    [
        ("cholesky", jnp.linalg.cholesky, (4, 4)),
        ("svd", rebuilt_by_svd, (4, 4)),
        ("solve", lambda x: jnp.linalg.solve(x, x), (4, 4)),
        ("rfft", jnp.fft.rfft, (8,)),
        ("fft of two axes", jnp.fft.fft2, (4, 4)),
        ("top k", lambda x: lax.top_k(x, 3), (8,)),
    ],
)
def test_every_axis_may_be_sharded(name, function, core, spec):
    """Two axes of a batch, axes of the matrices themselves, or none."""
    mesh = px.make_mesh((4, 2), ("data", "model"))
    x = positive(8, 4, 4, 4) if len(core) == 2 else matrices(8, 4, 8)
    rows = px.device_put(x, NamedSharding(mesh, spec))
    compiled = px.jit(function).lower(rows).compile()
    for found, expected in zip(px.tree.leaves(compiled(rows)), px.tree.leaves(function(x)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)
    if spec in (P("data", "model"), P(("model", "data"))):
        assert not communicates(compiled)


@pytest.mark.skipif(not native.is_available(), reason="there are no native kernels here")
def test_devices_with_parts_of_their_own_call_native_kernels():
    """Inside of a shard_map over all axes nothing is partitioned; over some of them, batches still are."""
    mesh = px.make_mesh((4, 2), ("data", "model"))
    x = matrices(64, 128)
    rows = px.device_put(x, NamedSharding(mesh, P("data", "model")))

    def inside(part):
        return jnp.sort(part, 1), lax.top_k(part, 3)[0], jnp.cumsum(part, 1)

    both = px.jit(px.shard_map(inside, mesh=mesh, in_specs=P("data", "model"), out_specs=P("data", "model")))
    text = both.lower(rows).compile().as_text()
    assert "purax_sort" in text and "purax_top_k" in text
    ordered, largest, total = both(rows)
    blocks = np.sort(x.reshape(64, 2, 64))
    np.testing.assert_array_equal(ordered, blocks.reshape(64, 128))
    np.testing.assert_array_equal(largest, blocks[..., :-4:-1].reshape(64, 6))
    np.testing.assert_allclose(total, np.cumsum(x.reshape(64, 2, 64), 2).reshape(64, 128), rtol=1e-4, atol=1e-4)

    squares = px.device_put(positive(16, 4, 4), NamedSharding(mesh, P(("data", "model"))))
    some = px.jit(
        px.shard_map(
            jnp.linalg.cholesky, mesh=mesh, in_specs=P("data"), out_specs=P("data"), axis_names={"data"}
        )
    )
    assert not communicates(some.lower(squares).compile())
    np.testing.assert_allclose(some(squares), np.linalg.cholesky(squares), rtol=1e-4, atol=1e-4)


def test_results_say_how_they_lie_without_nones_at_the_end():
    mesh = px.make_mesh((8,), ("data",))
    rows = px.device_put(np.ones((8, 4)), NamedSharding(mesh, P("data")))
    assert px.jit(lambda x: x * 2)(rows).sharding.spec == PartitionSpec("data")
