"""Least squares, pseudoinverses, ranks and condition numbers, from singular values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from purax.control_flow.custom_jvp import custom_jvp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.numpy._linalg.arguments import inexact_arrays, matrices
from purax.numpy._linalg.norms import _squares, matrix_norm
from purax.numpy._linalg.solving import inv
from purax.numpy._programs import as_one_program, concrete_value
from purax.numpy._promotion import as_array, convert
from purax.primitives.elementwise.arithmetic import abs_, div, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, gt, ne, not_, select
from purax.primitives.linalg.eigen import eigh
from purax.primitives.linalg.lapack import real_dtype
from purax.primitives.linalg.matrices import adjoint, diagonal_of, matmul, real_part, scale_columns
from purax.primitives.linalg.singular_values import svd, svd_p
from purax.primitives.linalg.triangular import symmetrize
from purax.primitives.reductions.reduction import reduce_max, reduce_min, reduce_or
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, reduce_sum
from purax.primitives.shape.reshaping import reshape
from purax.typing import ArrayLike

_INT32 = np.dtype(np.int32)


def _epsilon(dtype: np.dtype) -> float:
    return float(np.finfo(real_dtype(dtype)).eps)


def _tolerance(name: str, rtol: Any, s: Array | ShapedArray, default: float) -> Any:
    """A relative tolerance for each matrix of a batch, repeated along its singular values."""
    if rtol is None:
        return full((), default, s.dtype)
    tolerance = convert(as_array(rtol, f"linalg.{name}", 1), s.dtype)
    shape = s.shape[:-1]
    if tolerance.shape not in ((), shape):
        try:
            tolerance = broadcast_in_dim(tolerance, shape, range(len(shape) - tolerance.ndim, len(shape)))
        except ValueError:
            raise located(
                ValueError,
                f"linalg.{name}: rtol must be a number or have the shape {shape} of the batch, got "
                f"{tolerance.shape}",
            ) from None
    return tolerance if not tolerance.shape else broadcast_in_dim(tolerance, s.shape, range(len(shape)))


def _largest(s: Array) -> Array:
    """The largest singular value of each matrix, repeated along its values."""
    return broadcast_in_dim(reduce_max(s, (s.ndim - 1,)), s.shape, range(s.ndim - 1))


# --- the pseudoinverse


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _pseudoinverse(a, rtol, hermitian):
    """The pseudoinverse, and the singular values."""
    if hermitian:
        u, w = eigh(symmetrize(a))
        s, v = abs_(w), u
        signed = w
    else:
        s, u, vt = svd(a, full_matrices=False)
        v, signed = adjoint(vt), s
    if not s.shape[-1]:
        return matmul(v, adjoint(u)), s
    counts = gt(s, mul(rtol, _largest(s)))
    inverse = select(counts, div(np.ones((), s.dtype), signed), np.zeros((), s.dtype))
    return matmul(scale_columns(v, convert_element_type(inverse, a.dtype)), adjoint(u)), s


@_pseudoinverse.defjvp
def _pseudoinverse_rule(hermitian, primals, tangents):
    # G. H. Golub and V. Pereyra 1973: dp = −p da p + p pᴴ daᴴ (1 − a p) + (1 − p a) daᴴ pᴴ p.
    (a, rtol), (da, _) = primals, tangents
    p, s = _pseudoinverse(a, rtol, hermitian)
    pa, dah, ph = matmul(p, a), adjoint(da), adjoint(p)
    change = matmul(matmul(p, ph), sub(dah, matmul(dah, matmul(a, p))))
    change = sub(change, matmul(matmul(p, da), p))
    other = matmul(matmul(dah, ph), p)
    change = add(change, sub(other, matmul(pa, other)))
    _, u, vt = svd(a, full_matrices=False)
    ds = real_part(diagonal_of(matmul(adjoint(u), matmul(da, adjoint(vt)))))
    return (p, s), (change, ds)


def _pinv_on_host(a: np.ndarray, rtol: np.ndarray) -> np.ndarray:
    s, u, vt = svd_p.host(a, full_matrices=False, compute_uv=True, algorithm=None)
    if not s.shape[-1]:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    inverse = np.where(s > rtol * s.max(-1, keepdims=True), 1 / s, 0).astype(a.dtype)
    return (vt.conj().swapaxes(-1, -2) * inverse[..., None, :]) @ u.conj().swapaxes(-1, -2)


@as_one_program(_pinv_on_host)
def _pinv(a: Array, rtol: Any) -> Array:
    return _pseudoinverse(a, rtol, False)[0]


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The pseudoinverse of Moore and Penrose.

    Args:
        a: matrices, of shape [..., m, n].
        rtol: singular values up to this multiple of the largest count as zero; by default 10 max(m, n) times the unit
            of rounding. An array gives one for each matrix.
        hermitian: whether the matrices are Hermitian.
        rcond: another name for `rtol`.

    Returns:
        Matrices, of shape [..., n, m]. Derivatives are right where the rank does not change.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    if rcond is not None:
        if rtol is not None:
            raise located(ValueError, "linalg.pinv: only one of rtol and rcond may be given")
        rtol = rcond
    x = matrices("pinv", a, square=bool(hermitian))
    s = x.aval.update(shape=(*x.shape[:-2], min(x.shape[-2:])), dtype=real_dtype(x.dtype))
    tolerance = _tolerance("pinv", rtol, s, 10 * max(x.shape[-2:]) * _epsilon(x.dtype))
    return _pseudoinverse(x, tolerance, True)[0] if hermitian else _pinv(x, tolerance)


def _least_squares_on_host(a: np.ndarray, b: np.ndarray, tolerance: np.ndarray) -> tuple[np.ndarray, ...]:
    s, u, vt = svd_p.host(a, full_matrices=False, compute_uv=True, algorithm=None)
    counts = s > tolerance * s.max(initial=0)
    inverse = np.where(counts, 1 / s, 0).astype(a.dtype)
    x = vt.conj().T @ (inverse[:, None] * (u.conj().T @ b))
    size = np.abs(b - a @ x)
    return x, np.add.reduce(size * size, 0), np.array(np.count_nonzero(counts), np.int32), s


@as_one_program(_least_squares_on_host)
def _least_squares(a: Array, b: Array, tolerance: Any) -> tuple[Array, ...]:
    """The solution, squared residuals, the rank and the singular values."""
    p, s = _pseudoinverse(a, tolerance, False)
    x = matmul(p, b)
    residuals = reduce_sum(_squares(sub(b, matmul(a, x))), (0,))
    if not s.shape[0]:
        return x, residuals, convert_element_type(np.zeros((), _INT32), _INT32), s
    counts = gt(s, mul(tolerance, _largest(s)))
    return x, residuals, reduce_sum(convert_element_type(counts, _INT32), (0,)), s


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The x of least length that makes the length of a @ x - b least.

    Args:
        a: a matrix of shape [m, n].
        b: a vector of shape [m] or a matrix of shape [m, k].
        rcond: singular values up to this multiple of the largest count as zero; by default max(m, n) times the unit of
            rounding. A negative number means the unit of rounding itself.
        numpy_resid: whether the residuals have size 0, as NumPy's, if the rank is less than n or m <= n; this cannot be
            known inside of `jit`. By default they are always computed.

    Returns:
        A tuple of the solution, the sums of squared residuals for each column of `b`, the rank of `a`, and its singular
        values.

    >>> import purax.numpy as jnp
    >>> x, residuals, rank, s = jnp.linalg.lstsq(jnp.array([[1.0], [1.0]]), jnp.array([1.0, 3.0]))
    >>> jnp.round(x, 3), jnp.round(residuals, 3)
    (Array([2.], dtype=float32), Array([2.], dtype=float32))
    """
    a, b = inexact_arrays("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise located(
            TypeError, f"linalg.lstsq: a must have 2 axes and b 1 or 2, got shapes {a.shape} and {b.shape}"
        )
    rows, columns = a.shape
    if b.shape[0] != rows:
        raise located(
            ValueError,
            f"linalg.lstsq: a of shape {a.shape} and b of shape {b.shape} must have equally many rows",
        )
    real = real_dtype(a.dtype)
    epsilon = _epsilon(a.dtype)
    cut = epsilon * max(rows, columns) if rcond is None else rcond
    if isinstance(cut, (int, float)) and cut < 0:
        cut = epsilon
    right = reshape(b, (rows, 1)) if b.ndim == 1 else b
    tolerance = (
        full((), cut, real) if isinstance(cut, float) else convert(as_array(cut, "linalg.lstsq", 2), real)
    )
    x, residuals, rank, s = _least_squares(a, right, tolerance)
    known: Any = concrete_value(rank) if numpy_resid else None
    if numpy_resid and known is None:
        raise located(
            ValueError, "linalg.lstsq: numpy_resid=True needs the rank of a, which is not known inside of jit"
        )
    if numpy_resid and (int(known) < columns or rows <= columns):
        residuals = residuals[:0]
    return (reshape(x, (columns,)) if b.ndim == 1 else x), residuals, rank, s


