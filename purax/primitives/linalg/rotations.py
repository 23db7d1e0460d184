"""Jacobi's methods in plain StableHLO, for platforms without kernels: eigenvalues of Hermitian matrices by rotations of
rows and columns, singular values by rotations of columns.

Rows and columns play a tournament, as Brent and Luk arranged it: those of the first half meet those of the second, all
pairs are rotated at once, then all but the first move on by one place. After n − 1 rounds each has met each and stands
where it stood. Both methods are as accurate as LAPACK's and end in six to ten tournaments; after `MOST_SWEEPS`, which
numbers do not need, the results are NaN.
"""

from __future__ import annotations

import numpy as np

from purax.primitives.elementwise.formula import where
from purax.primitives.linalg.lapack import INT32, real_dtype
from purax.primitives.linalg.matrix_formulas import (
    Matrices,
    as_results,
    ascending,
    concatenate,
    identity_like,
    inverse,
    number_like,
    on_batches,
)
from purax.primitives.linalg.reflections import completed, emit_geqp3, emit_geqrf, emit_ormqr, hermitian
from purax.xla.stablehlo import Builder, Value

MOST_SWEEPS = 40


def _rotation(
    own: Matrices, other: Matrices, between: Matrices
) -> tuple[Matrices, Matrices, Matrices, Matrices]:
    """Cosine, sine, tangent and the conjugate phase that make [[own, between], [between*, other]] diagonal.

    With the phase e of `between` and c, s, the columns p, q become c p − s e* q and s p + c e* q.
    """
    size = between.magnitude()
    is_zero = size.equals(0)
    divisor = where(is_zero, 1, size)
    slope = (other - own) / (divisor * 2)
    # sqrt(1 + slope²) without overflow: a large slope is its own length.
    steep = abs(slope) > 1e10
    length = where(steep, abs(slope), (where(steep, 0, slope) * where(steep, 0, slope) + 1).sqrt())
    tangent = where(slope < 0, slope.number(-1), 1) / (abs(slope) + length)
    tangent = where(is_zero, 0, tangent)
    cosine = 1 / (tangent * tangent + 1).sqrt()
    phase = between.conjugate() / divisor.as_dtype(between.dtype)
    phase = where(is_zero, 1, phase)
    return cosine, tangent * cosine, tangent, phase


def _next_round(axis: int, first: Matrices, second: Matrices) -> tuple[Matrices, Matrices]:
    """The halves of a tournament after all but the very first have moved on by one place."""
    half = first.shape[axis]
    if half == 1:
        return first, second
    moved = concatenate(axis, first.cut(axis, 0, 1), second.cut(axis, 0, 1), first.cut(axis, 1, half - 1))
    return moved, concatenate(axis, second.cut(axis, 1, half), first.cut(axis, half - 1, half))


def _halves(axis: int, a: Matrices) -> tuple[Matrices, Matrices]:
    half = a.shape[axis] // 2
    return a.cut(axis, 0, half), a.cut(axis, half, 2 * half)


def _scaled(a: Matrices) -> tuple[Matrices, Matrices]:
    """Matrices whose largest element is about 1, and by how much they were divided."""
    size = a.largest_part().largest(1, 2)
    scale = where(size.equals(0), 1, size)
    return a / scale.as_dtype(a.dtype).everywhere(a.shape), scale


def _nan_unless(valid: Matrices, *results: Matrices) -> list[Matrices]:
    nan = [complex(np.nan, np.nan) if x.is_complex else np.nan for x in results]
    return [where(valid.everywhere(x.shape), x, n) for x, n in zip(results, nan, strict=True)]


def _finite(a: Matrices) -> tuple[Matrices, Matrices]:
    """Zeros in place of matrices that hold NaN or infinity, and which do not."""
    largest = a.largest_part()
    finite = largest.apply("is_finite", dtype=np.dtype(np.bool_)).every(1, 2)
    return where(finite.everywhere(a.shape), a, 0), finite


# --- Hermitian matrices


def emit_eigh(builder: Builder, x: Value, lower: bool) -> list[Value]:
    """Emits `Eigh`: eigenvectors and ascending eigenvalues."""
    a = on_batches(builder, x)
    a, finite = _finite(hermitian(a if lower else a.adjoint()))
    a, scale = _scaled(a)
    vectors, values, converged = _diagonalized(a)
    values = values * scale.everywhere(values.shape)
    return as_results(x.shape[:-2], *_nan_unless(finite & converged, vectors, values))


