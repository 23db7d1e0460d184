"""The polar decomposition x = u h by the dynamically weighted Halley iteration.

Y. Nakatsukasa, Z. Bai and F. Gygi, "Optimizing Halley's iteration for computing the matrix polar decomposition", 2010.
An iteration maps every singular value σ of the iterate to σ (a + b σ²) / (1 + c σ²), with weights that suit the lower
bound l of all σ; six of them bring the worst double precision case to 1.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from purax.control_flow.branches import cond
from purax.control_flow.while_loop import while_loop
from purax.core.array import Array
from purax.interpreters.arguments import to_array
from purax.primitives.elementwise.arithmetic import abs_, div, max_, min_, sqrt, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, gt, le, lt, select
from purax.primitives.elementwise.transcendental import pow_
from purax.primitives.linalg.lapack import check_matrix, real_dtype
from purax.primitives.linalg.matrices import adjoint, identity_like, matmul, rows_of
from purax.primitives.linalg.orthogonal import qr
from purax.primitives.linalg.triangular import cholesky, symmetrize, triangular_solve
from purax.primitives.reductions.reduction import reduce_max
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, reduce_sum
from purax.primitives.shape.reshaping import concatenate, iota
from purax.typing import ArrayLike

_INT32 = np.dtype(np.int32)
_DEFAULT_ITERATIONS = 10
_CHOLESKY_LIMIT = 100.0  # up to this weight the cheaper iteration is as exact


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = u h of a matrix of full rank.

    Args:
        x: a matrix of shape [m, n] with m >= n.
        is_hermitian: accepted and not needed.
        max_iterations: after how many steps to stop in any case.
        eps: the iteration stops when steps are less than |x| (4 eps)^(1/3); by default the unit of rounding.
        dynamic_shape: the part of `x` that counts, as (rows, columns); the rest of the result is zero.

    Returns:
        A tuple of u, with orthonormal columns; h, positive and Hermitian; how many steps were made; and whether they
        were enough.

    >>> import purax as px, purax.numpy as jnp
    >>> u, h, steps, converged = px.lax.linalg.qdwh(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> jnp.round(jnp.diag(h), 3)
    Array([3., 2.], dtype=float32)
    """
    x = to_array(x)
    check_matrix("qdwh", x.aval, "x")
    if x.ndim != 2 or x.shape[0] < x.shape[1]:
        raise ValueError(
            f"qdwh: x must be one matrix with at least as many rows as columns, got shape {x.shape}"
        )
    limit = _DEFAULT_ITERATIONS if max_iterations is None else operator.index(max_iterations)
    real = real_dtype(x.dtype)
    epsilon = float(np.finfo(real).eps) if eps is None else float(eps)
    if dynamic_shape is not None:
        x = _masked(x, dynamic_shape)
    u, steps, converged = _iterate(x, limit, epsilon)
    if dynamic_shape is not None:
        u = _masked(u, dynamic_shape)
    return u, symmetrize(matmul(adjoint(u), x)), steps, converged


def _masked(x: Any, size: tuple[Any, Any]) -> Any:
    inside = [
        lt(iota(_INT32, x.shape, axis), convert_element_type(to_array(size[axis]), _INT32)) for axis in (0, 1)
    ]
    return select(and_(*inside), x, np.zeros((), x.dtype))


def _norm(x: Any) -> Any:
    size = abs_(x)
    return sqrt(reduce_sum(mul(size, size), (0, 1)))


def _iterate(x: Any, limit: int, epsilon: float) -> tuple[Any, Any, Any]:
    real = real_dtype(x.dtype)
    number = functools.partial(np.array, dtype=real)
    # |x|₂² ≤ |x|₁ |x|∞, so that all singular values of the scaled matrix are at most 1.
    size = abs_(x)
    bound = sqrt(mul(reduce_max(reduce_sum(size, (0,)), (0,)), reduce_max(reduce_sum(size, (1,)), (0,))))
    scale = select(gt(bound, number(0)), bound, number(1))
    start = div(x, convert_element_type(broadcast_in_dim(scale, x.shape, ()), x.dtype))
    tolerance = float((4 * epsilon) ** (1 / 3))

    def is_unfinished(state):
        _, lowest, step, change = state
        far = gt(change, number(tolerance))
        unsure = gt(abs_(sub(lowest, number(1))), number(10 * epsilon))
        return and_(lt(step, np.array(limit, _INT32)), far | unsure)

    def advance(state):
        u, lowest, step, _ = state
        a, b, c = _weights(lowest, number)
        following = cond(gt(c, number(_CHOLESKY_LIMIT)), _step_by_qr, _step_by_cholesky, u, a, b, c)
        square = mul(lowest, lowest)
        better = div(mul(lowest, add(a, mul(b, square))), add(number(1), mul(c, square)))
        change = div(_norm(sub(following, u)), max_(_norm(following), number(np.finfo(real).tiny)))
        return following, min_(better, number(1)), add(step, np.array(1, _INT32)), change

    # The smallest singular value is not known; that of a matrix of full rank is not less than this.
    state = (start, full((), epsilon, real), full((), 0, _INT32), full((), np.inf, real))
    u, _, steps, change = while_loop(is_unfinished, advance, state)
    half, three_halves = np.array(0.5, x.dtype), np.array(1.5, x.dtype)
    # A step of Newton and Schulz removes the rounding errors that are left.
    u = sub(mul(u, three_halves), mul(matmul(u, matmul(adjoint(u), u)), half))
    return u, steps, le(change, number(tolerance))


def _weights(lowest: Any, number: Any) -> tuple[Any, Any, Any]:
    """The weights that are best for singular values between `lowest` and 1."""
    square = mul(lowest, lowest)
    d = pow_(div(mul(number(4), sub(number(1), square)), mul(square, square)), number(1 / 3))
    root = sqrt(add(number(1), d))
    inner = add(
        sub(number(8), mul(number(4), d)), div(mul(number(8), sub(number(2), square)), mul(square, root))
    )
    a = add(root, mul(number(0.5), sqrt(max_(inner, number(0)))))
    b = mul(sub(a, number(1)), sub(a, number(1)))
    return a, mul(b, number(0.25)), sub(add(a, mul(b, number(0.25))), number(1))


def _scaled(x: Any, factor: Any) -> Any:
    return mul(x, convert_element_type(broadcast_in_dim(factor, x.shape, ()), x.dtype))


def _step_by_qr(u: Any, a: Any, b: Any, c: Any) -> Any:
    """(b/c) u + (a − b/c)/√c q₁ q₂ᴴ with [√c u; 1] = [q₁; q₂] r."""
    rows, columns = u.shape
    square = rows_of(u, 0, columns)
    stacked = concatenate([_scaled(u, sqrt(c)), identity_like(square)], 0)
    q, _ = qr(stacked, full_matrices=False)
    product = matmul(rows_of(q, 0, rows), adjoint(rows_of(q, rows, rows + columns)))
    ratio = div(b, c)
    return add(_scaled(u, ratio), _scaled(product, div(sub(a, ratio), sqrt(c))))


def _step_by_cholesky(u: Any, a: Any, b: Any, c: Any) -> Any:
    """(b/c) u + (a − b/c) u (1 + c uᴴ u)⁻¹"""
    gram = matmul(adjoint(u), u)
    factor = cholesky(add(_scaled(gram, c), identity_like(gram)))
    solved = triangular_solve(factor, u, lower=True, transpose_a=True, conjugate_a=True)
    solved = triangular_solve(factor, solved, lower=True)
    ratio = div(b, c)
    return add(_scaled(u, ratio), _scaled(solved, sub(a, ratio)))
