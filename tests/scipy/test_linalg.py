"""Linear algebra and cosine transforms against SciPy, in double precision, eager and compiled, with derivatives."""

from __future__ import annotations

import inspect

import jax
import numpy as np
import pytest
import scipy.fft
import scipy.linalg
from jax.scipy import linalg as jax_linalg

import purax as px
import purax.numpy as jnp
from purax.scipy import fft, linalg
from purax.testing.check_grads import check_grads
from tests.scipy.scipy_names import FFT, LINALG

generator = np.random.default_rng(0)
A, B, C = (generator.normal(size=shape) for shape in ((5, 5), (4, 4), (5, 4)))
S = A @ A.T + np.eye(5)
Z = A + 1j * generator.normal(size=(5, 5))
H = Z @ Z.conj().T + np.eye(5)


def wide(*arrays):
    return [jnp.asarray(x, dtype="complex128" if np.iscomplexobj(x) else "float64") for x in arrays]


def close(got, wanted, tolerance: float = 1e-12) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(
        got, wanted, rtol=tolerance, atol=tolerance * max(1.0, np.abs(wanted).max(initial=0))
    )


def both(function, *arrays):
    """The result and that of the compiled program."""
    arrays = wide(*arrays)
    return function(*arrays), px.jit(function)(*arrays)


def test_names_and_arguments():
    assert [name for name in LINALG if not hasattr(linalg, name)] == []
    assert [name for name in FFT if not hasattr(fft, name)] == []
    for name in LINALG:
        ours, theirs = (inspect.signature(getattr(m, name)).parameters.values() for m in (linalg, jax_linalg))
        assert [(p.name, p.default, p.kind) for p in ours] == [(p.name, p.default, p.kind) for p in theirs], (
            name
        )


# --- functions of matrices


@pytest.mark.parametrize("matrix", [A, 30 * A, 0 * A, Z, np.stack([A, 40 * A, 0 * A])], ids=range(5))
def test_exponentials(matrix):
    for got in both(linalg.expm, matrix):
        close(got, scipy.linalg.expm(matrix), 3e-12)


def test_exponentials_of_other_kinds():
    close(linalg.expm(*wide(np.triu(3 * A)), upper_triangular=True), scipy.linalg.expm(np.triu(3 * A)))
    single = linalg.expm(jnp.asarray(A.astype(np.float32)))
    assert single.dtype == np.float32
    close(single, scipy.linalg.expm(A.astype(np.float32).astype(float)), 2e-6)
    assert np.isnan(np.asarray(linalg.expm(jnp.eye(2) * 1e9))).all()
    assert linalg.expm(jnp.eye(2, dtype=int)).dtype == np.float32
    for got, wanted in zip(linalg.expm_frechet(*wide(A, S)), scipy.linalg.expm_frechet(A, S), strict=True):
        close(got, wanted)
    check_grads(linalg.expm, wide(A), 2)
    check_grads(px.jit(linalg.expm), wide(5 * A), 1)


def test_roots_and_functions():
    for matrix in (A, S, Z, np.stack([S, 2 * S])):
        for got in both(linalg.sqrtm, matrix):
            assert got.dtype == np.complex128
            close(got @ got, matrix)
    close(linalg.sqrtm(*wide(S)), scipy.linalg.sqrtm(S))
    close(linalg.funm(*wide(A), jnp.sin), scipy.linalg.funm(A, np.sin), 1e-10)
    matrix, error = linalg.funm(*wide(A), jnp.exp, disp=False)
    close(matrix, scipy.linalg.expm(A), 1e-10)
    assert 0 < float(error) < 1e-10
    check_grads(linalg.sqrtm, wide(S), 2)


# --- equations


