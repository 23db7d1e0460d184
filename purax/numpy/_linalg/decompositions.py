"""Factorizations of matrices for users: Cholesky, QR, singular values, eigenvalues.

Matrices stand in the last two axes; where a factorization fails its results are NaN.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._linalg.arguments import matrices
from purax.numpy._programs import as_one_program
from purax.primitives.elementwise.arithmetic import abs_
from purax.primitives.elementwise.elementwise import neg
from purax.primitives.elementwise.logic import lt, select
from purax.primitives.linalg.eigen import eig as eig_of_matrices
from purax.primitives.linalg.eigen import eigh as eigh_of_matrices
from purax.primitives.linalg.eigen import eigh_p
from purax.primitives.linalg.matrices import (
    adjoint,
    columns_of,
    permute_columns,
    rows_of,
    scale_columns,
    transposed,
)
from purax.primitives.linalg.orthogonal import geqrf
from purax.primitives.linalg.orthogonal import qr as qr_of_matrices
from purax.primitives.linalg.singular_values import svd as svd_of_matrices
from purax.primitives.linalg.triangular import cholesky as cholesky_of_matrices
from purax.primitives.linalg.triangular import cholesky_p, symmetrize
from purax.primitives.shape.gather_scatter import take_along_axis
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.sorting import argsort
from purax.typing import ArrayLike


class EigResult(NamedTuple):
    """Eigenvalues and, as columns, eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Ascending eigenvalues and, as columns, eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A matrix with orthonormal columns and an upper triangular one."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors as columns, descending singular values, right singular vectors as conjugated rows."""

    U: Array
    S: Array
    Vh: Array


def _symmetrized_on_host(x: np.ndarray) -> np.ndarray:
    return (x + (x.mT.conj() if x.dtype.kind == "c" else x.mT)) * x.dtype.type(0.5)


def _cholesky_on_host(x: np.ndarray, *, symmetrize_input: bool) -> np.ndarray:
    return cholesky_p.host(_symmetrized_on_host(x) if symmetrize_input else x)


@as_one_program(_cholesky_on_host)
def _cholesky(x: Array, *, symmetrize_input: bool) -> Array:
    return cholesky_of_matrices(x, symmetrize_input)


def _eigh_on_host(x: np.ndarray, *, lower: bool, symmetrize_input: bool) -> tuple[np.ndarray, np.ndarray]:
    return tuple(eigh_p.host(_symmetrized_on_host(x) if symmetrize_input else x, lower=lower, algorithm=None))


@as_one_program(_eigh_on_host)
def _eigh(x: Array, *, lower: bool, symmetrize_input: bool) -> tuple[Array, Array]:
    return tuple(eigh_of_matrices(symmetrize(x) if symmetrize_input else x, lower))


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular factor of positive definite matrices.

    Args:
        a: Hermitian matrices, of shape [..., n, n].
        upper: whether to return the upper factor U with a = Uᴴ U instead of the lower L with a = L Lᴴ.
        symmetrize_input: whether to take (a + aᴴ) / 2 first; else one triangle is read.

    Returns:
        The factors; NaN where a matrix is not positive definite.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, square=True)
    if upper:
        return adjoint(_cholesky(adjoint(x), symmetrize_input=bool(symmetrize_input)))
    return _cholesky(x, symmetrize_input=bool(symmetrize_input))


