"""`jnp.linalg` and `lax.linalg` against NumPy and jax: values, types, derivatives, batches; and the laws of factors."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import lax
from tests.against_jax import ALL, NOT_DIFFERENTIATED, ON_CPU, ONCE, Program, check
from tests.against_jax import numbers as arbitrary
from tests.numpy.agreement import agree, call_jax, ours

pytestmark = pytest.mark.sampled(3)

linalg = jnp.linalg
FLOATS = ("float32", "float64", "complex64", "complex128")


def numbers(shape, dtype="float32", seed=0):
    return arbitrary(shape, dtype=np.dtype(dtype), seed=seed)


def regular(shape, dtype="float32", seed=0):
    """Square matrices far from singular, with singular values far from one another."""
    diagonal = np.diag(np.arange(3.0, 3 + 2 * shape[-1], 2) * np.resize([1, -1], shape[-1]))
    return (numbers(shape, dtype, seed) + diagonal).astype(dtype)


def positive(shape, dtype="float32", seed=0):
    x = numbers(shape, dtype, seed)
    n = shape[-1]
    return (x @ x.swapaxes(-1, -2).conj() + np.diag(np.arange(n, 3.0 * n, 2))).astype(dtype)


def adjoint(x):
    return np.asarray(x).swapaxes(-1, -2).conj()


def exact(dtype):
    """The tolerance of a few roundings."""
    return 200 * float(np.finfo(dtype).eps)


# --- programs against jax: value, derivatives of both kinds, second derivative, batches


def program(name, function, *args, forms=ALL):
    return pytest.param(Program(name, function, args, forms), id=name)


def settled(m, result):
    """The results of `eigh` or `svd`, with vectors whose first element is positive where platforms may differ."""
    if ON_CPU:
        return result
    *before, u = result[:2] if len(result) == 2 else result[:1]
    phase = u[..., :1, :] / m.numpy.abs(u[..., :1, :])
    vectors = u * m.numpy.conj(phase)
    if len(result) == 2:
        return result._replace(eigenvectors=vectors)
    return result._replace(U=vectors, Vh=m.numpy.swapaxes(phase, -1, -2) * result[2])


square, batch, wide, tall = (3, 3), (2, 4, 4), (2, 4), (4, 2)

PROGRAMS = [
    program("inv", lambda m, a: m.numpy.linalg.inv(a), regular(square)),
    program("inv of a batch", lambda m, a: m.numpy.linalg.inv(a), regular(batch, "complex64")),
    program("solve", lambda m, a, b: m.numpy.linalg.solve(a, b), regular((4, 4)), numbers((4, 2))),
    program(
        "solve for a vector",
        lambda m, a, b: m.numpy.linalg.solve(a, b),
        regular(square, "complex64"),
        numbers((3,), "complex64"),
    ),
    program(
        "solve, broadcast",
        lambda m, a, b: m.numpy.linalg.solve(a, b),
        regular((2, 1, 3, 3)),
        numbers((4, 3, 2)),
    ),
    *[
        program(f"det {n}", lambda m, a: m.numpy.linalg.det(a), regular((n, n), dtype))
        for n in (1, 2, 3, 4)
        for dtype in ("float32", "complex64")
    ],
    program("det of a batch", lambda m, a: m.numpy.linalg.det(a), regular(batch)),
    *[
        program(
            f"slogdet {method} {dtype}",
            lambda m, a, method=method: m.numpy.linalg.slogdet(a, method=method),
            regular((4, 4), dtype),
            forms=ONCE,
        )
        for method in ("lu", "qr")
        for dtype in ("float32",)
    ],
    program("slogdet, complex", lambda m, a: m.numpy.linalg.slogdet(a), regular(square, "complex64")),
    program("pinv, tall", lambda m, a: m.numpy.linalg.pinv(a), numbers(tall)),
    program("pinv, wide", lambda m, a: m.numpy.linalg.pinv(a), numbers(wide, "complex64")),
    program(
        "pinv of rank 1",
        lambda m, a: m.numpy.linalg.pinv(a),
        np.outer([1, 2, 3], [1, 2]).astype(np.float32),
        forms=ONCE,
    ),
    program(
        "pinv, hermitian",
        lambda m, a: m.numpy.linalg.pinv(a, hermitian=True),
        positive(square),
        forms=NOT_DIFFERENTIATED,
    ),
    program(
        "lstsq",
        lambda m, a, b: m.numpy.linalg.lstsq(a, b),
        numbers((5, 3)),
        numbers((5, 2)),
        forms=("value", "jvp", "vjp"),
    ),
    program("matrix_power", lambda m, a: m.numpy.linalg.matrix_power(a, 5), numbers(square)),
    program("matrix_power, negative", lambda m, a: m.numpy.linalg.matrix_power(a, -2), regular(square)),
    program(
        "matrix_rank", lambda m, a: m.numpy.linalg.matrix_rank(a), numbers(batch), forms=NOT_DIFFERENTIATED
    ),
    *[
        program(f"cond {p}", lambda m, a, p=p: m.numpy.linalg.cond(a, p), regular(square), forms=ONCE)
        for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc")
    ],
    *[
        program(
            f"vector norm {order}",
            lambda m, x, order=order: m.numpy.linalg.norm(x, order, axis=1),
            numbers((2, 3)),
        )
        for order in (None, 0, 1, 2, 3, -1, -2, 0.5, np.inf, -np.inf)
    ],
    *[
        program(
            f"matrix norm {order}",
            lambda m, x, order=order: m.numpy.linalg.norm(x, order, axis=(2, 0), keepdims=True),
            numbers((3, 2, 4)),
            forms=ONCE,
        )
        for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    ],
    program("norm of complex numbers", lambda m, x: m.numpy.linalg.norm(x), numbers((2, 3), "complex64")),
    program("cholesky", lambda m, a: m.numpy.linalg.cholesky(a), positive(square)),
    program(
        "cholesky, upper", lambda m, a: m.numpy.linalg.cholesky(a, upper=True), positive(square, "complex64")
    ),
    program("cholesky of a batch", lambda m, a: m.numpy.linalg.cholesky(a), positive(batch), forms=ONCE),
    program(
        "cholesky of a triangle",
        lambda m, a: m.lax.linalg.cholesky(a, symmetrize_input=False),
        positive(square),
        forms=NOT_DIFFERENTIATED,  # in jax 0.10 its derivative is that of a function of both triangles
    ),
    *[
        program(
            f"qr {mode} {shape}",
            lambda m, a, mode=mode: m.numpy.linalg.qr(a, mode=mode),
            numbers(shape, dtype),
            forms=ONCE,
        )
        for mode in ("reduced", "complete", "r")
        for shape in (square, tall, wide)
        for dtype in ("float32", "complex64")
    ],
    program(
        "qr, raw", lambda m, a: m.numpy.linalg.qr(a, mode="raw"), numbers(tall), forms=NOT_DIFFERENTIATED
    ),
    program(
        "qr, pivoting",
        lambda m, a: m.lax.linalg.qr(a, pivoting=True, full_matrices=False),
        numbers(tall),
        forms=NOT_DIFFERENTIATED,
    ),
    program(
        "qr, pivoting, derivative",
        lambda m, a: m.lax.linalg.qr(a, pivoting=True)[:2],
        numbers(tall),
        forms=ONCE,
    ),
    *[
        program(
            f"svd {shape} {dtype}",
            lambda m, a: settled(m, m.numpy.linalg.svd(a, full_matrices=False)),
            numbers(shape, dtype),
            forms=ONCE,
        )
        for shape in (square, tall, wide, (2, 3, 2))
        for dtype in ("float32", "complex64")
    ],
    program("svd, full", lambda m, a: m.numpy.linalg.svd(a), numbers(tall), forms=NOT_DIFFERENTIATED),
    program(
        "svd, hermitian",
        lambda m, a: m.numpy.linalg.svd(a, hermitian=True),
        positive(square) - 5 * np.eye(3, dtype=np.float32),
        forms=NOT_DIFFERENTIATED,
    ),
    program("svdvals", lambda m, a: m.numpy.linalg.svdvals(a), numbers(wide)),
    program("eigh", lambda m, a: settled(m, m.numpy.linalg.eigh(a)), positive(square), forms=ONCE),
    program(
        "eigh, complex",
        lambda m, a: settled(m, m.numpy.linalg.eigh(a)),
        positive(square, "complex64"),
        forms=ONCE,
    ),
    program(
        "eigh of a triangle",
        lambda m, a: settled(m, m.numpy.linalg.eigh(a, "U", False)),
        positive(batch),
        forms=ONCE,
    ),
    program("eigvalsh", lambda m, a: m.numpy.linalg.eigvalsh(a), positive(square)),
    program("eig", lambda m, a: m.numpy.linalg.eig(a), regular(square), forms=NOT_DIFFERENTIATED),
    program("eigvals", lambda m, a: m.numpy.linalg.eigvals(a), regular(square), forms=ONCE),
    program(
        "eigvals, complex", lambda m, a: m.numpy.linalg.eigvals(a), regular(square, "complex64"), forms=ONCE
    ),
    program(
        "eig, vectors",
        lambda m, a: m.lax.linalg.eig(a, enable_eigvec_derivs=True),
        regular(square, "complex64"),
        forms=ONCE,
    ),
    program(
        "multi_dot",
        lambda m, a, b, c: m.numpy.linalg.multi_dot([a, b, c]),
        numbers((2, 3)),
        numbers((3, 4)),
        numbers((4,)),
    ),
    program("tensorinv", lambda m, a: m.numpy.linalg.tensorinv(a.reshape(2, 2, 4), 2), regular((4, 4))),
    program(
        "tensorsolve",
        lambda m, a, b: m.numpy.linalg.tensorsolve(a.reshape(4, 2, 2), b),
        regular((4, 4)),
        numbers((4,)),
    ),
    *[
        program(f"lax.lu {shape}", lambda m, a: m.lax.linalg.lu(a)[0], numbers(shape))
        for shape in (square, tall, wide, (2, 3, 3))
    ],
    program("lax.lu", lambda m, a: list(m.lax.linalg.lu(a)), numbers(batch), forms=NOT_DIFFERENTIATED),
    *[
        program(
            f"triangular_solve {flags}",
            lambda m, a, b, flags=flags: m.lax.linalg.triangular_solve(
                a,
                b,
                **dict(
                    zip(
                        ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"),
                        flags,
                        strict=True,
                    )
                ),
            ),
            regular(square, "complex64"),
            numbers(square, "complex64"),
        )
        for flags in ((0, 0, 0, 0, 0), (1, 1, 0, 0, 1), (1, 0, 1, 1, 0), (0, 1, 1, 0, 0))
    ],
    program(
        "tridiagonal_solve",
        lambda m, *args: m.lax.linalg.tridiagonal_solve(*args),
        numbers((4,), seed=1),
        numbers((4,)) + 5,
        numbers((4,), seed=2),
        numbers((4, 2)),
    ),
    program(
        "householder_product",
        lambda m, a, t: m.lax.linalg.householder_product(a, t),
        numbers(tall),
        numbers((2,)),
        forms=NOT_DIFFERENTIATED,
    ),
    *[
        program(
            f"ormqr {left} {transpose}",
            lambda m, a, t, c, left=left, transpose=transpose: m.lax.linalg.ormqr(
                a, t, c, left=left, transpose=transpose
            ),
            numbers(tall, "complex64"),
            numbers((2,), "complex64"),
            numbers((4, 4), "complex64"),
            forms=NOT_DIFFERENTIATED,
        )
        for left in (False, True)
        for transpose in (False, True)
    ],
    program("schur", lambda m, a: list(m.lax.linalg.schur(a)), regular(square), forms=NOT_DIFFERENTIATED),
    program(
        "hessenberg", lambda m, a: list(m.lax.linalg.hessenberg(a)), regular((4, 4)), forms=NOT_DIFFERENTIATED
    ),
    program(
        "tridiagonal",
        lambda m, a: list(m.lax.linalg.tridiagonal(a)),
        positive((4, 4)),
        forms=NOT_DIFFERENTIATED,
    ),
    program(
        "symmetric_product",
        lambda m, a, c: m.lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5, symmetrize_output=True),
        numbers(tall),
        positive((4, 4)),
        forms=NOT_DIFFERENTIATED,
    ),
    program(
        "cholesky_update",
        lambda m, r, w: m.lax.linalg.cholesky_update(r, w),
        np.triu(positive(square)),
        numbers((3,)),
        forms=("value",),
    ),
]


@pytest.mark.parametrize("case", PROGRAMS)
def test_agrees_with_jax(case):
    check(case)


# --- values against NumPy, in every dtype


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "uint8", "bool"])
@pytest.mark.parametrize(
    "name",
    ["inv", "det", "slogdet", "pinv", "matrix_rank", "svdvals", "eigvalsh", "cond", "norm", "cholesky"],
)
def test_agrees_with_numpy(name, dtype):
    x = (
        positive((4, 4))
        if dtype == "float32"
        else positive((4, 4), "complex64")
        if dtype == "complex64"
        else None
    )
    if x is None:
        x = (np.eye(4) * 3 + np.ones((4, 4))).astype(dtype) if dtype != "bool" else np.eye(4, dtype=bool)
    agree(
        f"linalg.{name}",
        x,
        jit=True,
        rtol=2e-5,
        atol=2e-5 * max(1, float(np.abs(x).max()) ** (4 if name == "det" else 1)),
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_widths_are_kept(dtype):
    a = ours(regular((3, 3), dtype))
    real = np.finfo(dtype).dtype
    assert linalg.inv(a).dtype == linalg.det(a).dtype == linalg.pinv(a).dtype == dtype
    assert linalg.norm(a).dtype == linalg.svdvals(a).dtype == linalg.cond(a).dtype == real
    np.testing.assert_allclose(linalg.inv(a) @ a, np.eye(3), atol=exact(dtype))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
@pytest.mark.parametrize(
    "name", ["inv", "det", "slogdet", "cholesky", "eigh", "eig", "svd", "qr", "pinv", "eigvalsh"]
)
def test_empty_matrices(name, shape):
    agree(f"linalg.{name}", np.zeros(shape, np.float32), jit=True)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_rectangles(shape):
    x = np.zeros(shape, np.float32)
    for mode in ("reduced", "complete"):
        agree("linalg.qr", x, mode=mode, jit=True)
    for full_matrices in (False, True):
        agree("linalg.svd", x, full_matrices=full_matrices, jit=True)
    assert int(linalg.matrix_rank(jnp.zeros(shape))) == 0
    agree("linalg.lstsq", x, np.zeros(shape[0], np.float32), oracle="jax")


SPECIAL = {
    "singular": [[1, 1], [1, 1]],
    "zero": [[0, 0], [0, 0]],
    "nan": [[1, np.nan], [2, 3]],
    "infinite": [[1, np.inf], [2, 3]],
    "indefinite": [[1, 2], [2, 1]],
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize(
    "name", ["inv", "det", "slogdet", "cholesky", "eigvalsh", "eigvals", "svdvals", "qr"]
)
def test_special_matrices_are_as_in_jax(name, kind):
    x = np.array(SPECIAL[kind], np.float32)
    expected = [np.asarray(y) for y in jax.tree.leaves(call_jax(f"linalg.{name}", [x], {}))]
    function = getattr(linalg, name)
    for result in (function(ours(x)), purax.jit(function)(ours(x)), purax.vmap(function)(ours(x[None]))):
        for got, wanted in zip(purax.tree.leaves(result), expected, strict=True):
            got = np.asarray(got).reshape(wanted.shape)
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_eigenvectors_of_matrices_that_are_not_finite_are_nan():
    """LAPACK gives unit vectors for a matrix with infinity, and so does jax."""
    x = np.stack([np.eye(3, dtype=np.float32) + 1] * 3)
    x[1, 2, 2], x[2, 1, 1] = np.inf, np.nan
    for dtype in (np.float32, np.complex128):
        for w, v in (linalg.eigh(ours(x.astype(dtype))), purax.jit(linalg.eigh)(ours(x.astype(dtype)))):
            assert np.isnan(np.asarray(w[1:])).all() and np.isnan(np.asarray(v[1:])).all()
            np.testing.assert_allclose(w[0], [1, 1, 4], rtol=1e-5)
            np.testing.assert_allclose(x[0] @ np.asarray(v[0]), np.asarray(v[0] * w[0]), atol=1e-5)


def test_singular_vectors_of_matrices_that_are_not_finite_are_nan():
    """LAPACK's routines never end if infinity is in a matrix, and neither do those of jax."""
    x = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)
    x[1, 0, 0], x[2, 4, 1], x[3, 2, 2] = np.inf, -np.inf, np.nan
    for dtype in (np.float32, np.float64, np.complex64):
        each = x.astype(dtype)
        for full_matrices in (False, True):

            def function(x, full_matrices=full_matrices):
                return linalg.svd(x, full_matrices=full_matrices)

            for results in (function(ours(each)), purax.jit(function)(ours(each))):
                assert all(np.isnan(np.asarray(y[1:])).all() for y in results)
                u, s, vt = (np.asarray(y[0]) for y in results)
                np.testing.assert_allclose((u[:, :3] * s) @ vt, each[0], atol=1e-5)


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("p", [None, -2, 1, np.inf, "fro"])
def test_condition_numbers_of_special_matrices_are_as_in_numpy(kind, p):
    x = np.array(SPECIAL[kind], np.float32)
    with np.errstate(all="ignore"):
        expected = np.nan if kind == "nan" else np.linalg.cond(x, p)
    for function in (linalg.cond, purax.jit(linalg.cond, static_argnums=1)):
        got = np.asarray(function(ours(x), p))
        if kind == "singular":  # rounding decides what is divided by
            assert got < 1e-6 if p == -2 else got > 1e6
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-5)