def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """The rank of matrices: how many singular values are not small.

    Args:
        M: matrices, of shape [..., m, n]; a vector has rank 1 unless it is zero.
        rtol: singular values up to this multiple of the largest count as zero; by default max(m, n) times the unit of
            rounding.
        hermitian: whether the matrices are Hermitian.
        tol: another name for `rtol`.

    Returns:
        Integers, of shape [...].

    >>> import purax.numpy as jnp
    >>> jnp.linalg.matrix_rank(jnp.ones((2, 2)))
    Array(1, dtype=int32)
    """
    if tol is not None:
        if rtol is not None:
            raise located(ValueError, "linalg.matrix_rank: only one of tol and rtol may be given")
        rtol = tol
    (x,) = inexact_arrays("matrix_rank", M, narrow=True)
    integer = dtypes.default_int()
    if x.ndim < 2:
        return convert((x != 0).any(), integer)
    x = matrices("matrix_rank", x, square=bool(hermitian))
    s = abs_(eigh(symmetrize(x))[1]) if hermitian else svd(x, compute_uv=False)[0]
    tolerance = _tolerance("matrix_rank", rtol, s, max(x.shape[-2:]) * _epsilon(x.dtype))
    return _count_above(s, tolerance, dtype=integer)


def _count_on_host(s: np.ndarray, tolerance: np.ndarray, *, dtype: np.dtype) -> np.ndarray:
    return np.add.reduce(s > tolerance * s.max(-1, keepdims=True, initial=0), -1, dtype=dtype)


