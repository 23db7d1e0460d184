"""Iterative solutions: small residuals, and derivatives that are those of a direct solution."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.scipy.sparse.linalg import bicgstab, cg, gmres

pytestmark = pytest.mark.sampled(2)

generator = np.random.default_rng(0)
METHODS = {
    "cg": cg,
    "bicgstab": bicgstab,
    "gmres": gmres,
    "gmres, incremental": lambda *args, **options: gmres(*args, **options, solve_method="incremental"),
    "gmres, restarted": lambda *args, **options: gmres(*args, **options, restart=5),
    "gmres, incremental, restarted": lambda *args, **options: gmres(
        *args, **options, restart=5, solve_method="incremental"
    ),
}


def matrix(name, size, dtype):
    g = generator.normal(size=(size, size)) + (
        1j * generator.normal(size=(size, size)) if dtype[0] == "c" else 0
    )
    a = g @ g.conj().T + size * np.eye(size) if name == "cg" else g + 3 * np.sqrt(size) * np.eye(size)
    return jnp.asarray(a, dtype)


@pytest.mark.parametrize("name", METHODS)
def test_residuals_are_as_small_as_asked_for(name):
    solve = METHODS[name]
    for size, dtype in ((1, "float32"), (3, "complex64"), (20, "float64")):
        a = matrix(name, size, dtype)
        b = jnp.asarray(generator.normal(size=size), dtype)
        inverse_diagonal = jnp.diag(1 / jnp.diagonal(a))
        for m in (None, inverse_diagonal) if size == 20 else (inverse_diagonal,):
            tolerance = 1e-10 if dtype == "float64" else 1e-5
            x, _ = solve(a, b, M=m, tol=tolerance)
            assert x.dtype == b.dtype
            residual = np.linalg.norm(np.asarray(a) @ np.asarray(x) - np.asarray(b)) / np.linalg.norm(b)
            assert residual < 2 * tolerance, (size, dtype, m is None)
    # From the solution there is nowhere to go, and without iterations one stays.
    np.testing.assert_array_equal(solve(a, b, x, maxiter=0)[0], x)
    np.testing.assert_array_equal(solve(a, 0 * b)[0], 0 * b)


@pytest.mark.parametrize("name", [name for name in METHODS if "restarted" not in name])
def test_derivatives_are_implicit(name):
    solve = METHODS[name]
    a, b = matrix(name, 4, "float32"), jnp.asarray(generator.normal(size=4), jnp.float32)
    loss = lambda solution: jnp.sum(jnp.sin(solution))  # noqa: E731
    tight = lambda a, b: solve(a, b, tol=1e-7, maxiter=20)[0]  # noqa: E731
    iterative = purax.jit(purax.value_and_grad(lambda a, b: loss(tight(a, b)), (0, 1)))(a, b)
    direct = purax.value_and_grad(lambda a, b: loss(jnp.linalg.solve(a, b)), (0, 1))(a, b)
    if name == "cg":  # which takes the matrix for symmetric
        symmetric = lambda g: (g + g.T) / 2  # noqa: E731
        iterative = (iterative[0], (symmetric(iterative[1][0]), iterative[1][1]))
        direct = (direct[0], (symmetric(direct[1][0]), direct[1][1]))
    for x, y in zip(purax.tree.leaves(iterative), purax.tree.leaves(direct), strict=True):
        np.testing.assert_allclose(x, y, atol=2e-5)
    _, tangent = purax.jvp(lambda a: tight(a, b), (a,), (a,))
    np.testing.assert_allclose(tangent, -jnp.linalg.solve(a, b), atol=2e-5)
    columns = purax.vmap(lambda b: tight(a, b), out_axes=1)(jnp.eye(4))
    np.testing.assert_allclose(columns, jnp.linalg.inv(a), atol=2e-5)


def test_pytrees_functions_and_objects():
    def operator(x):
        return {"a": 2 * x["a"] + jnp.sum(x["b"]), "b": 3 * x["b"] + jnp.sum(x["a"])}

    b = {"a": jnp.ones(2), "b": jnp.arange(4.0).reshape(2, 2)}
    for solve in (cg, bicgstab, gmres):
        x, _ = solve(operator, b, tol=1e-6)
        for given, wanted in zip(purax.tree.leaves(operator(x)), purax.tree.leaves(b), strict=True):
            np.testing.assert_allclose(given, wanted, atol=1e-4)
    sparse = purax.experimental.sparse.eye(3) * 4
    np.testing.assert_allclose(cg(sparse, jnp.ones(3))[0], jnp.full(3, 0.25))
    assert cg(jnp.eye(2, dtype=int), jnp.array([1, 2]))[0].dtype == jnp.float32
    assert gmres(jnp.full((2, 2), jnp.nan), jnp.ones(2))[1] in (0, -1)


@pytest.mark.parametrize("solve", [cg, bicgstab, gmres])
def test_wrong_arguments(solve):
    a, b = jnp.eye(2), jnp.ones(2)
    for call, kind, message in (
        (lambda: solve(a, b[:1]), ValueError, "b must be an array with 2 rows"),
        (lambda: solve(a[:1], b), ValueError, "must be a square matrix"),
        (lambda: solve(a, b, b[:1]), ValueError, "must have equal shapes"),
        (lambda: solve(a, b, {"x": b}), ValueError, "same structure"),
        (lambda: solve("a", b), TypeError, "a matrix, a function or have"),
        (lambda: solve(a, b, M=3.0), TypeError, "M must be a matrix"),
        (lambda: solve(lambda x: x[:1], b), ValueError, "must return what its argument looks like"),
    ):
        with pytest.raises(kind, match=message) as caught:
            call()
        assert "test_sparse_linalg.py" in str(caught.value)
    with pytest.raises(ValueError, match="solve_method must be"):
        gmres(a, b, solve_method="other")