# --- the laws of factorizations


def each(shapes, dtypes=FLOATS):
    return pytest.mark.parametrize(("shape", "dtype"), [(s, d) for s in shapes for d in dtypes])


def both_ways(function, x):
    """Results on the host and from a compiled program."""
    a = ours(x)
    return [[np.asarray(y) for y in purax.tree.leaves(f(a))] for f in (function, purax.jit(function))]


@each([(4, 4), (5, 3), (3, 5), (2, 2, 3, 2), (40, 30)])
def test_qr_gives_orthonormal_columns_and_a_triangle(shape, dtype):
    x = numbers(shape, dtype)
    for mode in ("reduced", "complete"):
        for q, r in both_ways(lambda a, mode=mode: linalg.qr(a, mode), x):
            np.testing.assert_allclose(q @ r, x, atol=10 * exact(dtype))
            np.testing.assert_allclose(
                adjoint(q) @ q,
                np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])),
                atol=10 * exact(dtype),
            )
            np.testing.assert_array_equal(np.tril(r, -1), 0)


@each([(4, 4), (5, 3), (3, 5), (2, 2, 3, 2), (40, 30)])
def test_svd_gives_orthonormal_vectors_and_descending_values(shape, dtype):
    x = numbers(shape, dtype)
    for full_matrices in (False, True):
        for u, s, vh in both_ways(lambda a, full=full_matrices: linalg.svd(a, full), x):
            k = s.shape[-1]
            np.testing.assert_allclose(
                (u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, atol=10 * exact(dtype)
            )
            for basis in (u, adjoint(vh)):
                np.testing.assert_allclose(
                    adjoint(basis) @ basis,
                    np.broadcast_to(
                        np.eye(basis.shape[-1]), (*basis.shape[:-2], basis.shape[-1], basis.shape[-1])
                    ),
                    atol=10 * exact(dtype),
                )
            assert np.all(np.diff(s, axis=-1) <= 0) and np.all(s >= 0)


@each([(4, 4), (2, 2, 3, 3), (30, 30)])
def test_eigenvectors_of_hermitian_matrices(shape, dtype):
    x = positive(shape, dtype)
    for w, v in both_ways(linalg.eigh, x):
        np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=100 * exact(dtype))
        assert np.all(np.diff(w, axis=-1) >= 0)
        np.testing.assert_allclose(
            adjoint(v) @ v, np.broadcast_to(np.eye(shape[-1]), shape), atol=10 * exact(dtype)
        )