def _diagonalized(a: Matrices) -> tuple[Matrices, Matrices, Matrices]:
    """Eigenvectors, ascending eigenvalues, and whether they were found, of Hermitian matrices."""
    b, n, _ = a.shape
    even = n + n % 2
    epsilon = float(np.finfo(real_dtype(a.dtype)).eps)
    least = a.squares().sum(1, 2) * epsilon**2
    if even > n:  # one more eigenvalue, which is larger than the others and meets zeros only
        a = a.pad(1, 1).pad(2, 1)
        is_last = a.places(1).equals(n) & a.places(2).equals(n)
        a = where(is_last, 2.0 * even, a)
    top, bottom = _halves(1, a)
    blocks = [*_halves(2, top), *_halves(2, bottom)]
    vectors = _halves(2, identity_like(a, even, even))
    rounds = number_like(a, 0, (), INT32)

    def off_diagonal(blocks):
        own = blocks[0].places(1).equals(blocks[0].places(2))
        inside = [where(own, 0, blocks[i].squares()).sum(1, 2) for i in (0, 3)]
        return inside[0] + inside[1] + blocks[1].squares().sum(1, 2) + blocks[2].squares().sum(1, 2)

    def goes_on(state):
        rounds, least, off, *_ = state
        return (off > least) & (rounds < MOST_SWEEPS * (even - 1)).everywhere(off.shape)

    def body(state):
        rounds, least, off, *values = state
        blocks, vectors = _rotated(values[:4], values[4:])
        return [rounds + 1, least, off_diagonal(blocks), *blocks, *vectors]

    state = a.loop(goes_on, body, [rounds, least, off_diagonal(blocks), *blocks, *vectors])
    _, least, off, *values = state
    top, bottom, *vectors = values[0], values[3], *values[4:]
    own = top.places(1).equals(top.places(2))
    found = concatenate(1, *[where(own, block.real(), 0).sum(1) for block in (top, bottom)])
    order = ascending(found)
    basis = concatenate(2, *vectors).transpose().take(order).transpose()
    return basis.cut(1, 0, n).cut(2, 0, n), found.take(order).cut(1, 0, n), off <= least


def _rotated(blocks, vectors):
    """One round: row and column i of the first half against those of the second."""
    upper_left, upper_right, lower_left, lower_right = blocks
    half = upper_left.shape[1]
    own = upper_left.places(1).equals(upper_left.places(2))
    first, second = (where(own, block.real(), 0).sum(1) for block in (upper_left, lower_right))
    between = where(own, upper_right, 0).sum(1)
    cosine, sine, tangent, phase = _rotation(first, second, between)
    size = between.magnitude()
    dtype = upper_left.dtype
    cosine, sine = cosine.as_dtype(dtype), sine.as_dtype(dtype)

    def columns(left, right):
        c, s, e = (x.in_columns(left.shape[1]) for x in (cosine, sine, phase))
        return c * left - s * e * right, s * left + c * e * right

    def rows(above, below):
        c, s, e = (x.in_rows(above.shape[2]) for x in (cosine, sine, phase.conjugate()))
        return c * above - s * e * below, s * above + c * e * below

    upper_left, upper_right = columns(upper_left, upper_right)
    lower_left, lower_right = columns(lower_left, lower_right)
    upper_left, lower_left = rows(upper_left, lower_left)
    upper_right, lower_right = rows(upper_right, lower_right)
    upper_left = where(own, (first - tangent * size).as_dtype(dtype).in_rows(half), upper_left)
    lower_right = where(own, (second + tangent * size).as_dtype(dtype).in_rows(half), lower_right)
    upper_right, lower_left = where(own, 0, upper_right), where(own, 0, lower_left)
    vectors = columns(*vectors)
    upper_left, upper_right = _next_round(2, upper_left, upper_right)
    lower_left, lower_right = _next_round(2, lower_left, lower_right)
    upper_left, lower_left = _next_round(1, upper_left, lower_left)
    upper_right, lower_right = _next_round(1, upper_right, lower_right)
    return [upper_left, upper_right, lower_left, lower_right], _next_round(2, *vectors)


# --- singular values


