"""Householder reflections in plain StableHLO, for platforms that have no kernels for them.

A reflection is H = I − τ v vᴴ with Hᴴ x = β e₁. Signs and storage are LAPACK's, so that factors are, up to rounding: v
is 1 at its own row, zero above it, and kept below. Each factorization is one loop over columns that works on all
matrices of a batch at once; lengths are those of scaled vectors, which neither overflow nor vanish.
"""

from __future__ import annotations

from purax.primitives.elementwise.formula import where
from purax.primitives.linalg.lapack import INT32
from purax.primitives.linalg.matrix_formulas import (
    Matrices,
    as_results,
    concatenate,
    counted,
    identity_like,
    number_like,
    on_batches,
)
from purax.xla.stablehlo import Builder, Value


def reflection(first: Matrices, rest: Matrices) -> tuple[Matrices, Matrices, Matrices]:
    """β, τ and what is below the 1 of v for vectors with the elements `first` [b] and `rest` [b, m]."""
    size = first.largest_part().maximum(rest.largest_part().largest(1))
    scale = where(size.equals(0), 1, size).as_dtype(first.dtype)
    scaled, others = first / scale, rest / scale.everywhere(rest.shape)
    below = others.squares().sum(1)
    is_trivial = below.equals(0)
    if first.is_complex:
        is_trivial = is_trivial & scaled.parts()[1].equals(0)
    length = (scaled.squares() + below).sqrt()
    beta = where(scaled.real() < 0, length, -length)
    beta = where(is_trivial, scaled.real(), beta)
    divisor = where(is_trivial, 1, beta).as_dtype(first.dtype)
    beta = beta.as_dtype(first.dtype)
    tau = where(is_trivial, 0, (beta - scaled) / divisor)
    gap = where(is_trivial, 1, scaled - beta).everywhere(rest.shape)
    return beta * scale, tau, where(is_trivial.everywhere(rest.shape), 0, others / gap)


def from_the_left(v: Matrices, tau: Matrices, a: Matrices) -> Matrices:
    """H a"""
    _, rows, columns = a.shape
    products = (v.conjugate().in_rows(columns) * a).sum(1)
    return a - (tau.everywhere(v.shape) * v).in_rows(columns) * products.in_columns(rows)


def from_the_right(v: Matrices, tau: Matrices, a: Matrices) -> Matrices:
    """a H"""
    _, rows, columns = a.shape
    products = (a * v.in_columns(rows)).sum(2)
    return a - products.in_rows(columns) * (tau.everywhere(v.shape) * v.conjugate()).in_columns(rows)


def _stored(packed: Matrices, step: Matrices, offset: int = 0) -> Matrices:
    """The vector of the reflection that is kept in column `step`, whose own row is `step + offset`."""
    column = packed.at(2, step)
    places, own = column.places(1), (step + offset).everywhere(column.shape)
    return where(places > own, column, where(places.equals(own), column.number(1), 0))


def _reflect_column(
    a: Matrices, column: Matrices, step: Matrices, offset: int
) -> tuple[Matrices, Matrices, Matrices, Matrices]:
    """The reflection for what is below row `step + offset` of a column: the column as it is kept, β, τ and v."""
    places, own = column.places(1), (step + offset).everywhere(column.shape)
    rest = where(places > own, column, 0)
    beta, tau, below = reflection(column.at(1, step + offset), rest)
    is_own = places.equals(own)
    kept = where(places > own, below, where(is_own, beta.everywhere(column.shape), column))
    return kept, beta, tau, where(is_own, below.number(1), below)


# --- QR


def emit_geqrf(builder: Builder, x: Value) -> list[Value]:
    """Emits `Geqrf`: R and the reflections in one matrix, and their factors."""
    a = on_batches(builder, x)
    count = min(a.shape[1:])
    taus = number_like(a, 0, (a.shape[0], count))
    return as_results(x.shape[:-2], *counted(count, _reflect, [a, taus]))


def _reflect(step: Matrices, a: Matrices, taus: Matrices) -> list[Matrices]:
    kept, _, tau, v = _reflect_column(a, a.at(2, step), step, 0)
    moved = from_the_left(v, tau.conjugate(), a)
    at_step = step.everywhere(a.shape)
    is_trailing = (a.places(2) > at_step) & (a.places(1) >= at_step)
    return [where(is_trailing, moved, a).put(2, step, kept), taus.put(1, step, tau)]


def emit_geqp3(builder: Builder, x: Value) -> list[Value]:
    """Emits `Geqp3`: at each step the longest of the columns that are left comes first."""
    a = on_batches(builder, x)
    b, rows, columns = a.shape
    count = min(rows, columns)
    order = number_like(a, 0, (b, columns), INT32).places(1)
    taus = number_like(a, 0, (b, count))
    return as_results(x.shape[:-2], *counted(count, _reflect_longest, [a, order, taus]))


def _reflect_longest(step: Matrices, a: Matrices, order: Matrices, taus: Matrices) -> list[Matrices]:
    b, rows, columns = a.shape
    places = order.places(1)
    left = where(a.places(1) >= step.everywhere(a.shape), a, 0)
    sizes = left.largest_part().largest(1)
    scale = where(sizes.equals(0), 1, sizes)
    scaled = left / scale.as_dtype(a.dtype).in_columns(rows)
    lengths = where(places >= step.everywhere(places.shape), sizes * scaled.squares().sum(1).sqrt(), -1)
    chosen = lengths.first_largest(step.everywhere((b,)))
    is_chosen = places.equals(chosen.everywhere(places.shape))
    moved, own = where(is_chosen.in_columns(rows), a, 0).sum(2), a.at(2, step)
    a = where(is_chosen.in_columns(rows), own.in_rows(columns), a).put(2, step, moved)
    number = where(is_chosen, order, 0).sum(1)
    order = where(is_chosen, order.at(1, step).everywhere(order.shape), order).put(1, step, number)
    a, taus = _reflect(step, a, taus)
    return [a, order, taus]