@each([(4, 4), (2, 2, 3, 3)])
def test_eigenvectors_of_general_matrices(shape, dtype):
    x = numbers(shape, dtype)
    for w, v in both_ways(linalg.eig, x):
        np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=20 * exact(dtype))
    for w, left, _ in both_ways(lax.linalg.eig, x):
        np.testing.assert_allclose(adjoint(left) @ x, w[..., None] * adjoint(left), atol=20 * exact(dtype))


@each([(4, 4), (2, 2, 3, 3), (30, 30)])
def test_cholesky_factors(shape, dtype):
    x = positive(shape, dtype)
    for (factor,) in both_ways(linalg.cholesky, x):
        np.testing.assert_allclose(factor @ adjoint(factor), x, rtol=exact(dtype), atol=100 * exact(dtype))
        np.testing.assert_array_equal(np.triu(factor, 1), 0)


@each([(4, 4), (5, 3), (3, 5), (2, 3, 3), (40, 40)])
def test_lu_factors(shape, dtype):
    x = numbers(shape, dtype)
    rows, columns = shape[-2:]
    k = min(rows, columns)
    for factors, pivots, permutation in both_ways(lax.linalg.lu, x):
        lower = np.tril(factors[..., :k], -1) + np.eye(rows, k)
        rebuilt = lower @ np.triu(factors[..., :k, :])
        np.testing.assert_allclose(
            rebuilt, np.take_along_axis(x, permutation[..., None], -2), atol=10 * exact(dtype)
        )
        from_pivots = lax.linalg.lu_pivots_to_permutation(jnp.asarray(pivots), rows)
        np.testing.assert_array_equal(from_pivots, permutation)