def emit_svd(builder: Builder, x: Value, full_matrices: bool, compute_uv: bool) -> list[Value]:
    """Emits `SVD`: descending singular values and, if `compute_uv`, u and vᴴ."""
    a, finite = _finite(on_batches(builder, x))
    a, scale = _scaled(a)
    is_wide = a.shape[1] < a.shape[2]
    values, left, right, converged = _of_tall(a.adjoint() if is_wide else a, full_matrices)
    if is_wide:
        left, right = right, left
    values = values * scale.everywhere(values.shape)
    results = [values, left, right.adjoint()] if compute_uv else [values]
    return as_results(x.shape[:-2], *_nan_unless(finite & converged, *results))


def _of_tall(a: Matrices, full_matrices: bool) -> tuple[Matrices, Matrices, Matrices, Matrices]:
    """Singular values, both bases, and whether they were found, of matrices with at least as many rows as columns.

    With a P = Q R and Rᴴ = U₁ S V₁ᴴ, a = (Q V₁) S (P U₁)ᴴ. Rᴴ has its longest columns first and those that should
    be zero last, which the method likes best.
    """
    builder = a.builder
    b, rows, n = a.shape
    packed, order, taus = (Matrices(builder, x) for x in emit_geqp3(builder, a.value))
    square = packed.cut(1, 0, n)
    triangle = where(square.places(1) > square.places(2), 0, square)
    columns, vectors, converged = _orthogonalized(triangle.adjoint())
    values = columns.squares().sum(1).sqrt()
    descending = ascending(-values)
    values = values.take(descending)
    columns, vectors = (x.transpose().take(descending).transpose() for x in (columns, vectors))
    # The columns are orthogonal; those close to zero get directions of length 1, too, by another factorization.
    reflected, factors = (Matrices(builder, x) for x in emit_geqrf(builder, columns.value))
    basis = Matrices(
        builder,
        emit_ormqr(builder, reflected.value, factors.value, identity_like(a, n, n).value, True, False),
    )
    own = reflected.places(1).equals(reflected.places(2))
    signs = where(where(own, reflected.real(), 0).sum(1) < 0, values.number(-1), 1)
    basis = basis * signs.as_dtype(a.dtype).in_columns(n)
    right = basis.take(inverse(order))
    left = completed(vectors.pad(1, rows - n), rows if full_matrices else n)
    left = Matrices(builder, emit_ormqr(builder, packed.value, taus.value, left.value, True, False))
    return values, left, right, converged


def _orthogonalized(a: Matrices) -> tuple[Matrices, Matrices, Matrices]:
    """a V with orthogonal columns, V, and whether it was found."""
    b, rows, n = a.shape
    even = n + n % 2
    epsilon = float(np.finfo(real_dtype(a.dtype)).eps)
    tolerance = 4 * epsilon * rows**0.5
    columns = _halves(2, a.pad(2, even - n))
    vectors = _halves(2, identity_like(a, even, even))
    zero = number_like(a, 0, (), INT32)

    def goes_on(state):
        rounds, quiet, *_ = state
        # It stops where everyone stands in its own place again.
        ended = (quiet >= even - 1) & (rounds.apply("remainder", even - 1).equals(0))
        return ~ended & (rounds < MOST_SWEEPS * (even - 1))

    def body(state):
        rounds, quiet, first, second, *vectors = state
        own, other = first.squares().sum(1), second.squares().sum(1)
        between = (first.conjugate() * second).sum(1)
        turns = between.magnitude() > own.sqrt() * other.sqrt() * tolerance
        cosine, sine, _, phase = _rotation(own, other, where(turns, between, 0))
        cosine, sine = cosine.as_dtype(a.dtype), sine.as_dtype(a.dtype)

        def turned(left, right):
            c, s, e = (x.in_columns(left.shape[1]) for x in (cosine, sine, phase))
            return c * left - s * e * right, s * left + c * e * right

        quiet = where(turns.some(0, 1), 0, quiet + 1)
        halves = _next_round(2, *turned(first, second))
        return [rounds + 1, quiet, *halves, *_next_round(2, *turned(*vectors))]

    rounds, quiet, *halves = a.loop(goes_on, body, [zero, zero, *columns, *vectors])
    moved, basis = concatenate(2, *halves[:2]), concatenate(2, *halves[2:])
    converged = (quiet >= even - 1).everywhere((b,))
    return moved.cut(2, 0, n), basis.cut(1, 0, n).cut(2, 0, n), converged
