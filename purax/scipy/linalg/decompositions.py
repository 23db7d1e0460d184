"""Factorizations of matrices with SciPy's names and arguments, on those of `purax.lax.linalg`.

Matrices stand in the last two axes, all axes in front are a batch. `overwrite_*`, `check_finite` and the like are
accepted and not needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.api.vmap import vmap
from purax.control_flow.while_loop import fori_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.lax import linalg
from purax.numpy._linalg.arguments import inexact_arrays, matrices, same_batch
from purax.numpy._programs import concrete_value
from purax.primitives.linalg.lapack import complex_dtype, real_dtype
from purax.primitives.shape.dynamic_slicing import dynamic_slice, dynamic_update_slice
from purax.typing import ArrayLike


def adjoint(x: Array) -> Array:
    """The conjugate transposed."""
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _refuse(name: str, condition: bool, what: str) -> None:
    if condition:
        raise located(NotImplementedError, f"linalg.{name}: {what}")


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The triangular factor of positive definite matrices: a = Uᴴ U or, if `lower`, a = L Lᴴ.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import cholesky
    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, square=True)
    factor = linalg.cholesky(x if lower else adjoint(x), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """`cholesky` and the flag `lower`, as `cho_solve` takes them.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import cho_factor
    >>> cho_factor(jnp.array([[4.0]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower=lower), lower


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, ...]:
    """Matrices as products P L U of a permutation, a lower and an upper triangular matrix.

    Args:
        a: matrices, of shape [..., m, n].
        permute_l: whether to return P L in place of P and L.

    Returns:
        `(P, L, U)`, or `(P L, U)`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import lu
    >>> lu(jnp.array([[0.0, 2.0], [1.0, 3.0]]))[2]
    Array([[1., 3.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("lu", a)
    packed, _, permutation = linalg.lu(x)
    rows, columns = x.shape[-2:]
    size = min(rows, columns)
    lower = jnp.tril(packed[..., :, :size], -1) + jnp.eye(rows, size, dtype=x.dtype)
    upper = jnp.triu(packed[..., :size, :])
    places = jnp.arange(rows, dtype=permutation.dtype)
    order = (permutation[..., None, :] == places[:, None]).astype(real_dtype(x.dtype))
    return (order.astype(x.dtype) @ lower, upper) if permute_l else (order, lower, upper)


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Both triangular factors in one array, and the pivots: row k was swapped with row pivots[k].

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import lu_factor
    >>> lu_factor(jnp.array([[0.0, 2.0], [1.0, 3.0]]))[1]
    Array([1, 1], dtype=int32)
    """
    packed, pivots, _ = linalg.lu(matrices("lu_factor", a))
    return packed, pivots


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Matrices as products Q R of orthonormal columns and an upper triangular matrix.

    Args:
        a: matrices, of shape [..., m, n].
        mode: "full" (Q is square), "economic" (Q has min(m, n) columns), or "r" (R only).
        pivoting: whether to reorder the columns so that the diagonal of R decreases; the order p is returned too.

    Returns:
        `(Q, R)`, `(Q, R, p)`, or without Q `(R,)`, `(R, p)`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import qr
    >>> jnp.abs(qr(jnp.array([[3.0], [4.0]]), mode="economic")[1])
    Array([[5.]], dtype=float32)
    """
    if mode not in ("full", "economic", "r"):
        raise located(
            ValueError,
            f"linalg.qr: mode must be 'full', 'economic' or 'r', got unsupported mode {shown(mode)}",
        )
    parts = linalg.qr(matrices("qr", a), pivoting=pivoting, full_matrices=mode != "economic")
    return parts[1:] if mode == "r" else parts


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """The product of the Q of a QR factorization with a matrix, and R.

    Args:
        a: a matrix of shape [..., m, n].
        c: what Q is multiplied with, a vector or matrices.
        mode: "right" for c Q, "left" for Q c.
        pivoting: as for `qr`.
        conjugate: whether to take the conjugate of Q.

    Returns:
        `(product, R)`, or with pivoting `(product, R, p)`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import qr_multiply
    >>> jnp.abs(qr_multiply(jnp.array([[3.0], [4.0]]), jnp.array([3.0, 4.0]))[0])
    Array([5.], dtype=float32)
    """
    if mode not in ("left", "right"):
        raise located(ValueError, f"linalg.qr_multiply: mode must be 'left' or 'right', got {shown(mode)}")
    a, c = inexact_arrays("qr_multiply", a, c)
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    if conjugate:
        q = jnp.conj(q)
    return (c @ q if mode == "right" else _left_product(q, c), *rest)


def _left_product(q: Array, c: Array) -> Array:
    rows = c.shape[0] if c.ndim == 1 else c.shape[-2]
    if rows != q.shape[-1]:
        raise located(
            ValueError,
            f"linalg.qr_multiply: Q has shape {q.shape}, so c must have {q.shape[-1]} rows, got {c.shape}",
        )
    return q @ c


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Matrices as products U diag(s) Vᴴ.

    Args:
        a: matrices, of shape [..., m, n].
        full_matrices: whether U and V are square.
        compute_uv: whether to return U and Vᴴ, or the singular values only.

    Returns:
        `(U, s, Vh)`, or s.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import svd
    >>> svd(jnp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    if not compute_uv:
        return jnp.linalg.svd(a, full_matrices=False, compute_uv=False)
    return tuple(jnp.linalg.svd(a, full_matrices=full_matrices))


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """The eigenvalues and eigenvectors of Hermitian matrices: a v = w v or, with `b`, a v = w b v.

    Args:
        a: Hermitian matrices, of shape [..., n, n].
        b: Hermitian and positive definite matrices.
        lower: which triangle is read.
        eigvals_only: whether to return the eigenvalues only.
        eigvals: not supported.
        type: only 1.

    Returns:
        `(w, v)` with ascending w and vectors as columns, or w.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import eigh
    >>> eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    _refuse("eigh", eigvals is not None, "eigvals is not supported; take a slice of the result")
    _refuse("eigh", type != 1, f"only type=1 is supported, got {shown(type)}")
    if b is None:
        x = matrices("eigh", a, square=True)
        v, w = linalg.eigh(x, lower=lower, symmetrize_input=False)
        return w if eigvals_only else (w, v)
    a, b = inexact_arrays("eigh", a, b)
    a, b = same_batch("eigh", a, b)
    if not lower:
        a, b = adjoint(a), adjoint(b)
    # With b = L Lᴴ: the eigenvalues of L⁻¹ a L⁻ᴴ, and v = L⁻ᴴ u.
    strict = jnp.tril(a, -1)
    whole = strict + adjoint(strict) + jnp.tril(jnp.triu(a))
    factor = linalg.cholesky(b, symmetrize_input=False)
    half = linalg.triangular_solve(factor, whole, left_side=True, lower=True)
    reduced = adjoint(linalg.triangular_solve(factor, adjoint(half), left_side=True, lower=True))
    u, w = linalg.eigh(reduced)
    if eigvals_only:
        return w
    v = linalg.triangular_solve(factor, u, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    return w, v


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """The eigenvalues and eigenvectors of Hermitian tridiagonal matrices.

    Args:
        d: the main diagonal, of shape [n].
        e: the diagonal next to it, of shape [n − 1].
        eigvals_only: whether to return the eigenvalues only.
        select: which ones: "a" all, "i" those of index select_range[0] to select_range[1], both included, "v" those
            between two numbers, which needs concrete arrays.
        select_range: two integers or numbers.
        tol, key: accepted and not needed.

    Returns:
        `(w, v)` with ascending w and vectors as columns, or w.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import eigh_tridiagonal
    >>> eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    d, e = inexact_arrays("eigh_tridiagonal", d, e)
    if d.ndim != 1 or e.shape != (d.shape[0] - 1,):
        raise located(
            ValueError,
            f"linalg.eigh_tridiagonal: d and e must have shapes [n] and [n - 1], got {d.shape} and {e.shape}",
        )
    if select not in ("a", "i", "v") or (select != "a" and select_range is None):
        raise located(
            ValueError,
            f"linalg.eigh_tridiagonal: select must be 'a', or 'i' or 'v' with a select_range, got {shown(select)} "
            "and "
            f"{shown(select_range)}",
        )
    matrix = jnp.diag(d) + jnp.diag(e, -1) + jnp.diag(jnp.conj(e), 1)
    v, w = linalg.eigh(matrix, symmetrize_input=False)
    if select == "i":
        assert select_range is not None
        first, last = (int(i) for i in finite(select_range))
        if not 0 <= first <= last < d.shape[0]:
            raise located(
                ValueError,
                f"linalg.eigh_tridiagonal: select_range {select_range} is no range of indices below {d.shape[0]}",
            )
        w, v = w[first : last + 1], v[:, first : last + 1]
    elif select == "v":
        known = concrete_value(w)
        _refuse(
            "eigh_tridiagonal",
            known is None,
            "select='v' needs concrete arrays, on which the shape depends",
        )
        assert select_range is not None
        low, high = select_range
        chosen = np.nonzero((known > low) & (known <= high))[0]
        w, v = w[chosen], v[:, chosen]
    return w if eigvals_only else (w, v)


def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Hessenberg's form H of square matrices a = Q H Qᴴ: zero below the diagonal under the main one.

    Args:
        a: matrices, of shape [..., n, n].
        calc_q: whether to return Q too.

    Returns:
        H, or `(H, Q)`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import hessenberg
    >>> hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    x = matrices("hessenberg", a, square=True)
    n = x.shape[-1]
    if n == 0:
        return (x, x) if calc_q else x
    packed, taus = linalg.hessenberg(x)
    form = jnp.triu(packed, -1)
    if not calc_q:
        return form
    q = jnp.broadcast_to(jnp.eye(n, dtype=x.dtype), x.shape)
    if n > 1:
        q = q.at[..., 1:, 1:].set(linalg.householder_product(packed[..., 1:, :-1], taus))
    return form, q


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Schur's form T of square matrices a = Z T Zᴴ with unitary Z. On CPU only.

    Args:
        a: matrices, of shape [..., n, n].
        output: "real" for a real form of real matrices, with blocks of size 2 for pairs of complex eigenvalues, or
            "complex" for a triangular one.

    Returns:
        `(T, Z)`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import schur
    >>> schur(jnp.array([[1.0, 2.0], [0.0, 3.0]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise located(ValueError, f"linalg.schur: output must be 'real' or 'complex', got {shown(output)}")
    x = matrices("schur", a, square=True)
    if output == "complex":
        x = x.astype(complex_dtype(x.dtype))
    form, vectors = linalg.schur(x)
    return form, vectors


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex, triangular form of Schur from the real one.

    Args:
        T, Z: as `schur` gives them, of shape [..., n, n].

    Returns:
        The complex `(T, Z)`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import rsf2csf, schur
    >>> jnp.round(rsf2csf(*schur(jnp.array([[0.0, 1.0], [-1.0, 0.0]])))[0][1, 0])
    Array(0.+0.j, dtype=complex64)
    """
    form, vectors = inexact_arrays("rsf2csf", T, Z)
    for name, x in (("T", form), ("Z", vectors)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise located(ValueError, f"linalg.rsf2csf: {name} must have shape [..., n, n], got {x.shape}")
    if form.shape[-1] != vectors.shape[-1]:
        raise located(
            ValueError,
            f"linalg.rsf2csf: T and Z must be matrices of one size, got shapes {form.shape} and {vectors.shape}",
        )
    form, vectors = same_batch("rsf2csf", form, vectors)
    dtype = complex_dtype(form.dtype)
    form, vectors = form.astype(dtype), vectors.astype(dtype)
    n = form.shape[-1]
    if n < 2:
        return form, vectors
    one = _triangular_one
    for _ in range(form.ndim - 2):
        one = vmap(one)
    return one(form, vectors)


def _triangular_one(form: Array, vectors: Array) -> tuple[Array, Array]:
    """Turns the blocks of size 2 of one matrix into triangles, from the last to the first."""
    n = form.shape[-1]
    epsilon = float(dtypes.finfo(real_dtype(form.dtype)).eps)

    def step(k, state):
        form, vectors = state
        m = n - 2 - k  # the block of rows m and m + 1
        rows = dynamic_slice(form, (m, 0), (2, n))
        block = dynamic_slice(rows, (0, m), (2, 2))
        a, b, c, d = block[0, 0], block[0, 1], block[1, 0], block[1, 1]
        is_block = jnp.abs(c) > epsilon * (jnp.abs(a) + jnp.abs(d))
        half = (a - d) / 2
        shift = half + jnp.sqrt(half * half + b * c)  # an eigenvalue less d
        length = jnp.sqrt(jnp.abs(shift) ** 2 + jnp.abs(c) ** 2).astype(form.dtype)
        length = jnp.where(is_block, length, 1)
        cosine = jnp.where(is_block, shift / length, 1)
        sine = jnp.where(is_block, c / length, 0)
        turn = jnp.stack([jnp.stack([jnp.conj(cosine), sine]), jnp.stack([-sine, cosine])])
        form = jnp.where(is_block, dynamic_update_slice(form, turn @ rows, (m, 0)), form)
        columns = dynamic_slice(form, (0, m), (n, 2)) @ adjoint(turn)
        form = jnp.where(is_block, dynamic_update_slice(form, columns, (0, m)), form)
        columns = dynamic_slice(vectors, (0, m), (n, 2)) @ adjoint(turn)
        vectors = jnp.where(is_block, dynamic_update_slice(vectors, columns, (0, m)), vectors)
        return form, vectors

    form, vectors = fori_loop(0, n - 1, step, (form, vectors))
    return jnp.triu(form), vectors


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Matrices as products of a unitary and a positive semidefinite matrix: a = u p, or p u for the left side.

    Args:
        a: matrices, of shape [..., m, n].
        side: on which side p stands, "right" or "left".
        method: "qdwh", an iteration, or "svd".
        eps, max_iterations: when the iteration stops.

    Returns:
        `(u, p)`; if m < n the rows of u are orthonormal.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import polar
    >>> jnp.round(polar(jnp.array([[0.0, -2.0], [3.0, 0.0]]))[1], 3)
    Array([[ 3., -0.],
           [-0.,  2.]], dtype=float32)
    """
    if side not in ("right", "left"):
        raise located(ValueError, f"linalg.polar: side must be 'right' or 'left', got {shown(side)}")
    if method not in ("qdwh", "svd"):
        raise located(ValueError, f"linalg.polar: method must be 'qdwh' or 'svd', got {shown(method)}")
    x = matrices("polar", a)
    is_wide = x.shape[-2] < x.shape[-1]
    tall = adjoint(x) if is_wide else x
    if method == "svd":
        left, s, right = jnp.linalg.svd(tall, full_matrices=False)
        unitary = left @ right
        positive = adjoint(right) * s[..., None, :].astype(x.dtype) @ right
    else:

        def one(x):
            return linalg.qdwh(x, max_iterations=max_iterations, eps=eps)[:2]

        for _ in range(x.ndim - 2):
            one = vmap(one)
        unitary, positive = one(tall)
    # tall = unitary positive; the same of the conjugate transposed is positive unitaryᴴ.
    if is_wide:
        unitary = adjoint(unitary)
        return unitary, positive if side == "left" else adjoint(unitary) @ positive @ unitary
    return unitary, positive if side == "right" else unitary @ positive @ adjoint(unitary)