@each([(4, 4), (2, 3, 3)])
def test_schur_and_hessenberg_forms(shape, dtype):
    x = numbers(shape, dtype)
    for t, z in both_ways(lax.linalg.schur, x):
        np.testing.assert_allclose(z @ t @ adjoint(z), x, atol=20 * exact(dtype))
        below = -1 if dtype.startswith("complex") else -2  # real matrices have blocks of two
        np.testing.assert_array_equal(np.tril(t, below), 0)
    for form, _ in both_ways(lax.linalg.hessenberg, x):
        h = np.triu(form, -1)
        trace, own = np.trace(x @ x, axis1=-2, axis2=-1), np.trace(h @ h, axis1=-2, axis2=-1)
        np.testing.assert_allclose(own, trace, rtol=100 * exact(dtype), atol=100 * exact(dtype))


@each([(4, 4), (2, 3, 3)])
def test_tridiagonal_form_has_the_same_eigenvalues(shape, dtype):
    x = positive(shape, dtype)
    for lower in (False, True):
        for _, d, e, _ in both_ways(lambda a, lower=lower: lax.linalg.tridiagonal(a, lower=lower), x):
            t = np.zeros(shape)
            i = np.arange(shape[-1])
            t[..., i, i] = d
            t[..., i[1:], i[:-1]] = t[..., i[:-1], i[1:]] = e
            np.testing.assert_allclose(np.linalg.eigvalsh(t), np.linalg.eigvalsh(x), rtol=20 * exact(dtype))


