"""Factorizations in plain StableHLO, which serve platforms without kernels for them, run on the CPU.

They are what the `lower` rules give for a platform that has no libraries. Each is held to what defines it: the product
of the factors, orthogonality, order; errors in units of the dtype's rounding times the size of the matrix.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from purax.primitives.linalg.condensed import hessenberg_p, tridiagonal_p
from purax.primitives.linalg.eigen import EighImplementation, eigh_p
from purax.primitives.linalg.lu import lu_p
from purax.primitives.linalg.orthogonal import geqp3_p, geqrf_p, qr_p
from purax.primitives.linalg.rotations import MOST_SWEEPS
from purax.primitives.linalg.singular_values import SvdAlgorithm, svd_p
from purax.primitives.linalg.tridiagonal import tridiagonal_solve_p
from purax.testing import laws
from purax.testing.case import case

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
PLATFORM = "tpu"
SIZE = 20  # errors are at most so many units of rounding times the length of a side


def run(primitive, *operands, **params):
    """What the formulation of a primitive gives."""
    (results,) = laws.lowered_results([case(primitive, *operands, **params)], PLATFORM)
    if isinstance(results, Exception):
        raise results
    return results if primitive.multiple_results else results[0]


def matrices(shape, dtype, kind="full", seed=0):
    """Matrices of a kind: full, of low rank, graded over ten orders of magnitude, with repeated values, …"""
    generator = np.random.default_rng([seed, *shape])
    *batch, m, n = shape
    extreme = 1e30 if np.finfo(dtype).bits == 32 else 1e200

    def normal(*size):
        x = generator.normal(size=size)
        return x + 1j * generator.normal(size=size) if np.dtype(dtype).kind == "c" else x

    k = min(m, n)
    x = normal(*shape)
    if kind == "low rank":
        x = normal(*batch, m, max(k // 2, 1)) @ normal(*batch, max(k // 2, 1), n)
    elif kind == "graded":
        x = x * 10.0 ** -np.linspace(0, 10, n)
    elif kind == "repeated":
        left, right = (np.linalg.qr(normal(*batch, side, side))[0] for side in (m, n))
        x = left[..., :k] * np.repeat([3.0, 1.0], k)[:k] @ right[..., :k, :]
    elif kind == "one column":
        x[..., 1:] = 0
    scale = {"zero": 0.0, "huge": extreme, "tiny": 1 / extreme}.get(kind, 1.0)
    return (x * scale).astype(dtype)


KINDS = ["full", "low rank", "graded", "repeated", "zero", "one column", "huge", "tiny"]


def of_all_kinds(shape, dtype):
    """A batch of matrices, one of each kind."""
    return np.stack([matrices(shape, dtype, kind) for kind in KINDS])


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def wide(x):
    return np.asarray(x, np.complex128 if np.asarray(x).dtype.kind == "c" else np.float64)


def close(found, expected, side, size=None):
    """Requires an error of at most `SIZE` units of rounding, times the length of a side and the size of a matrix."""
    epsilon = np.finfo(found.dtype).eps
    found, expected = wide(found), wide(expected)
    axes = tuple(range(found.ndim - 2, found.ndim)) if size is None else ()
    size = np.abs(expected).max(axes, initial=0.0, keepdims=True) if size is None else np.asarray(size)
    size = size.reshape(*size.shape, *[1] * (found.ndim - size.ndim))
    error = np.abs(found - expected)
    assert (error <= SIZE * max(side, 1) * epsilon * size).all(), (error / epsilon).max()


def is_unitary(q):
    k = q.shape[-1]
    identity = np.broadcast_to(np.eye(k), (*q.shape[:-2], k, k))
    close((adjoint(wide(q)) @ wide(q)).astype(q.dtype), identity, k, 1.0)


SHAPES = [(1, 1), (2, 2), (5, 5), (7, 4), (4, 7), (6, 1), (1, 6), (33, 33)]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(dtype, shape):
    x = of_all_kinds(shape, dtype)
    m, k = shape[0], min(shape)
    factors, pivots, order = run(lu_p, x)
    lower = np.tril(factors, -1)[..., :, :k] + np.eye(m, k)
    moved = np.take_along_axis(x, order[..., None].astype(int), -2)
    close((wide(lower) @ wide(np.triu(factors)[..., :k, :])).astype(dtype), moved, max(shape))
    assert np.abs(lower).max() <= 1.5
    np.testing.assert_array_equal(np.sort(order), np.broadcast_to(np.arange(m), order.shape))
    assert (pivots >= np.arange(k)).all() and (pivots < m).all()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(dtype, shape, full):
    x = of_all_kinds(shape, dtype)
    for found, expected in zip(run(geqrf_p, x[:1]), geqrf_p.host(x[:1]), strict=True):
        close(found, expected, max(shape), np.abs(x[0]).max())
    for pivoting in (False, True):
        q, r, *order = run(qr_p, x, pivoting=pivoting, full_matrices=full)
        is_unitary(q)
        moved = np.take_along_axis(x, order[0][..., None, :].astype(int), -1) if pivoting else x
        close((wide(q) @ wide(r)).astype(dtype), moved, max(shape))
        assert not np.tril(r, -1).any()
    sizes = (
        np.abs(np.diagonal(r, axis1=-2, axis2=-1)) / (np.abs(x).max((-1, -2)) + np.finfo(dtype).tiny)[:, None]
    )
    assert (sizes[..., 1:] <= sizes[..., :-1] * (1 + 1e-3) + 1e-5).all()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (6, 6), (33, 33)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(dtype, shape, lower):
    x = of_all_kinds(shape, dtype)
    triangle = np.tril(x) if lower else np.triu(x)
    whole = triangle + adjoint(np.tril(x, -1) if lower else np.triu(x, 1))
    whole = np.where(np.eye(shape[0], dtype=bool), whole.real, whole).astype(dtype)
    v, w = run(eigh_p, x, lower=lower, algorithm=None)
    expected = np.linalg.eigvalsh(wide(whole))
    size = np.abs(expected).max(-1)
    is_unitary(v)
    close((wide(v) * wide(w)[..., None, :] @ adjoint(wide(v))).astype(dtype), whole, shape[0], size)
    close(w, expected, shape[0], size)
    assert (np.diff(w) >= 0).all()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(dtype, shape, full):
    x = of_all_kinds(shape, dtype)
    (m, n), k, side = shape, min(shape), max(shape)
    expected = np.linalg.svd(wide(x), compute_uv=False)
    s, u, vt = run(svd_p, x, full_matrices=full, compute_uv=True, algorithm=None)
    close(s, expected, side, expected.max(-1))
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
    is_unitary(u)
    is_unitary(adjoint(vt))
    product = wide(u)[..., :k] * wide(s)[..., None, :] @ wide(vt)[..., :k, :]
    close(product.astype(dtype), x, side, expected.max(-1))
    assert u.shape[-2:] == (m, m if full else k) and vt.shape[-2:] == (n if full else k, n)


def test_singular_values_alone():
    x = of_all_kinds((3, 4), np.float32).reshape(2, 4, 3, 4)
    (found,) = run(svd_p, x, full_matrices=True, compute_uv=False, algorithm=SvdAlgorithm.JACOBI)
    expected = np.linalg.svd(wide(x), compute_uv=False)
    close(found, expected, 4, expected.max(-1))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_nan_for_its_own_matrix_only(bad, dtype):
    x = matrices((3, 4, 4), dtype)
    x[1, 2, 1] = x[1, 1, 2] = bad
    alone = np.delete(x, 1, 0)
    for primitive, params in (
        (eigh_p, dict(lower=True, algorithm=None)),
        (svd_p, dict(full_matrices=True, compute_uv=True, algorithm=None)),
    ):
        for found, expected in zip(run(primitive, x, **params), run(primitive, alone, **params), strict=True):
            assert np.isnan(found[1]).all()
            close(np.delete(found, 1, 0), expected, 4)
    for primitive in (lu_p, geqrf_p, geqp3_p, hessenberg_p):
        for found, expected in zip(run(primitive, x), run(primitive, alone), strict=True):
            np.testing.assert_array_equal(np.delete(found, 1, 0), expected)
    assert not np.isfinite(run(lu_p, x)[0][1]).all() and not np.isfinite(run(geqrf_p, x)[0][1]).all()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 11])
def test_condensed_forms(n, dtype):
    x = matrices((2, n, n), dtype)
    for found, expected in zip(run(hessenberg_p, x), hessenberg_p.host(x), strict=True):
        close(found, expected, n, 5.0)
    for lower in (False, True):
        results = run(tridiagonal_p, x, lower=lower)
        for found, expected in zip(results, tridiagonal_p.host(x, lower=lower), strict=True):
            close(found, expected, n, 5.0)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("perturb", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (2, 9), (2, 1, 5)], ids=str)
def test_tridiagonal_systems(shape, dtype, perturb):
    """Also those that need exchanges of rows, and those without a solution."""
    generator = np.random.default_rng([7, *shape])
    below, middle, above = (matrices((*shape, 1), dtype, seed=i)[..., 0] for i in range(3))
    middle[..., generator.random(shape[-1]) < 0.4] = 0
    right = matrices((*shape, 2), dtype, seed=3)
    n = shape[-1]
    whole = np.zeros((*shape, n), dtype)
    for i in range(n):
        whole[..., i, i] = middle[..., i]
        if i:
            whole[..., i, i - 1], whole[..., i - 1, i] = below[..., i], above[..., i - 1]
    singular = np.linalg.matrix_rank(wide(whole)) < n
    x = run(tridiagonal_solve_p, below, middle, above, right, perturb_singular=perturb)
    assert x.shape == right.shape
    residual = wide(whole) @ wide(x) - wide(right)
    size = np.abs(wide(x)).max((-1, -2), initial=0) * np.abs(whole).max() + 1
    error = np.abs(residual).max((-1, -2), initial=0) / size / np.finfo(dtype).eps
    assert (np.where(singular, 0, error) <= SIZE * n).all()
    if not perturb:
        assert np.isnan(x[singular]).all()


def test_eigh_reads_one_triangle():
    x = matrices((4, 4), np.float32)
    expected = run(eigh_p, x, lower=True, algorithm=None)
    other = np.where(np.triu(np.ones((4, 4), bool), 1), np.nan, x).astype(np.float32)
    for found, right in zip(run(eigh_p, other, lower=True, algorithm=None), expected, strict=True):
        np.testing.assert_array_equal(found, right)


def test_larger_matrices_end_long_before_the_bound():
    x = matrices((80, 70), np.float32)
    s, u, vt = run(svd_p, x, full_matrices=False, compute_uv=True, algorithm=None)
    close(s, np.linalg.svd(wide(x), compute_uv=False), 80, 25.0)
    close((wide(u) * s @ wide(vt)).astype(np.float32), x, 80)
    v, w = run(eigh_p, x[:70], lower=True, algorithm=EighImplementation.JACOBI)
    is_unitary(v)
    assert MOST_SWEEPS >= 30


def test_other_algorithms_are_refused():
    x = matrices((2, 2), np.float32)
    with pytest.raises(NotImplementedError, match="QR is not available on tpu; leave it out"):
        run(svd_p, x, full_matrices=False, compute_uv=True, algorithm=SvdAlgorithm.QR)
    with pytest.raises(NotImplementedError, match="QDWH is not available on tpu; leave it out"):
        run(eigh_p, x, lower=True, algorithm=EighImplementation.QDWH)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "module", ["lu", "orthogonal", "condensed", "tridiagonal", "eigen", "singular_values", "triangular"]
)
def test_they_obey_the_law_of_lowering(module):
    """All cases, up to what is a library's choice: signs, phases, and how a failure is marked."""
    rows = importlib.import_module(f"tests.cases.{module}").CASES
    for start in range(0, len(rows), 40):
        group = []
        for row in rows[start : start + 40]:
            try:
                laws.joint_program([row], PLATFORM)
            except NotImplementedError:
                continue  # tests/primitives/test_accelerators.py says which they are
            group.append(row)
        for row, results in zip(group, laws.lowered_results(group, PLATFORM), strict=True):
            laws.compare_lowered(row, results, is_cpu=False)


@pytest.mark.parametrize("wrong", ["value", "vector"])
def test_choices_hide_no_mistake(wrong):
    """Signs are free, numbers are not."""
    row = case(svd_p, matrices((3, 2), np.float32), full_matrices=False, compute_uv=True, algorithm=None)
    s, u, vt = svd_p.host(*row.operands, **row.params)
    turn = np.array([1, -1], np.float32)
    laws.compare_lowered(row, [s, u * turn, turn[:, None] * vt], is_cpu=False)
    mistaken = [s * 1.01, u, vt] if wrong == "value" else [s, u * turn, vt]
    with pytest.raises(AssertionError, match="deviates"):
        laws.compare_lowered(row, mistaken, is_cpu=False)
