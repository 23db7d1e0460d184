"""Factorizations of matrices and triangular systems, as `jax.lax.linalg`.

Matrices stand in the last two axes; all axes in front of them are a batch. Where a factorization fails its results are
NaN. Operands have one dtype: float32, float64, complex64 or complex128.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from purax.core.array import Array
from purax.interpreters.arguments import to_array
from purax.lax.polar import qdwh
from purax.primitives.elementwise.elementwise import add
from purax.primitives.linalg import condensed, eigen, orthogonal, singular_values, triangular
from purax.primitives.linalg import lu as _lu
from purax.primitives.linalg import tridiagonal as _tridiagonal
from purax.primitives.linalg.condensed import hessenberg_p, schur_p, tridiagonal_p
from purax.primitives.linalg.eigen import EighImplementation, EigImplementation, eig_p, eigh_p
from purax.primitives.linalg.lu import lu_p, lu_pivots_to_permutation_p
from purax.primitives.linalg.matrices import columns_of, lower_triangle, transposed
from purax.primitives.linalg.orthogonal import householder_product_p, ormqr_p, qr_p
from purax.primitives.linalg.singular_values import SvdAlgorithm, svd_p
from purax.primitives.linalg.triangular import (
    cholesky_p,
    cholesky_update_p,
    symmetric_product_p,
    triangular_solve_p,
)
from purax.primitives.linalg.tridiagonal import tridiagonal_solve_p
from purax.primitives.shape.slicing import slice_axis
from purax.typing import ArrayLike


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with x = L Lᴴ.

    Args:
        x: Hermitian, positive definite matrices, of shape [..., n, n].
        symmetrize_input: whether to take (x + xᴴ) / 2 first; else the lower triangle is read.

    Returns:
        The factors; NaN where a matrix is not positive definite.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return triangular.cholesky(to_array(x), symmetrize_input)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular factor of rᵀ r + w wᵀ, given that of rᵀ r.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.cholesky_update(jnp.array([[3.0]]), jnp.array([4.0]))
    Array([[5.]], dtype=float32)
    """
    return triangular.cholesky_update(to_array(r_matrix), to_array(w_vector))


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """alpha a aᵀ + beta c for symmetric c.

    Args:
        a_matrix: matrices, of shape [..., m, n].
        c_matrix: symmetric matrices, of shape [..., m, m].
        alpha, beta: numbers.
        symmetrize_output: whether the upper triangle is made the mirror image of the lower one.

    Returns:
        Matrices, of shape [..., m, m].

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2)))
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    out = triangular.symmetric_product(to_array(a_matrix), to_array(c_matrix), alpha, beta)
    if not symmetrize_output:
        return out
    return add(lower_triangle(out), transposed(lower_triangle(out, strict=True)))


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The x with op(a) x = b, or x op(a) = b, for triangular a.

    Args:
        a: triangular matrices, of shape [..., n, n]; the other triangle is not read.
        b: the right sides: matrices with n rows if `left_side`, else n columns; or vectors.
        left_side: whether a stands on the left.
        lower: whether a is lower triangular.
        transpose_a, conjugate_a: whether op transposes, conjugates.
        unit_diagonal: whether the diagonal of a counts as ones.

    Returns:
        The solutions, of the shape of `b`.

    >>> import purax as px, purax.numpy as jnp
    >>> a = jnp.array([[2.0, 9.0], [1.0, 1.0]])
    >>> px.lax.linalg.triangular_solve(a, jnp.array([2.0, 2.0]), left_side=True, lower=True)
    Array([1., 1.], dtype=float32)
    """
    return triangular.triangular_solve(
        to_array(a),
        to_array(b),
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """LU factors with partial pivoting: P x = L U.

    Args:
        x: matrices, of shape [..., m, n].

    Returns:
        A tuple of both factors in one array of the shape of `x`, the pivots (row k was swapped with row pivots[k]), and
        the permutation (row i of P x is row permutation[i] of x).

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[0]
    Array([[2. , 2. ],
           [0.5, 1. ]], dtype=float32)
    """
    return tuple(_lu.lu(to_array(x)))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that swapping row k with row pivots[k], for k = 0, 1, …, amounts to.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2, 2]), 3)
    Array([2, 0, 1], dtype=int32)
    """
    return _lu.lu_pivots_to_permutation(to_array(pivots), permutation_size)


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Matrices as products of orthonormal columns and upper triangular matrices.

    Args:
        x: matrices, of shape [..., m, n].
        pivoting: whether to reorder the columns so that the diagonal of R decreases in size.
        full_matrices: whether Q is square; else it has min(m, n) columns.
        use_magma: accepted and not needed.

    Returns:
        `(Q, R)`, or with pivoting `(Q, R, p)` with x[:, p] = Q R.

    >>> import purax as px, purax.numpy as jnp
    >>> q, r = px.lax.linalg.qr(jnp.array([[3.0], [4.0]]), full_matrices=False)
    >>> jnp.abs(r)
    Array([[5.]], dtype=float32)
    """
    return tuple(orthogonal.qr(to_array(x), pivoting, full_matrices))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The product of Householder reflections.

    Args:
        a: matrices, of shape [..., m, n] with m >= n, with the vectors of reflections below their diagonals.
        taus: the factors of the reflections, of shape [..., k] with k <= n.

    Returns:
        The first n columns of the product, of the shape of `a`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.householder_product(jnp.array([[9.0], [1.0]]), jnp.array([1.0]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    return orthogonal.householder_product(to_array(a), to_array(taus))


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiplies by the Q of a QR factorization without making it.

    Args:
        a: Householder reflections, of shape [..., m, n], as `jnp.linalg.qr(mode="raw")` gives them, transposed.
        taus: the factors of the reflections.
        c: the matrices to multiply.
        left: whether to compute Q c; else c Q.
        transpose: whether to take Qᴴ in place of Q.

    Returns:
        Matrices of the shape of `c`.

    >>> import purax as px, purax.numpy as jnp
    >>> h, taus = jnp.linalg.qr(jnp.array([[3.0], [4.0]]), mode="raw")
    >>> jnp.round(px.lax.linalg.ormqr(h.mT, taus, jnp.array([[3.0], [4.0]]), transpose=True), 3)
    Array([[-5.],
           [ 0.]], dtype=float32)
    """
    return orthogonal.ormqr(to_array(a), to_array(taus), to_array(c), left, transpose)


def _index_range(name: str, subset: Any, size: int) -> tuple[int, int]:
    start, end = map(operator.index, subset)
    if not 0 <= start <= end <= size:
        raise ValueError(f"{name}: subset_by_index={subset} is not a range of indices from 0 to {size}")
    return start, end


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """The eigenvectors and eigenvalues of Hermitian matrices.

    Args:
        x: Hermitian matrices, of shape [..., n, n].
        lower: which triangle is read if `symmetrize_input` is false.
        symmetrize_input: whether to take (x + xᴴ) / 2 first.
        sort_eigenvalues: whether eigenvalues must be ascending; they always are.
        subset_by_index: the first index of the eigenvalues to return, and that after the last.
        implementation: an algorithm; see `EighImplementation`.

    Returns:
        `(v, w)`: eigenvectors as columns, and eigenvalues. Derivatives of the vectors are not finite where an
        eigenvalue is repeated.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))[1]
    Array([1., 2.], dtype=float32)
    """
    x = to_array(x)
    v, w = eigen.eigh(triangular.symmetrize(x) if symmetrize_input else x, lower, implementation)
    if subset_by_index is None:
        return v, w
    start, end = _index_range("eigh", subset_by_index, w.shape[-1])
    return columns_of(v, start, end), slice_axis(w, start, end, w.ndim - 1)


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """The eigenvalues and eigenvectors of square matrices, complex also for real matrices.

    Args:
        x: an array of shape [..., n, n].
        compute_left_eigenvectors, compute_right_eigenvectors: which vectors to return.
        enable_eigvec_derivs: whether the vectors may be differentiated. The derivative is that of vectors of length 1
            with a real largest component, which exists if no eigenvalue is repeated and there is one such component.
        implementation: a library; see `EigImplementation`.
        use_magma: an older way to ask for EigImplementation.MAGMA or LAPACK.

    Returns:
        A list of the eigenvalues, and of left and right eigenvectors as columns if they are asked for.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.eig(jnp.array([[0.0, -1.0], [1.0, 0.0]]))[0]
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if use_magma is not None and implementation is None:
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return eigen.eig(
        to_array(x),
        compute_left_eigenvectors,
        compute_right_eigenvectors,
        enable_eigvec_derivs,
        implementation,
    )


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition x = u diag(s) vt.

    Args:
        x: matrices, of shape [..., m, n].
        full_matrices: whether u and vt are square; else they have min(m, n) columns and rows.
        compute_uv: whether to return u and vt.
        subset_by_index: the first index of the singular values to return, and that after the last.
        algorithm: see `SvdAlgorithm`.

    Returns:
        `(u, s, vt)`, or s alone. Derivatives of u and vt are not finite where a singular value is repeated.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.svd(jnp.array([[3.0, 0.0], [0.0, -4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    x = to_array(x)
    s, *vectors = singular_values.svd(x, full_matrices, compute_uv, algorithm)
    if subset_by_index is not None:
        start, end = _index_range("svd", subset_by_index, s.shape[-1])
        s = slice_axis(s, start, end, s.ndim - 1)
        vectors = [slice_axis(v, start, end, v.ndim - 1 - i) for i, v in enumerate(vectors)]
    return (vectors[0], s, vectors[1]) if compute_uv else s


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """Schur's form: the triangular T with x = Z T Zᴴ for unitary Z. On CPU only.

    Args:
        x: an array of shape [..., n, n]. For real matrices T has blocks of size 2 for pairs of complex eigenvalues.
        compute_schur_vectors: whether to return Z.
        sort_eig_vals, select_callable: not supported.

    Returns:
        A list of T and, if asked for, Z.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    return schur_p.bind(
        to_array(x),
        compute_schur_vectors=bool(compute_schur_vectors),
        sort_eig_vals=bool(sort_eig_vals),
        select_callable=select_callable,
    )


def hessenberg(a: ArrayLike) -> list[Array]:
    """Hessenberg's form: zeros below the first diagonal under the main one. On CPU only.

    Args:
        a: an array of shape [..., n, n].

    Returns:
        A list of the form, with Householder vectors in place of the zeros, and the factors of the reflections.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))[0]
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return condensed.hessenberg(to_array(a))


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """The tridiagonal form of Hermitian matrices.

    Args:
        a: Hermitian matrices, of shape [..., n, n], of which one triangle is read.
        lower: which one.

    Returns:
        A list of the form with Householder vectors beside it, its diagonal, its other diagonal, and the factors of
        the reflections.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.linalg.tridiagonal(jnp.array([[1.0, 2.0], [2.0, 4.0]]))[1]
    Array([1., 4.], dtype=float32)
    """
    return condensed.tridiagonal(to_array(a), lower)


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """The solution of tridiagonal systems T x = b.

    Args:
        dl: the diagonal below the main one, of shape [..., m]; row i of T begins with dl[i], and dl[0] is not read.
        d: the main diagonal, of shape [..., m].
        du: the diagonal above, of shape [..., m], of which the last element is not read.
        b: the right sides, of shape [..., m, k].
        perturb_singular: whether a singular system gets a finite, large solution instead of NaN.

    Returns:
        The solutions, of the shape of `b`.

    >>> import purax as px, purax.numpy as jnp
    >>> zeros, ones = jnp.zeros(2), jnp.ones((2, 1))
    >>> px.lax.linalg.tridiagonal_solve(zeros, jnp.array([2.0, 4.0]), zeros, ones)
    Array([[0.5 ],
           [0.25]], dtype=float32)
    """
    return _tridiagonal.tridiagonal_solve(
        to_array(dl), to_array(d), to_array(du), to_array(b), perturb_singular
    )


__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "cholesky_update",
    "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg", "hessenberg_p", "householder_product",
    "householder_product_p", "lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p",
    "qdwh", "qr", "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve",
    "tridiagonal_solve_p",
]  # fmt: skip