@each([(4, 4), (6, 3)], ("float32", "complex64", "float64"))
def test_polar_decomposition(shape, dtype):
    x = numbers(shape, dtype)
    u, h, steps, converged = lax.linalg.qdwh(ours(x))
    assert bool(converged) and 0 < int(steps) <= 10
    np.testing.assert_allclose(np.asarray(u) @ np.asarray(h), x, atol=20 * exact(dtype))
    np.testing.assert_allclose(adjoint(u) @ np.asarray(u), np.eye(shape[1]), atol=20 * exact(dtype))
    assert np.all(np.linalg.eigvalsh(np.asarray(h)) > 0)
    padded = np.zeros((8, 5), dtype)
    padded[: shape[0], : shape[1]] = x
    part = lax.linalg.qdwh(ours(padded), dynamic_shape=shape)[0]
    np.testing.assert_allclose(np.asarray(part)[: shape[0], : shape[1]], u, atol=50 * exact(dtype))


def test_least_squares_agree_with_numpy():
    a, b = numbers((6, 3)), numbers((6, 2))
    for numpy_resid in (False, True):
        for got, wanted in zip(
            linalg.lstsq(ours(a), ours(b), numpy_resid=numpy_resid), np.linalg.lstsq(a, b), strict=True
        ):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    deficient = np.outer(np.arange(1.0, 5), [1, 2]).astype(np.float32)
    x, residuals, rank, _ = linalg.lstsq(ours(deficient), ours(numbers((4,))), numpy_resid=True)
    np.testing.assert_allclose(x, np.linalg.lstsq(deficient, numbers((4,)))[0], rtol=1e-5)
    assert residuals.shape == (0,) and int(rank) == 1