@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_sylvester(method):
    wanted = scipy.linalg.solve_sylvester(A, B, C)
    for got in both(lambda *m: linalg.solve_sylvester(*m, method=method), A, B, C):
        close(got, wanted, 1e-11)
    batch = linalg.solve_sylvester(*wide(np.stack([A, 2 * A]), B, C), method=method)
    close(batch[1], scipy.linalg.solve_sylvester(2 * A, B, C), 1e-11)
    singular = linalg.solve_sylvester(*wide(np.eye(2), -np.eye(2), np.ones((2, 2))), method=method)
    assert np.isnan(np.asarray(singular)).all()
    check_grads(lambda *m: linalg.solve_sylvester(*m, method=method), wide(A, B, C), 1)
    with pytest.raises(ValueError, match="C must have shape"):
        linalg.solve_sylvester(*wide(A, B, A))


def test_solutions():
    for b in (C, C[:, 0]):
        for lower in (False, True):
            close(linalg.cho_solve(linalg.cho_factor(*wide(H), lower=lower), *wide(b)), np.linalg.solve(H, b))
            triangle = np.tril(H) if lower else np.triu(H)
            for kind in ("pos", "her"):
                close(linalg.solve(*wide(triangle, b), lower=lower, assume_a=kind), np.linalg.solve(H, b))
            for trans in (0, 1, "C"):
                wanted = scipy.linalg.solve_triangular(Z, b, trans=trans, lower=lower)
                close(linalg.solve_triangular(*wide(Z, b), trans=trans, lower=lower), wanted)
        close(linalg.solve(*wide(A, b)), np.linalg.solve(A, b))
        close(linalg.solve(*wide(np.triu(S), b), assume_a="sym"), np.linalg.solve(S, b))
        for trans in (0, 1, 2):
            wanted = scipy.linalg.lu_solve(scipy.linalg.lu_factor(Z), b, trans=trans)
            close(linalg.lu_solve(linalg.lu_factor(*wide(Z)), *wide(b), trans=trans), wanted)
    stack = np.stack([S, 2 * S])
    close(linalg.solve(*wide(stack, C[None]), assume_a="pos"), np.linalg.solve(stack, C[None]))
    close(linalg.lu_solve(linalg.lu_factor(*wide(stack)), *wide(C)), np.linalg.solve(stack, C[None]))
    close(linalg.det(*wide(A)), np.linalg.det(A))
    close(linalg.inv(*wide(A)), np.linalg.inv(A))
    check_grads(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), wide(A, C), 1)
    check_grads(lambda a, b: linalg.solve(a @ a.T + jnp.eye(5), b, assume_a="pos"), wide(A, C), 1)
    for bad, message in ((dict(assume_a="big"), "assume_a"), (dict(b=np.ones(4)), "b must have shape")):
        with pytest.raises(ValueError, match=message):
            linalg.solve(A, bad.pop("b", C), **bad)
    with pytest.raises(ValueError, match="trans"):
        linalg.solve_triangular(A, C, trans=3)


# --- factorizations


def test_factors():
    for matrix in (A, C, C.T, Z):
        for got, wanted in zip(linalg.lu(*wide(matrix)), scipy.linalg.lu(matrix), strict=True):
            close(got, wanted)
        for got, wanted in zip(
            linalg.lu(*wide(matrix), permute_l=True), scipy.linalg.lu(matrix, True), strict=True
        ):
            close(got, wanted)
        for mode in ("full", "economic"):
            q, r = linalg.qr(*wide(matrix), mode=mode)
            assert [q.shape, r.shape] == [x.shape for x in scipy.linalg.qr(matrix, mode=mode)]
            close(q @ r, matrix)
            q, r, order = linalg.qr(*wide(matrix), mode=mode, pivoting=True)
            close(q @ r, matrix[:, np.asarray(order)])
        close(np.abs(linalg.qr(*wide(matrix), mode="r")[0]), np.abs(scipy.linalg.qr(matrix, mode="r")[0]))
        u, s, vh = linalg.svd(*wide(matrix), full_matrices=False)
        close(u * s @ vh, matrix)
        close(linalg.svd(*wide(matrix), compute_uv=False), scipy.linalg.svdvals(matrix))
    for lower in (False, True):
        close(linalg.cholesky(*wide(H), lower=lower), scipy.linalg.cholesky(H, lower=lower))
    for a, c, mode in ((C, A, "right"), (A, A[0], "right"), (A, C, "left")):
        got, r = linalg.qr_multiply(*wide(a, c), mode=mode)
        q = np.asarray(linalg.qr(*wide(a), mode="economic")[0])
        close(got, c @ q if mode == "right" else q @ c)
    with pytest.raises(ValueError, match="unsupported mode"):
        linalg.qr(A, mode="raw")