def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Matrices as products of orthonormal columns and triangular matrices.

    Args:
        a: matrices, of shape [..., m, n].
        mode: "reduced" for Q of shape [..., m, min(m, n)]; "complete" for square Q; "r" for R alone; "raw" for
            Householder reflections, transposed, and their factors, as LAPACK's geqrf gives them.

    Returns:
        `(Q, R)`, or R alone.

    >>> import purax.numpy as jnp
    >>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> jnp.round(q @ r, 3)
    Array([[3., 1.],
           [4., 2.]], dtype=float32)
    """
    x = matrices("qr", a)
    if mode == "raw":
        packed, taus = geqrf(x)
        return QRResult(transposed(packed), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise located(
            ValueError, f"linalg.qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {shown(mode)}"
        )
    q, r = qr_of_matrices(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


# --- singular values


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """Matrices as products U diag(S) Vh with orthonormal columns in U and rows in Vh.

    Args:
        a: matrices, of shape [..., m, n].
        full_matrices: whether U and Vh are square; else they have min(m, n) columns and rows.
        compute_uv: whether to return U and Vh.
        hermitian: whether the matrices are Hermitian, which is faster.
        subset_by_index: the first index of the singular values to return, and that after the last.

    Returns:
        `(U, S, Vh)`, or S alone. Derivatives of U and Vh are not finite where a singular value is repeated.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.svd(jnp.array([[3.0, 0.0], [0.0, -4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    x = matrices("svd", a, square=bool(hermitian))
    if hermitian:
        results = _hermitian_svd(x, compute_uv)
    else:
        results = svd_of_matrices(x, full_matrices, compute_uv)
    if subset_by_index is not None:
        results = _subset(results, subset_by_index, min(x.shape[-2:]))
    if not compute_uv:
        return results[0]
    s, u, vt = results
    return SVDResult(u, s, vt)


def _hermitian_svd(x: Array, compute_uv: bool) -> list[Array]:
    v, w = eigh_of_matrices(symmetrize(x))
    size = abs_(w)
    axis = size.ndim - 1
    order = argsort(neg(size), axis)
    s = take_along_axis(size, order, axis)
    if not compute_uv:
        return [s]
    u = permute_columns(v, order)
    one = np.ones((), x.dtype)
    negative = lt(take_along_axis(w, order, axis), np.zeros((), w.dtype))
    return [s, u, adjoint(scale_columns(u, select(negative, -one, one)))]


def _subset(results: list[Array], subset: Any, size: int) -> list[Array]:
    start, end = map(operator.index, subset)
    if not 0 <= start <= end <= size:
        raise located(
            ValueError,
            f"linalg.svd: subset_by_index={subset} is not a range of indices of the {size} singular values",
        )
    s, *vectors = results
    s = slice_axis(s, start, end, s.ndim - 1)
    return [s, columns_of(vectors[0], start, end), rows_of(vectors[1], start, end)] if vectors else [s]


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices, the largest first.

    Args:
        x: matrices.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, -4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return svd_of_matrices(matrices("svdvals", x), compute_uv=False)[0]


# --- eigenvalues


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a: Hermitian matrices, of shape [..., n, n].
        UPLO: "L", the default, or "U": which triangle is read if `symmetrize_input` is false.
        symmetrize_input: whether to take (a + aᴴ) / 2 first.

    Returns:
        `(eigenvalues, eigenvectors)`; the vectors are columns. Their derivatives are not finite where an eigenvalue is
        repeated.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    x = matrices("eigh", a, square=True)
    lower = _reads_lower("eigh", UPLO)
    v, w = _eigh(x, lower=lower, symmetrize_input=bool(symmetrize_input))
    return EighResult(w, v)


def _reads_lower(name: str, triangle: str | None) -> bool:
    if triangle not in (None, "L", "U"):
        raise located(ValueError, f"linalg.{name}: UPLO must be 'L', 'U' or None, got {shown(triangle)}")
    return triangle != "U"


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices, ascending; see `eigh`.

    Args:
        a: Hermitian matrices.
        UPLO: "L" or "U": the triangle that is read if `symmetrize_input` is False.
        symmetrize_input: whether to take (a + aᴴ)/2 first.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)
    """
    _reads_lower("eigvalsh", UPLO)
    return eigh(matrices("eigvalsh", a, square=True), UPLO, symmetrize_input).eigenvalues


def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and eigenvectors of square matrices, complex also for real matrices.

    Args:
        a: an array of shape [..., n, n].

    Returns:
        `(eigenvalues, eigenvectors)`, in no particular order; the vectors are columns of length 1. Use `eigvals` to
        differentiate eigenvalues, and `lax.linalg.eig(..., enable_eigvec_derivs=True)` for the vectors.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.eig(jnp.array([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    w, v = eig_of_matrices(matrices("eig", a, square=True), compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices, complex and in no particular order.

    Args:
        a: square matrices.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    x = matrices("eigvals", a, square=True)
    return eig_of_matrices(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd",
    "svdvals",
]  # fmt: skip