# --- derivatives where jax has none, or another


def difference(function, x, direction, step=1e-6):
    return (np.asarray(function(x + step * direction)) - np.asarray(function(x - step * direction))) / (
        2 * step
    )


def wide_jvp(function, x, direction):
    return np.asarray(purax.jvp(function, (ours(x),), (ours(direction),))[1])


@pytest.mark.parametrize("zeros", [(0,), (3,), (0, 2), (1, 2, 3)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_determinant_has_a_derivative_at_singular_matrices(zeros, dtype):
    u, _ = np.linalg.qr(numbers((4, 4), dtype))
    s = np.array([1.0, 2, 3, 4])
    s[list(zeros)] = 0
    direction = numbers((4, 4), dtype, seed=5)
    for x in (np.diag(s).astype(dtype), (u * s) @ numbers((4, 4), dtype, seed=2)):
        expected = difference(np.linalg.det, x, direction)
        for function in (linalg.det, purax.jit(linalg.det)):
            np.testing.assert_allclose(wide_jvp(function, x, direction), expected, atol=1e-6)
    stacked = purax.vmap(purax.grad(lambda a: linalg.det(a).real))(
        jnp.stack([jnp.eye(4), jnp.diag(jnp.array([1.0, 2, 3, 0]))])
    )
    np.testing.assert_allclose(stacked, [np.eye(4), np.diag([0, 0, 0, 6.0])], atol=1e-5)


def test_norms_have_derivative_zero_at_zero():
    for order in (None, 2, 3, 1.5):
        for shape in ((3,), (0,)):
            gradient = purax.grad(lambda x, order=order: linalg.norm(x, order))
            np.testing.assert_array_equal(gradient(jnp.zeros(shape)), np.zeros(shape))
            np.testing.assert_array_equal(purax.jit(gradient)(jnp.zeros(shape)), np.zeros(shape))
    np.testing.assert_array_equal(purax.grad(linalg.matrix_norm)(jnp.zeros((2, 2))), np.zeros((2, 2)))


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_full_singular_vectors_can_be_differentiated(shape, dtype):
    """The projection to the span of the vectors that complete a basis does not depend on their choice."""
    x, direction = numbers(shape, dtype), numbers(shape, dtype, seed=3)

    def projection(a):
        u, _, vh = linalg.svd(a)
        rest = u[:, 2:] if shape[0] > 2 else vh[2:].conj().T
        return rest @ rest.conj().T

    def by_numpy(a):
        u, _, vh = np.linalg.svd(a)
        rest = u[:, 2:] if shape[0] > 2 else vh[2:].conj().T
        return rest @ rest.conj().T

    np.testing.assert_allclose(
        wide_jvp(projection, x, direction), difference(by_numpy, x, direction), atol=1e-7
    )


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_along_hermitian_directions(dtype):
    x, direction = positive((3, 3), dtype), positive((3, 3), dtype, seed=4)

    def spectral(m):
        def function(a):
            w, v = m.linalg.eigh(a)
            return (v * m.exp(-w / 10)) @ v.conj().T  # does not depend on the phases of the vectors

        return function

    np.testing.assert_allclose(
        wide_jvp(linalg.cholesky, x, direction), difference(np.linalg.cholesky, x, direction), atol=1e-7
    )
    np.testing.assert_allclose(
        wide_jvp(spectral(jnp), x, direction), difference(spectral(np), x, direction), atol=1e-7
    )
    unsymmetrized = lambda a: lax.linalg.cholesky(a, symmetrize_input=False)  # noqa: E731
    np.testing.assert_allclose(
        wide_jvp(unsymmetrized, x, direction), difference(np.linalg.cholesky, x, direction), atol=1e-7
    )


def test_least_squares_and_pseudoinverse_have_derivatives_at_repeated_singular_values():
    a, b = np.vstack([np.eye(3), np.zeros((1, 3))]), numbers((4,), "float64")
    direction = numbers((4, 3), "float64", seed=1)
    solution = wide_jvp(lambda a: linalg.lstsq(a, ours(b))[0], a, direction)
    np.testing.assert_allclose(
        solution, difference(lambda a: np.linalg.lstsq(a, b)[0], a, direction), atol=1e-7
    )
    np.testing.assert_allclose(
        wide_jvp(linalg.pinv, a, direction), difference(np.linalg.pinv, a, direction), atol=1e-7
    )


def test_one_factorization_serves_a_batch_of_right_sides():
    a, b = ours(regular((3, 3))), ours(numbers((5, 3)))
    batched = purax.vmap(linalg.solve, (None, 0))
    text = str(purax.make_jaxpr(batched)(a, b))
    assert text.count("lu ") == 1 and "f32[3,5]" in text  # the right sides have become columns
    np.testing.assert_allclose(batched(a, b), np.linalg.solve(np.asarray(a), np.asarray(b).T).T, rtol=1e-5)


def test_ormqr_is_linear_in_what_it_multiplies():
    h, taus = linalg.qr(ours(numbers((4, 2), "complex64")), mode="raw")
    c, d = ours(numbers((4, 3), "complex64")), ours(numbers((4, 3), "complex64", 2))
    multiply = lambda c: lax.linalg.ormqr(h.mT, taus, c)  # noqa: E731
    out, tangent = purax.jvp(multiply, (c,), (d,))
    np.testing.assert_allclose(tangent, multiply(d), rtol=1e-5)
    pulled = purax.vjp(multiply, c)[1](d)[0]
    np.testing.assert_allclose(jnp.sum(pulled * c), jnp.sum(out * d), rtol=1e-4)


def test_perturbed_tridiagonal_systems_have_finite_solutions():
    zero, ones = jnp.zeros(3), jnp.ones((3, 1))
    diagonal = jnp.array([1.0, 0.0, 2.0])
    assert np.isnan(np.asarray(lax.linalg.tridiagonal_solve(zero, diagonal, zero, ones))).all()
    perturbed = np.asarray(lax.linalg.tridiagonal_solve(zero, diagonal, zero, ones, perturb_singular=True))
    assert np.isfinite(perturbed).all() and abs(perturbed[1, 0]) > 1e5


def test_subsets_of_spectra():
    x = ours(positive((4, 4)))
    v, w = lax.linalg.eigh(x)
    v_part, w_part = lax.linalg.eigh(x, subset_by_index=(1, 3))
    np.testing.assert_array_equal(w_part, w[1:3])
    np.testing.assert_array_equal(v_part, v[:, 1:3])
    u, s, vh = linalg.svd(x, full_matrices=False, subset_by_index=(0, 2))
    assert u.shape == (4, 2) and s.shape == (2,) and vh.shape == (2, 4)
    np.testing.assert_array_equal(
        lax.linalg.svd(x, compute_uv=False, subset_by_index=(0, 2)), linalg.svdvals(x)[:2]
    )


# --- errors


def vectors(n):
    return jnp.ones(n)


ERRORS = [
    (lambda: linalg.inv(vectors(3)), ValueError, r"linalg.inv.*\(3,\)"),
    (lambda: linalg.det(jnp.ones((3, 2))), ValueError, r"linalg.det.*\[..., n, n\].*\(3, 2\)"),
    (lambda: linalg.inv([[1.0]]), TypeError, "linalg.inv.*list"),
    (lambda: linalg.inv(jnp.ones((2, 2), jnp.bfloat16)), TypeError, "bfloat16.*astype"),
    (lambda: linalg.solve(jnp.eye(3), vectors(2)), ValueError, r"\(3, 3\).*\(2,\)"),
    (lambda: linalg.solve(jnp.ones((2, 3, 3)), jnp.ones((2, 3))), ValueError, r"b\[..., None\]"),
    (lambda: linalg.solve(jnp.ones((2, 3, 3)), jnp.ones((4, 3, 1))), ValueError, "do not broadcast"),
    (lambda: linalg.lstsq(jnp.ones((2, 3, 3)), vectors(2)), TypeError, r"\(2, 3, 3\)"),
    (lambda: linalg.lstsq(jnp.ones((3, 2)), vectors(2)), ValueError, "equally many rows"),
    (lambda: linalg.qr(jnp.eye(2), mode="economic"), ValueError, "economic"),
    (lambda: linalg.eigh(jnp.eye(2), UPLO="X"), ValueError, "UPLO.*'X'"),
    (lambda: linalg.slogdet(jnp.eye(2), method="svd"), ValueError, "method.*'svd'"),
    (lambda: linalg.norm(jnp.eye(2), "euclid"), ValueError, "euclid"),
    (lambda: linalg.norm(vectors(2), "fro"), ValueError, "vectors.*'fro'"),
    (lambda: linalg.norm(jnp.ones((2, 2, 2)), 2), ValueError, r"\(2, 2, 2\)"),
    (lambda: linalg.norm(jnp.eye(2), axis=(0, 0)), ValueError, "duplicate"),
    (lambda: linalg.cond(jnp.ones((0, 0))), ValueError, "empty"),
    (lambda: linalg.cond(jnp.ones((3, 2)), 1), ValueError, "square"),
    (lambda: linalg.matrix_power(jnp.eye(2), 1.5), TypeError, "1.5"),
    (lambda: linalg.matrix_rank(jnp.eye(2), 1, tol=1), ValueError, "only one"),
    (lambda: linalg.pinv(jnp.eye(2), 1, rcond=1), ValueError, "only one"),
    (lambda: linalg.multi_dot([jnp.eye(2)]), ValueError, "at least two"),
    (lambda: linalg.multi_dot([jnp.eye(2), jnp.eye(3)]), ValueError, r"\(2, 2\), \(3, 3\)"),
    (lambda: linalg.cross(vectors(2), vectors(2)), ValueError, "3 components"),
    (lambda: linalg.outer(jnp.eye(2), vectors(2)), ValueError, r"\(2, 2\)"),
    (lambda: linalg.tensorinv(jnp.ones((2, 3)), 1), ValueError, "2 elements"),
    (lambda: linalg.tensorsolve(jnp.ones((2, 3)), vectors(2)), ValueError, r"\(2, 3\)"),
    (lambda: linalg.svd(jnp.eye(2), subset_by_index=(1, 5)), ValueError, r"\(1, 5\)"),
    (lambda: lax.linalg.triangular_solve(jnp.eye(2), jnp.ones((3, 3))), TypeError, r"\(2, 2\).*\(3, 3\)"),
    (
        lambda: lax.linalg.triangular_solve(jnp.eye(2), jnp.ones((2, 2), jnp.complex64)),
        TypeError,
        "one dtype",
    ),
    (lambda: lax.linalg.schur(jnp.eye(2), sort_eig_vals=True), NotImplementedError, "sort_eig_vals"),
    (lambda: lax.linalg.lu(jnp.eye(2, dtype=int)), TypeError, "int32.*astype"),
    (lambda: lax.linalg.householder_product(jnp.ones((2, 3)), vectors(2)), ValueError, r"\(2, 3\)"),
    (
        lambda: lax.linalg.tridiagonal_solve(vectors(2), vectors(3), vectors(3), jnp.ones((3, 1))),
        ValueError,
        r"\(2,\), \(3,\)",
    ),
    (
        lambda: lax.linalg.svd(jnp.eye(2), algorithm=lax.linalg.SvdAlgorithm.POLAR),
        NotImplementedError,
        "POLAR",
    ),
    (
        lambda: purax.jvp(linalg.eig, (jnp.eye(2),), (jnp.eye(2),)),
        NotImplementedError,
        "enable_eigvec_derivs",
    ),
    (
        lambda: purax.jit(lambda a, b: linalg.lstsq(a, b, numpy_resid=True))(jnp.eye(2), vectors(2)),
        ValueError,
        "numpy_resid",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors_name_what_is_wrong(call, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        call()


# --- names


def test_every_public_name_of_jax_is_there():
    for module, other in ((linalg, jax.numpy.linalg), (lax.linalg, jax.lax.linalg)):
        missing = [name for name in dir(other) if not name.startswith("_") and not hasattr(module, name)]
        assert not missing, f"{module.__name__} lacks {missing}"


def test_lowered_for_gpus_it_calls_the_solvers():
    """Without a GPU only the text can be looked at."""
    from purax.lowering.jaxpr_to_stablehlo import lower_primitive
    from purax.primitives.linalg.eigen import eig_p, eigh_p
    from purax.primitives.linalg.lu import lu_p
    from purax.primitives.linalg.orthogonal import qr_p
    from purax.primitives.linalg.singular_values import svd_p

    aval = ours(np.zeros((2, 4, 3), np.float32)).aval
    square = aval.with_shape((2, 3, 3))

    def text(primitive, aval, **params):
        return lower_primitive(primitive, (aval,), params, "cuda").text()

    assert "cusolver_getrf_ffi" in text(lu_p, aval) and "cu_lu_pivots_to_permutation" in text(lu_p, aval)
    assert "cusolver_orgqr_ffi" in text(qr_p, aval, pivoting=False, full_matrices=True)
    assert "cusolver_gesvdj_ffi" in text(svd_p, aval, full_matrices=True, compute_uv=True, algorithm=None)
    assert "cusolver_syevd_ffi" in text(eigh_p, square, lower=True, algorithm=None)
    assert "custom_call" not in lower_primitive(lu_p, (aval,), {}, "tpu").text()
    flags = dict(compute_left_eigenvectors=False, compute_right_eigenvectors=False, implementation=None)
    with pytest.raises(
        NotImplementedError, match=r"eig of f32\[2,3,3\] is not available on tpu.*devices\('cpu'\)"
    ):
        lower_primitive(eig_p, (square,), {**flags, "enable_eigvec_derivs": False}, "tpu")
