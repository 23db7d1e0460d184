"""Inverses, linear systems and determinants.

Derivatives are those of the solutions, not of the factors behind them, so that they exist wherever the solution does.
A singular matrix gives infinities or NaN, never an error.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import numpy as np

from purax.control_flow.branches import cond
from purax.control_flow.custom_jvp import SymbolicZero, custom_jvp
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._linalg.arguments import inexact_arrays, matrices, same_batch
from purax.numpy._linalg.matrices import eye
from purax.numpy._linalg.products import matmul
from purax.numpy._programs import as_one_program, concrete_value
from purax.numpy._promotion import as_array
from purax.numpy._shape.axes import items
from purax.numpy._shape.shaping import moveaxis
from purax.primitives.elementwise.arithmetic import abs_, sign, sub
from purax.primitives.elementwise.conversion import complex_, convert_element_type, imag
from purax.primitives.elementwise.elementwise import add, mul, neg
from purax.primitives.elementwise.logic import eq, is_finite, ne, select
from purax.primitives.elementwise.transcendental import log
from purax.primitives.linalg.lapack import is_complex, routine
from purax.primitives.linalg.lu import lu, lu_p, lu_solve, lu_solve_p
from purax.primitives.linalg.lu import solve as solve_matrices
from purax.primitives.linalg.matrices import (
    adjoint,
    diagonal_of,
    identity_like,
    lower_triangle,
    real_part,
    scale_columns,
    transposed,
)
from purax.primitives.linalg.matrices import (
    matmul as multiply,
)
from purax.primitives.linalg.orthogonal import geqrf
from purax.primitives.linalg.singular_values import svd
from purax.primitives.reductions.reduction import reduce_and, reduce_prod
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, reduce_sum
from purax.primitives.shape.reshaping import iota, reshape, squeeze
from purax.primitives.shape.slicing import slice_axis
from purax.typing import ArrayLike

_INT32 = np.dtype(np.int32)


# --- systems


def _solve_on_host(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.ndim == 2 and a.size and b.size:
        *_, x, info = routine("gesv", a.dtype)(a, b)
        if not info:
            return x
    # A batch, or a singular matrix, whose solution has infinities where the steps below put them.
    factors, _, permutation = lu_p.host(a)
    return lu_solve_p.host(a, factors, permutation, b, transpose_a=False)


_solve = as_one_program(_solve_on_host)(solve_matrices)


def _inv_on_host(a: np.ndarray) -> np.ndarray:
    if a.ndim == 2 and a.size:
        factors, pivots, info = routine("getrf", a.dtype)(a)
        if not info:
            return routine("getri", a.dtype)(factors, pivots)[0]
    identity = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    return _solve_on_host(a, identity)


@as_one_program(_inv_on_host)
def _inv(a: Array) -> Array:
    return solve_matrices(a, identity_like(a))


def inv(a: ArrayLike) -> Array:
    """The inverse of square matrices.

    Args:
        a: an array of shape [..., n, n].

    Returns:
        An array of the same shape. The inverse of a singular matrix has infinite or NaN elements; there is no error.

    >>> import purax.numpy as jnp
    >>> jnp.abs(jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]])))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return _inv(matrices("inv", a, square=True))


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with a @ x = b.

    Args:
        a: square matrices, of shape [..., n, n].
        b: a vector of shape [n], or matrices of shape [..., n, k]. The axes in front are broadcast.

    Returns:
        The solutions, with the last axes of `b`.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([1.0, 2.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    a, b = inexact_arrays("solve", a, b)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise located(
            ValueError, f"linalg.solve: a must have shape [..., n, n], square matrices, got {a.shape}"
        )
    n = a.shape[-1]
    vector = b.ndim == 1
    if b.ndim == 0 or b.shape[0 if vector else -2] != n:
        hint = ""
        if b.ndim > 1 and b.shape[-1] == n:
            hint = "; for a batch of vectors write linalg.solve(a, b[..., None])[..., 0]"
        raise located(
            ValueError,
            f"linalg.solve: for a of shape {a.shape}, b must have shape [{n}] or [..., {n}, k], got {b.shape}{hint}",
        )
    if not vector:
        return _solve(*same_batch("solve", a, b))
    result = _solve(*same_batch("solve", a, reshape(b, (n, 1))))
    return reshape(result, result.shape[:-1])


def matrix_power(a: ArrayLike, n: int) -> Array:
    """A product of equal square matrices.

    Args:
        a: an array of shape [..., m, m].
        n: how many factors; 0 gives the identity, a negative number takes the inverse.

    Returns:
        An array of the shape of `a`.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    x = as_array(a, "linalg.matrix_power")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise located(
            ValueError, f"linalg.matrix_power: a must have shape [..., m, m], square matrices, got {x.shape}"
        )
    try:
        n = operator.index(n)
    except TypeError:
        raise located(
            TypeError, f"linalg.matrix_power: the exponent n must be an integer, got {shown(n)}"
        ) from None
    if n < 0:
        x, n = inv(x), -n
    if not n:
        return broadcast_in_dim(eye(x.shape[-1], dtype=x.dtype), x.shape, (x.ndim - 2, x.ndim - 1))
    result: Any = None
    while True:  # squares of x for the binary digits of n
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if not n:
            return result
        x = matmul(x, x)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array as a linear map of its last axes to its first ones.

    Args:
        a: an array; the product of the sizes of its first `ind` axes is that of the others.
        ind: how many axes belong to the result of the map.

    Returns:
        The array b with tensordot(b, tensordot(a, x)) = x.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(4, 2, 2), ind=1).shape
    (2, 2, 4)
    """
    (x,) = inexact_arrays("tensorinv", a)
    ind = operator.index(ind)
    if ind <= 0:
        raise located(ValueError, f"linalg.tensorinv: ind must be a positive integer, got {ind}")
    first, rest = x.shape[:ind], x.shape[ind:]
    if math.prod(first) != math.prod(rest):
        raise located(
            ValueError,
            f"linalg.tensorinv: the first {ind} axes of shape {x.shape} have {math.prod(first)} elements and the "
            f"others {math.prod(rest)}; they must have equally many",
        )
    n = math.prod(first)
    return reshape(inv(reshape(x, (n, n))), (*rest, *first))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The x with tensordot(a, x, axes=x.ndim) = b.

    Args:
        a: an array whose first axes are those of `b` and whose other axes are those of x.
        b: an array.
        axes: axes of `a` that are moved to its end first.

    Returns:
        The solution.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.tensorsolve(2 * jnp.eye(4).reshape(2, 2, 2, 2), jnp.ones((2, 2)))
    Array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    a, b = inexact_arrays("tensorsolve", a, b)
    if axes is not None:
        axes = items("linalg.tensorsolve", "axes", axes)
        a = moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    rest = a.shape[b.ndim :]
    if math.prod(a.shape[: b.ndim]) != math.prod(rest) or math.prod(rest) != b.size:
        raise located(
            ValueError,
            f"linalg.tensorsolve: for b of shape {b.shape}, the first {b.ndim} axes of a of shape {a.shape} and "
            f"the others must each have {b.size} elements",
        )
    return reshape(solve(reshape(a, (b.size, b.size)), reshape(b, (b.size,))), rest)


# --- determinants


def _element(a: Any, i: int, j: int) -> Any:
    ndim = a.ndim
    one = slice_axis(slice_axis(a, i, i + 1, ndim - 2), j, j + 1, ndim - 1)
    return squeeze(one, (ndim - 2, ndim - 1))


def _small_det(at: Any, n: int) -> Any:
    """The determinant from elements, for up to three rows."""
    if n == 1:
        return at(0, 0)
    if n == 2:
        return at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0)
    minors = [
        at(1, (j + 1) % 3) * at(2, (j + 2) % 3) - at(1, (j + 2) % 3) * at(2, (j + 1) % 3) for j in range(3)
    ]
    return at(0, 0) * minors[0] + at(0, 1) * minors[1] + at(0, 2) * minors[2]


def _det_on_host(a: np.ndarray) -> np.ndarray:
    n = a.shape[-1]
    if n <= 3:
        if a.ndim > 2 or a.dtype.kind not in "fc":
            return np.asarray(_small_det(lambda i, j: a[..., i, j], n))
        rows = a.tolist()
        return np.array(_small_det(lambda i, j: rows[i][j], n), a.dtype)
    if a.ndim == 2:
        factors, pivots, info = routine("getrf", a.dtype)(a)
        if info >= 0:
            product = np.multiply.reduce(factors.diagonal())
            return np.asarray(-product if _is_odd_on_host(pivots) else product)
    factors, pivots, _ = lu_p.host(a)
    swaps = (pivots != np.arange(n, dtype=np.int32)).sum(-1) % 2
    product = np.diagonal(factors, axis1=-2, axis2=-1).prod(-1)
    return np.where(swaps, -product, product).astype(a.dtype)


def _is_odd_on_host(pivots: np.ndarray) -> bool:
    return sum([k != other for k, other in enumerate(pivots.tolist())]) % 2 == 1


@as_one_program(_det_on_host)
def _det(a: Array) -> Array:
    n = a.shape[-1]
    return _small_det(lambda i, j: _element(a, i, j), n) if n.__class__ is int and n <= 3 else _det_by_lu(a)


def _is_odd(pivots: Any) -> Any:
    """Whether the permutation that pivots stand for is odd."""
    axis = pivots.ndim - 1
    moved = ne(pivots, iota(pivots.dtype, pivots.shape, axis))
    return eq(
        reduce_sum(convert_element_type(moved, _INT32), (axis,)) & np.array(1, _INT32), np.array(1, _INT32)
    )


def _det_of_factors(factors: Any, pivots: Any) -> Any:
    product = reduce_prod(diagonal_of(factors), (factors.ndim - 2,))
    return select(_is_odd(pivots), neg(product), product)


@custom_jvp
def _det_by_lu(a):
    factors, pivots, _ = lu(a)
    return _det_of_factors(factors, pivots)


@_det_by_lu.defjvp
def _det_rule(primals, tangents):
    # d det(a) = tr(adj(a) da)
    (a,), (da,) = primals, tangents
    ndim = a.ndim
    return _det_by_lu(a), reduce_sum(mul(transposed(_adjugate(a)), da), (ndim - 2, ndim - 1))


@custom_jvp
def _adjugate(a):
    """det(a) a⁻¹ as a polynomial of the elements of `a`, which exists for singular matrices too."""
    factors, pivots, permutation = lu(a)
    determinant = _det_of_factors(factors, pivots)
    inverse = lu_solve(a, factors, permutation, identity_like(a))
    regular = mul(inverse, broadcast_in_dim(determinant, a.shape, range(a.ndim - 2)))
    every_axis = range(a.ndim)
    all_regular = reduce_and(_finite(regular), every_axis)
    known = concrete_value(all_regular)
    if known is not None:
        return regular if known else _singular_adjugate(a)
    return cond(all_regular, lambda a, regular: regular, lambda a, regular: _singular_adjugate(a), a, regular)


def _finite(a: Any) -> Any:
    return is_finite(abs_(a)) if is_complex(a.dtype) else is_finite(a)


@_adjugate.defjvp
def _adjugate_rule(primals, tangents):
    # d adj(a) = tr(a⁻¹ da) adj(a) − a⁻¹ da adj(a), which needs a regular matrix.
    (a,), (da,) = primals, tangents
    adjugate = _adjugate(a)
    change = solve_matrices(a, da)
    traces = broadcast_in_dim(reduce_sum(diagonal_of(change), (a.ndim - 2,)), a.shape, range(a.ndim - 2))
    return adjugate, sub(mul(traces, adjugate), multiply(change, adjugate))


def _singular_adjugate(a: Any) -> Any:
    """From a = u diag(s) vᴴ: adj(a) = det(u) det(vᴴ) v diag(products of all other s) uᴴ."""
    s, u, vt = svd(a, full_matrices=False)
    n = s.shape[-1]
    shape = (*s.shape, n)
    others = broadcast_in_dim(s, shape, (*range(s.ndim - 1), s.ndim))
    one = np.ones((), s.dtype)
    mask = eq(iota(_INT32, shape, s.ndim - 1), iota(_INT32, shape, s.ndim))
    products = reduce_prod(select(mask, one, others), (s.ndim,))
    phase = mul(*(_det_of_factors(*lu(v)[:2]) for v in (u, vt)))
    scaled = scale_columns(adjoint(vt), convert_element_type(products, a.dtype))
    return mul(multiply(scaled, adjoint(u)), broadcast_in_dim(phase, a.shape, range(a.ndim - 2)))


def det(a: ArrayLike) -> Array:
    """The determinant of square matrices.

    Args:
        a: an array of shape [..., n, n].

    Returns:
        An array of shape [...]. It can be differentiated at singular matrices, too.

    >>> import purax.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = matrices("det", a, square=True, narrow=True)
    n = x.aval.shape[-1]
    if n == 0:
        return full(x.shape[:-2], 1, x.dtype)
    if x.aval.dtype.itemsize < 4 and n > 3:  # of 16 bits: factorized in float32
        return convert_element_type(_det(convert_element_type(x, np.float32)), x.aval.dtype)
    return _det(x)


class SlogdetResult(NamedTuple):
    """The sign of determinants, of size 1 or zero, and the logarithm of their absolute values."""

    sign: Array
    logabsdet: Array


def _slogdet_on_host(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if a.ndim == 2 and a.size and a.dtype.kind == "f":
        factors, pivots, info = routine("getrf", a.dtype)(a)
        diagonal = factors.diagonal()
        sizes = np.abs(diagonal)
        if not info and sizes.min() > 0:
            is_negative = bool(np.count_nonzero(diagonal < 0) % 2) != _is_odd_on_host(pivots)
            return np.array(-1 if is_negative else 1, a.dtype), np.add.reduce(np.log(sizes))
    factors, pivots, _ = lu_p.host(a)
    diagonal = np.diagonal(factors, axis1=-2, axis2=-1)
    size = np.abs(diagonal)
    swaps = (pivots != np.arange(pivots.shape[-1], dtype=np.int32)).sum(-1) % 2
    signs = np.where(size == 0, np.zeros((), a.dtype), diagonal / size).prod(-1)
    return np.where(swaps, -signs, signs).astype(a.dtype), np.log(size).sum(-1)


@as_one_program(_slogdet_on_host)
def _slogdet(a: Array) -> tuple[Array, Array]:
    return _differentiable_slogdet(a, "lu")


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _differentiable_slogdet(a, method):
    return _slogdet_by_qr(a) if method == "qr" else _slogdet_by_lu(a)


@_differentiable_slogdet.defjvp
def _slogdet_rule(method, primals, tangents):
    # d log det(a) = tr(a⁻¹ da): its real part is the change of log|det(a)|, its imaginary part turns the sign.
    (a,), (da,) = primals, tangents
    signs, logarithm = _differentiable_slogdet(a, method)
    change = reduce_sum(diagonal_of(solve_matrices(a, da)), (a.ndim - 2,))
    if not is_complex(a.dtype):
        return (signs, logarithm), (SymbolicZero(signs.aval), change)
    turn = imag(change)
    turned = mul(signs, complex_(np.zeros((), turn.dtype), turn))
    return (signs, logarithm), (turned, real_part(change))


def _sign_and_logarithm(diagonal: Any) -> tuple[Any, Any]:
    axis = diagonal.ndim - 1
    return reduce_prod(sign(diagonal), (axis,)), reduce_sum(log(abs_(diagonal)), (axis,))


def _slogdet_by_lu(a: Any) -> tuple[Any, Any]:
    factors, pivots, _ = lu(a)
    signs, logarithm = _sign_and_logarithm(diagonal_of(factors))
    return select(_is_odd(pivots), neg(signs), signs), logarithm


def _slogdet_by_qr(a: Any) -> tuple[Any, Any]:
    """From Householder reflections: det(I − τ v vᴴ) = 1 − τ vᴴv, which is −1 for real matrices unless τ = 0."""
    packed, taus = geqrf(a)
    signs, logarithm = _sign_and_logarithm(diagonal_of(packed))
    below = abs_(lower_triangle(packed, strict=True))
    lengths = add(reduce_sum(mul(below, below), (a.ndim - 2,)), np.ones((), below.dtype))
    reflections = sub(np.ones((), a.dtype), mul(taus, convert_element_type(lengths, a.dtype)))
    if not is_complex(a.dtype):
        reflections = sign(reflections)
    return mul(signs, reduce_prod(reflections, (a.ndim - 2,))), logarithm


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of determinants, which themselves may be too large or too small.

    Args:
        a: an array of shape [..., n, n].
        method: how to factorize the matrices: "lu", the default, or "qr".

    Returns:
        A pair `(sign, logabsdet)` of arrays of shape [...], with det(a) = sign * exp(logabsdet). For singular matrices
        it is (0, -inf).

    >>> import purax.numpy as jnp
    >>> sign, logabsdet = jnp.linalg.slogdet(jnp.array([[1.0, 0.0], [0.0, -1.0]]))
    >>> float(sign), float(logabsdet)
    (-1.0, 0.0)
    """
    if method not in (None, "lu", "qr"):
        raise located(ValueError, f"linalg.slogdet: method must be 'lu', None or 'qr', got {shown(method)}")
    x = matrices("slogdet", a, square=True, narrow=True)
    dtype = x.aval.dtype
    if dtype.itemsize < 4:  # of 16 bits: factorized in float32
        x = convert_element_type(x, np.float32)
    results = _differentiable_slogdet(x, "qr") if method == "qr" else _slogdet(x)
    return SlogdetResult(
        *[convert_element_type(y, dtype) for y in results] if dtype.itemsize < 4 else results
    )


__all__ = ["SlogdetResult", "det", "inv", "matrix_power", "slogdet", "solve", "tensorinv", "tensorsolve"]