def emit_householder_product(builder: Builder, x: Value, taus: Value) -> Value:
    """Emits `HouseholderProduct`: the reflections, from the last to the first, of columns of the identity."""
    a, factors = on_batches(builder, x), on_batches(builder, taus, 1)
    product = _multiplied(a, factors, identity_like(a, *a.shape[1:]), True, False)
    return as_results(x.shape[:-2], product)[0]


def emit_ormqr(builder: Builder, a: Value, taus: Value, c: Value, left: bool, transpose: bool) -> Value:
    """Emits `Ormqr`."""
    matrices = on_batches(builder, a), on_batches(builder, taus, 1), on_batches(builder, c)
    return as_results(a.shape[:-2], _multiplied(*matrices, left, transpose))[0]


def _multiplied(a: Matrices, taus: Matrices, c: Matrices, left: bool, transpose: bool) -> Matrices:
    """Q c, or c Q unless `left`, for Q = H₁ H₂ …; Qᴴ = … H₂ᴴ H₁ᴴ in its place if `transpose`."""
    count = taus.shape[1]

    def body(step, a, taus, c):
        place = step if left == transpose else number_like(step, count - 1, ()) - step
        v, tau = _stored(a, place), taus.at(1, place)
        apply = from_the_left if left else from_the_right
        return [a, taus, apply(v, tau.conjugate() if transpose else tau, c)]

    return counted(count, body, [a, taus, c])[2]


# --- condensed forms


def emit_hessenberg(builder: Builder, x: Value) -> list[Value]:
    """Emits `Hessenberg` for matrices of at least two rows."""
    a = on_batches(builder, x)
    b, n, _ = a.shape

    def body(step, a, taus):
        kept, _, tau, v = _reflect_column(a, a.at(2, step), step, 1)
        at_step = step.everywhere(a.shape)
        a = where(a.places(2) > at_step, from_the_right(v, tau, a), a)
        moved = from_the_left(v, tau.conjugate(), a)
        a = where((a.places(2) > at_step) & (a.places(1) > at_step), moved, a)
        return [a.put(2, step, kept), taus.put(1, step, tau)]

    return as_results(x.shape[:-2], *counted(n - 1, body, [a, number_like(a, 0, (b, n - 1))]))


def emit_tridiagonal(builder: Builder, x: Value, lower: bool) -> list[Value]:
    """Emits `Tridiagonal`. The upper triangle is that of the matrix with rows and columns in the other order."""
    a = on_batches(builder, x)
    results = _tridiagonal(a if lower else a.reverse(1, 2))
    if not lower:
        packed, *vectors = results
        results = [packed.reverse(1, 2), *[v.reverse(1) for v in vectors]]
    return as_results(x.shape[:-2], *results)


def hermitian(a: Matrices) -> Matrices:
    """The Hermitian matrices that have the lower triangle of `a`, and the real part of its diagonal."""
    rows, columns = a.places(1), a.places(2)
    diagonal = a.real().as_dtype(a.dtype)
    return where(rows > columns, a, where(rows.equals(columns), diagonal, a.adjoint()))


def _tridiagonal(a: Matrices) -> list[Matrices]:
    """The packed form, both diagonals and the factors of reflections, from the lower triangle."""
    b, n, _ = a.shape
    work = hermitian(a)
    taus = number_like(a, 0, (b, n - 1))

    def body(step, work, taus):
        kept, _, tau, v = _reflect_column(work, work.at(2, step), step, 1)
        # With x = τ A v and w = x − ½ τ (xᴴ v) v, Hᴴ A H = A − v wᴴ − w vᴴ.
        inside = v.places(1) > step.everywhere(v.shape)
        x = where(inside, tau.everywhere(v.shape) * (work * v.in_columns(n)).sum(2), 0)
        half = tau * (x.conjugate() * v).sum(1) * -0.5
        w = x + half.everywhere(v.shape) * v
        outer = v.in_rows(n) * w.conjugate().in_columns(n)
        at_step = step.everywhere(work.shape)
        is_trailing = (work.places(1) > at_step) & (work.places(2) > at_step)
        work = where(is_trailing, work - outer - outer.adjoint(), work)
        return [work.put(2, step, kept), taus.put(1, step, tau)]

    work, taus = counted(n - 1, body, [work, taus]) if n > 1 else (work, taus)
    rows, columns = work.places(1), work.places(2)
    diagonal = where(rows.equals(columns), work.real(), 0).sum(1)
    other = where(rows.equals(columns + 1), work.real(), 0).sum(1).cut(1, 0, n - 1)
    is_diagonal = rows.equals(columns)
    packed = where(is_diagonal, work.real().as_dtype(a.dtype), where(rows > columns, work, a))
    return [packed, diagonal, other, taus]


def completed(q: Matrices, columns: int) -> Matrices:
    """`q` with columns of the identity added, as many as are missing."""
    b, rows, have = q.shape
    if columns <= have:
        return q
    return concatenate(2, q, identity_like(q, rows, columns).cut(2, have, columns))