def test_eigenvalues():
    close(linalg.eigh(*wide(S), eigvals_only=True), np.linalg.eigvalsh(S))
    w, v = linalg.eigh(*wide(np.triu(H)), lower=False)
    close(H @ np.asarray(v), np.asarray(v) * np.asarray(w))
    w, v = linalg.eigh(*wide(A + A.T, S))
    close(w, scipy.linalg.eigh(A + A.T, S, eigvals_only=True))
    close((A + A.T) @ np.asarray(v), S @ np.asarray(v) * np.asarray(w))
    d, e = A[0], A[1, :4]
    w, v = linalg.eigh_tridiagonal(*wide(d, e))
    close(w, scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True))
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    close(matrix @ np.asarray(v), np.asarray(v) * np.asarray(w))
    for select, limits in (("i", (1, 3)), ("v", (-1.0, 1.0))):
        wanted = scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True, select=select, select_range=limits)
        close(
            linalg.eigh_tridiagonal(*wide(d, e), eigvals_only=True, select=select, select_range=limits),
            wanted,
        )
    check_grads(lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True), wide(d, e), 1)
    check_grads(lambda a, b: linalg.eigh(a + a.T, b @ b.T + jnp.eye(5), eigvals_only=True), wide(A, S), 1)


def test_forms():
    for matrix in (A, Z, np.stack([A, S])):
        form, q = linalg.hessenberg(*wide(matrix), calc_q=True)
        close(q @ form @ jnp.conj(jnp.swapaxes(q, -1, -2)), matrix)
        close(np.tril(form, -2), np.zeros(matrix.shape))
        form, z = linalg.schur(*wide(matrix), output="complex")
        close(z @ form @ jnp.conj(jnp.swapaxes(z, -1, -2)), matrix)
    form, z = linalg.rsf2csf(*wide(*(np.stack([x, x]) for x in scipy.linalg.schur(A))))
    close((z @ form @ jnp.conj(jnp.swapaxes(z, -1, -2)))[1], A)
    close(np.tril(form, -1), np.zeros((2, 5, 5)))
    for matrix in (A, C, C.T, Z):
        for side in ("right", "left"):
            for method in ("qdwh", "svd"):
                for got, wanted in zip(
                    linalg.polar(*wide(matrix), side, method=method),
                    scipy.linalg.polar(matrix, side),
                    strict=True,
                ):
                    close(got, wanted, 1e-11)


# --- special matrices


