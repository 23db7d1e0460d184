"""Sparse linear systems and eigenvalues of large symmetric matrices: `spsolve`, `lobpcg_standard`."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.api.stages import ShapeDtypeStruct
from purax.callbacks.pure import pure_callback
from purax.control_flow.linear_solve import custom_linear_solve
from purax.control_flow.while_loop import while_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.experimental.sparse.compressed import CSR


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: Any = 1e-6, reorder: int = 1) -> Array:
    """The solution of A x = b for a sparse matrix in compressed rows, by SciPy's direct solver on the host.

    Args:
        data, indices, indptr: those of a `CSR` matrix.
        b: a vector.
        tol: has no effect; it is for the solver of a GPU.
        reorder: 0 leaves the columns in their order, else they are ordered so that factors have few elements.

    Returns:
        The solution, which can be differentiated with respect to `data` and `b`.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> m = sparse.CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> sparse.linalg.spsolve(m.data, m.indices, m.indptr, jnp.array([2.0, 9.0]))
    Array([1., 2.], dtype=float32)
    """
    data, b = jnp.asarray(data), jnp.asarray(b)
    indices, indptr = jnp.asarray(indices), jnp.asarray(indptr)
    size = indptr.shape[0] - 1
    if b.shape != (size,):
        raise located(
            ValueError,
            f"spsolve: the matrix has {size} rows, so b must have the shape ({size},), got {b.shape}",
        )
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(data, b))
    data, b = data.astype(dtype), b.astype(dtype)

    def solver(is_transposed: bool) -> Any:
        def on_host(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
            import scipy.sparse

            parts = tuple(np.array(part) for part in (data, indices, indptr))  # which the solver may write to
            matrix = scipy.sparse.csr_matrix(parts, shape=(size, size))
            order = "COLAMD" if reorder else "NATURAL"
            solution = scipy.sparse.linalg.spsolve((matrix.T if is_transposed else matrix).tocsc(), b, order)
            return np.asarray(solution, b.dtype)

        def solve(product: Any, b: Any) -> Any:
            result = ShapeDtypeStruct(b.shape, b.dtype)
            return pure_callback(on_host, result, data, indices, indptr, b, vmap_method="sequential")

        return solve

    matrix = CSR((data, indices, indptr), shape=(size, size))
    return custom_linear_solve(lambda x: matrix @ x, b, solver(False), solver(True))


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> tuple[Any, Any, Any]:  # noqa: N803
    """The largest eigenvalues of a symmetric matrix, by locally optimal block preconditioned conjugate gradients.

    Args:
        A: the matrix, an object with `@`, or a function from matrices of columns to their products.
        X: the first guess: a matrix with a column for each eigenvalue, fewer than a fifth of its rows.
        m: the largest number of iterations.
        tol: how small residuals are to be, relative to the eigenvalue and its matrix; the dtype's epsilon if None.

    Returns:
        The eigenvalues in decreasing order, the eigenvectors as columns, and the number of iterations.

    >>> import purax.numpy as jnp
    >>> from purax.experimental.sparse.linalg import lobpcg_standard
    >>> values, vectors, steps = lobpcg_standard(jnp.diag(jnp.arange(20.0)), jnp.eye(20, 2) + 0.1)
    >>> values.round(3)
    Array([19., 18.], dtype=float32)
    """
    X = jnp.asarray(X)  # noqa: N806
    if X.ndim != 2 or not dtypes.is_floating(X.dtype):
        raise located(
            ValueError, f"lobpcg_standard: X must be a matrix of real numbers, got {X.aval.str_short()}"
        )
    n, k = X.shape
    if k < 1 or 5 * k >= n:
        raise located(
            ValueError,
            f"lobpcg_standard: X of shape {X.shape} must have between one and a fifth as many columns as rows; "
            "use `numpy.linalg.eigh` for more",
        )
    product = A if callable(A) else lambda x: A @ x
    tol = float(jnp.finfo(X.dtype).eps) if tol is None else tol

    def matmul(x: Any, y: Any) -> Any:
        return jnp.matmul(x, y, precision="highest")

    def orthonormal(x: Any) -> Any:
        """Columns of length 1 that are orthogonal; 0 for those that depend on others."""
        size = jnp.linalg.norm(x, axis=0)
        x = x / jnp.where(size == 0, 1, size)
        values, vectors = jnp.linalg.eigh(matmul(x.T, x))
        is_used = values > 10 * jnp.finfo(x.dtype).eps * values[-1]
        scale = jnp.where(is_used, 1 / jnp.sqrt(jnp.where(is_used, values, 1)), 0)
        return matmul(x, vectors * scale)

    def best(basis: Any) -> tuple[Any, Any]:
        """The largest Ritz values in the space of orthonormal columns, and their coefficients."""
        values, vectors = jnp.linalg.eigh(matmul(basis.T, product(basis)))
        # Columns that are 0 have the value 0 and must not count as eigenvectors.
        weight = jnp.sum(matmul(basis, vectors) ** 2, axis=0)
        order = jnp.argsort(jnp.where(weight > 0.5, -values, jnp.inf))[:k]
        return values[order], vectors[:, order]

    def residual(x: Any, values: Any) -> Any:
        return product(x) - x * values

    def is_rough(x: Any, values: Any) -> Any:
        size = jnp.linalg.norm(residual(x, values), axis=0)
        return jnp.any(size > tol * 10 * n * jnp.maximum(abs(values), abs(values[0])))

    def advance(state: Any) -> Any:
        x, p, values, count = state
        r = residual(x, values)
        others = jnp.concatenate([r, p], axis=1)
        for _ in range(2):
            others = others - matmul(x, matmul(x.T, others))
            others = orthonormal(others)
        basis = jnp.concatenate([x, others], axis=1)
        values, coefficients = best(basis)
        new = matmul(basis, coefficients)
        # The direction is the new vectors without their part along the old ones.
        p = matmul(others, coefficients[k:])
        exact, triangle = jnp.linalg.qr(new)  # nearly the same: without rounding errors it is orthonormal
        return exact * jnp.sign(jnp.diagonal(triangle)), p, values, count + 1

    start = jnp.linalg.qr(X)[0]
    values, coefficients = best(start)
    start = matmul(start, coefficients)
    first = (start, jnp.zeros_like(start), values, jnp.zeros((), jnp.int32))
    x, _, values, count = while_loop(lambda s: (s[3] < m) & is_rough(s[0], s[2]), advance, first)
    return values, x, count
