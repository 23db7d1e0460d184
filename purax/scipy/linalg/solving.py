"""Solutions of linear equations, inverses and determinants, with SciPy's names and arguments."""

from __future__ import annotations

from typing import Any

from purax import numpy as jnp
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.lax import linalg
from purax.numpy._linalg.arguments import inexact_arrays, repeated
from purax.scipy.linalg.decompositions import adjoint, cho_factor
from purax.scipy.linalg.sylvester import sylvester
from purax.typing import ArrayLike

_TRANSPOSED = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def _transposed(name: str, trans: Any) -> int:
    if trans not in _TRANSPOSED:
        raise located(
            ValueError, f"linalg.{name}: trans must be 0, 1, 2, 'N', 'T' or 'C', got {shown(trans)}"
        )
    return _TRANSPOSED[trans]


def _systems(name: str, a: Array, b: Array) -> tuple[Array, Array, bool]:
    """Matrices and right sides as columns, of one batch, and whether the right sides were vectors."""
    n = a.shape[-1] if a.ndim else 0
    if a.ndim < 2 or a.shape[-2] != n:
        raise located(ValueError, f"linalg.{name}: the matrix must have shape [..., n, n], got {a.shape}")
    is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    columns = b[..., None] if is_vector else b
    if b.ndim == 0 or columns.shape[-2] != n:
        raise located(
            ValueError,
            f"linalg.{name}: for matrices of shape {a.shape}, b must have shape [..., {n}] or [..., {n}, k], got "
            f"{b.shape}",
        )
    batch = jnp.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    return repeated(a, batch), repeated(columns, batch), is_vector


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The x with a x = b.

    Args:
        a: square matrices, of shape [..., n, n].
        b: right sides, of shape [..., n] or [..., n, k].
        lower: which triangle of Hermitian matrices is read.
        assume_a: what is known of `a`: "gen" nothing, "sym" or "her" that it is symmetric or Hermitian, "pos" that it
            is Hermitian and positive definite.

    Returns:
        An array of the shape of `b`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import solve
    >>> solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([1.0, 2.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise located(
            ValueError, f"linalg.solve: assume_a must be 'gen', 'sym', 'her' or 'pos', got {shown(assume_a)}"
        )
    a, b = inexact_arrays("solve", a, b)
    if assume_a == "pos":
        return cho_solve(cho_factor(a, lower=lower), b)
    a, columns, is_vector = _systems("solve", a, b)
    if assume_a != "gen":
        strict = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
        mirrored = jnp.swapaxes(strict, -1, -2) if assume_a == "sym" else adjoint(strict)
        a = strict + mirrored + jnp.tril(jnp.triu(a))
    x = jnp.linalg.solve(a, columns)
    return x[..., 0] if is_vector else x


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """The x with a x = b for triangular a.

    Args:
        a: triangular matrices, of shape [..., n, n]; the other triangle is not read.
        b: right sides, of shape [..., n] or [..., n, k].
        trans: 0 or "N" for a, 1 or "T" for its transpose, 2 or "C" for its conjugate transpose.
        lower: whether `a` is lower triangular.
        unit_diagonal: whether its diagonal counts as ones.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import solve_triangular
    >>> solve_triangular(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([2.0, 2.0]), lower=True)
    Array([1., 1.], dtype=float32)
    """
    kind = _transposed("solve_triangular", trans)
    a, b = inexact_arrays("solve_triangular", a, b)
    a, columns, is_vector = _systems("solve_triangular", a, b)
    x = linalg.triangular_solve(
        a,
        columns,
        left_side=True,
        lower=lower,
        transpose_a=kind > 0,
        conjugate_a=kind == 2,
        unit_diagonal=unit_diagonal,
    )
    return x[..., 0] if is_vector else x


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The x with a x = b, given what `cho_factor` found for a.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import cho_factor, cho_solve
    >>> cho_solve(cho_factor(jnp.array([[4.0]])), jnp.array([2.0]))
    Array([0.5], dtype=float32)
    """
    c, lower = c_and_lower
    c, b = inexact_arrays("cho_solve", c, b)
    c, columns, is_vector = _systems("cho_solve", c, b)
    for adjoined in (not lower, lower):
        columns = linalg.triangular_solve(
            c, columns, left_side=True, lower=lower, transpose_a=adjoined, conjugate_a=adjoined
        )
    return columns[..., 0] if is_vector else columns


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The x with a x = b, given what `lu_factor` found for a.

    Args:
        lu_and_piv: the factors and the pivots.
        b: right sides, of shape [..., n] or [..., n, k].
        trans: 0 for a, 1 for its transpose, 2 for its conjugate transpose.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import lu_factor, lu_solve
    >>> lu_solve(lu_factor(jnp.array([[0.0, 2.0], [1.0, 3.0]])), jnp.array([2.0, 4.0]))
    Array([1., 1.], dtype=float32)
    """
    kind = _transposed("lu_solve", trans)
    packed, pivots = lu_and_piv
    packed, b = inexact_arrays("lu_solve", packed, b)
    order = linalg.lu_pivots_to_permutation(jnp.asarray(pivots), packed.shape[-1])
    packed, x, is_vector = _systems("lu_solve", packed, b)
    order = jnp.broadcast_to(order, (*x.shape[:-2], order.shape[-1]))[..., None]
    options = {"left_side": True, "transpose_a": kind > 0, "conjugate_a": kind == 2}
    if kind == 0:
        x = jnp.take_along_axis(x, order, axis=-2)
        x = linalg.triangular_solve(packed, x, lower=True, unit_diagonal=True, **options)
        x = linalg.triangular_solve(packed, x, **options)
    else:
        x = linalg.triangular_solve(packed, x, **options)
        x = linalg.triangular_solve(packed, x, lower=True, unit_diagonal=True, **options)
        x = jnp.take_along_axis(x, jnp.argsort(order, axis=-2), axis=-2)
    return x[..., 0] if is_vector else x


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of square matrices.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import inv
    >>> inv(jnp.array([[2.0]]))
    Array([[0.5]], dtype=float32)
    """
    return jnp.linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of square matrices.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import det
    >>> det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    return jnp.linalg.det(a)


# --- Sylvester's equation


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """The X with A X + X B = C.

    Args:
        A: matrices, of shape [..., m, m].
        B: matrices, of shape [..., n, n].
        C: matrices, of shape [..., m, n].
        method: "schur", accurate and on CPU only, or "eigen", which needs matrices with independent eigenvectors.
        tol: how near to zero the sum of an eigenvalue of A and one of B can be; then the result is NaN.

    Returns:
        An array of shape [..., m, n]. It can be differentiated with respect to all three.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import solve_sylvester
    >>> solve_sylvester(jnp.array([[1.0]]), jnp.array([[2.0]]), jnp.array([[6.0]]))
    Array([[2.]], dtype=float32)
    """
    if method not in ("schur", "eigen"):
        raise located(
            ValueError, f"linalg.solve_sylvester: method must be 'schur' or 'eigen', got {shown(method)}"
        )
    a, b, c = inexact_arrays("solve_sylvester", A, B, C)
    for name, x in (("A", a), ("B", b)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise located(
                ValueError, f"linalg.solve_sylvester: {name} must have shape [..., n, n], got {x.shape}"
            )
    if c.ndim < 2 or c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise located(
            ValueError,
            f"linalg.solve_sylvester: for A and B of shapes {a.shape} and {b.shape}, C must have shape [..., "
            f"{a.shape[-1]}, {b.shape[-1]}], got {c.shape}",
        )
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (repeated(x, batch) for x in (a, b, c))
    return sylvester(a, b, c, method, float(tol))