def test_special_matrices():
    v, w = np.array([2.0, -1.0, 3.0, 0.5]), np.array([9.0, 8.0, 7.0])
    for name, arguments in {
        "toeplitz": [(v,), (v, w), (v + 1j,)],
        "hankel": [(v,), (v, w)],
        "circulant": [(v,)],
        "companion": [(v,), (v[:2],)],
        "fiedler": [(v,)],
        "leslie": [(v, w)],
        "block_diag": [(v, np.ones((2, 3)), 5.0), ()],
    }.items():
        for row in arguments:
            close(getattr(linalg, name)(*wide(*row)), getattr(scipy.linalg, name)(*row))
    for size in range(2, 8):
        coefficients = generator.normal(size=size)
        got = linalg.fiedler_companion(*wide(coefficients))
        close(got, scipy.linalg.fiedler_companion(coefficients))
        for mode in ("full", "same", "valid"):
            for n in (1, 3, 7):
                got = linalg.convolution_matrix(*wide(coefficients), n, mode)
                close(got, scipy.linalg.convolution_matrix(coefficients, n, mode))
        for name in ("hilbert", "invhilbert"):
            close(getattr(linalg, name)(size), getattr(scipy.linalg, name)(size), 1e-6)
        for kind in ("symmetric", "lower", "upper"):
            for name in ("pascal", "invpascal"):
                got = np.asarray(getattr(linalg, name)(size, kind))
                np.testing.assert_array_equal(got, getattr(scipy.linalg, name)(size, kind).astype(np.float32))
        for full in (False, True):
            close(linalg.helmert(size, full), scipy.linalg.helmert(size, full), 1e-6)
        for scale in (None, "sqrtn", "n"):
            close(linalg.dft(size, scale), scipy.linalg.dft(size, scale), 1e-6)
    close(linalg.hadamard(8), scipy.linalg.hadamard(8))
    batch = generator.normal(size=(2, 4))
    for name in ("toeplitz", "circulant", "companion", "fiedler", "hankel", "fiedler_companion"):
        function = getattr(linalg, name)
        close(function(*wide(batch))[1], function(*wide(batch[1])))
    assert linalg.toeplitz(jnp.array([1, 2])).dtype == np.int32
    for call, message in (
        (lambda: linalg.hadamard(3), "power of 2"),
        (lambda: linalg.pascal(3, "middle"), "kind"),
        (lambda: linalg.leslie(v, v), "one element less"),
        (lambda: linalg.companion(1.0), "at least 2"),
        (lambda: linalg.dft(2, "big"), "scale"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_types_are_those_of_jax():
    x = A.astype(np.float32)
    for name in (
        "expm",
        "sqrtm",
        "schur",
        "lu",
        "lu_factor",
        "svd",
        "eigh",
        "polar",
        "hessenberg",
        "toeplitz",
        "det",
    ):
        theirs = jax.tree.leaves(jax.eval_shape(getattr(jax_linalg, name), x))
        ours = px.tree.leaves(getattr(linalg, name)(jnp.asarray(x)))
        assert [(a.shape, a.dtype) for a in ours] == [(b.shape, b.dtype) for b in theirs], name


# --- cosine transforms


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_cosine_transforms(type, norm):
    for size in (2, 5, 8):
        x = generator.normal(size=(3, size))
        for name in ("dct", "idct"):
            wanted = getattr(scipy.fft, name)(x, type, norm=norm)
            close(getattr(fft, name)(*wide(x), type, norm=norm), wanted)
    x = generator.normal(size=(4, 5)) + 1j * generator.normal(size=(4, 5))
    for name, keywords in (
        ("dctn", {}),
        ("idctn", {}),
        ("dctn", {"s": (3, 8)}),
        ("idctn", {"s": [7], "axes": [0]}),
    ):
        wanted = getattr(scipy.fft, name)(x, type, norm=norm, **keywords)
        for function in (
            getattr(fft, name),
            px.jit(getattr(fft, name), static_argnames=("type", "norm", "s", "axes")),
        ):
            keywords = {k: tuple(v) for k, v in keywords.items()}
            close(function(*wide(x), type=type, norm=norm, **keywords), wanted)


def test_cosine_transforms_of_other_kinds():
    x = generator.normal(size=(3, 6)).astype(np.float32)
    close(fft.dct(jnp.asarray(x), n=4, axis=0), scipy.fft.dct(x, n=4, axis=0), 2e-6)
    assert fft.dct(jnp.arange(4)).dtype == np.float32
    check_grads(lambda x: fft.dctn(x, norm="ortho"), wide(x.astype(float)), 1)
    for call, message in ((lambda: fft.dct(x, 5), "type"), (lambda: fft.dct(x, norm="half"), "norm")):
        with pytest.raises(ValueError, match=message):
            call()