@as_one_program(_count_on_host)
def _count_above(s: Array, tolerance: Any, *, dtype: np.dtype) -> Array:
    """How many singular values are more than a multiple of the largest."""
    axis = (s.ndim - 1,)
    if not s.shape[-1]:
        return reduce_sum(convert_element_type(s, dtype), axis)
    return reduce_sum(convert_element_type(gt(s, mul(tolerance, _largest(s))), dtype), axis)


def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition number of matrices: the norm of a matrix times that of its inverse.

    Args:
        x: matrices, of shape [..., m, n]; square ones unless `p` is None, 2 or -2.
        p: the order of the norm, see `matrix_norm`. None and 2 give the ratio of the largest to the smallest singular
            value, -2 that of the smallest to the largest.

    Returns:
        Numbers, of shape [...].

    >>> import purax.numpy as jnp
    >>> jnp.linalg.cond(jnp.array([[1.0, 0.0], [0.0, 4.0]]))
    Array(4., dtype=float32)
    """
    array = matrices("cond", x)
    if not array.size:
        raise located(
            ValueError,
            f"linalg.cond: the condition number of empty matrices is not defined, got shape {array.shape}",
        )
    if p is None or p in (2, -2):
        s = svd(array, compute_uv=False)[0]
        last = (s.ndim - 1,)
        largest, smallest = reduce_max(s, last), reduce_min(s, last)
        return _infinite_unless_nan(div(smallest, largest) if p == -2 else div(largest, smallest), array)
    if array.shape[-1] != array.shape[-2]:
        raise located(
            ValueError, f"linalg.cond: for p={shown(p)} the matrices must be square, got shape {array.shape}"
        )
    return _infinite_unless_nan(mul(matrix_norm(array, ord=p), matrix_norm(inv(array), ord=p)), array)


def _infinite_unless_nan(number: Array, matrices: Array) -> Array:
    """A condition number that is not a number is infinite, as NumPy has it, unless the matrix has such elements."""
    known = concrete_value(number)
    if known is not None and not np.isnan(known).any():
        return number
    axes = (matrices.ndim - 2, matrices.ndim - 1)
    has_nan = reduce_or(ne(matrices, matrices), axes)
    infinite = and_(ne(number, number), not_(has_nan))
    return select(infinite, np.array(np.inf, number.dtype), number)


__all__ = ["cond", "lstsq", "matrix_rank", "pinv"]
