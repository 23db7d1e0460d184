"""Elimination in plain StableHLO, for platforms that have no kernels for it: LU factors and tridiagonal systems.

The choices are LAPACK's, so that factors and pivots are too, up to rounding. Each is one loop over columns or rows that
works on all matrices of a batch at once.
"""

from __future__ import annotations

import numpy as np

from purax.primitives.elementwise.formula import where
from purax.primitives.linalg.lapack import INT32, real_dtype
from purax.primitives.linalg.matrix_formulas import Matrices, as_results, counted, number_like, on_batches
from purax.xla.stablehlo import Builder, Value


def emit_lu(builder: Builder, x: Value) -> list[Value]:
    """Emits `LU`: the factors of matrices in one, pivots, and the permutation of rows."""
    batch = x.shape[:-2]
    a = on_batches(builder, x)
    b, rows, columns = a.shape
    pivots = number_like(a, 0, (b, min(rows, columns)), INT32)
    order = number_like(a, 0, (b, rows), INT32).places(1)
    return as_results(batch, *counted(min(rows, columns), _eliminate_column, [a, pivots, order]))


def _eliminate_column(step: Matrices, a: Matrices, pivots: Matrices, order: Matrices) -> list[Matrices]:
    b, rows, columns = a.shape
    column = a.at(2, step)
    row_places = order.places(1)
    sizes = where(row_places >= step.everywhere((b, rows)), column.sum_of_parts(), -1)
    chosen = sizes.first_largest(step.everywhere((b,)))
    is_chosen = row_places.equals(chosen.everywhere((b, rows)))

    def swapped(values: Matrices) -> tuple[Matrices, Matrices]:
        """`values` with two rows exchanged, and the one that comes to `step`."""
        mask = is_chosen.in_rows(columns) if len(values.shape) == 3 else is_chosen
        own = values.at(1, step)
        moved = where(mask, values, 0).sum(1)
        own = own.in_columns(rows) if len(values.shape) == 3 else own.everywhere((b, rows))
        return where(mask, own, values).put(1, step, moved), moved

    a, pivot_row = swapped(a)
    order, _ = swapped(order)
    pivot = pivot_row.at(1, step)
    divisor = where(pivot.equals(0), 1, pivot).everywhere((b, rows))
    below = (row_places > step.everywhere((b, rows))).in_rows(columns)
    factors = (a.at(2, step) / divisor).in_rows(columns)
    places = a.places(2)
    at_step = places.equals(step.everywhere(a.shape))
    after = places > step.everywhere(a.shape)
    updated = where(after, a - factors * pivot_row.in_columns(rows), where(at_step, factors, a))
    return [where(below, updated, a), pivots.put(1, step, chosen), order]


# --- tridiagonal systems


def emit_tridiagonal_solve(
    builder: Builder, dl: Value, d: Value, du: Value, b: Value, perturb_singular: bool
) -> Value:
    """Emits `TridiagonalSolve`: elimination with exchanges of neighbouring rows."""
    below, pivots, above = (on_batches(builder, x, 1) for x in (dl, d, du))
    right = on_batches(builder, b)
    size, n = pivots.shape
    last = above.places(1).equals(n - 1)
    above = where(last, 0, above)
    second = number_like(above, 0, above.shape)

    def eliminate(step, below, pivots, above, second, right):
        following = step + 1
        pivot, over, own = pivots.at(1, step), above.at(1, step), right.at(1, step)
        under, next_pivot = below.at(1, following), pivots.at(1, following)
        next_over, other = above.at(1, following), right.at(1, following)
        if perturb_singular:
            first = pivot.magnitude() * (under.magnitude() + next_pivot.magnitude() + next_over.magnitude())
            stays = (first >= under.magnitude() * (pivot.magnitude() + over.magnitude())) | under.equals(0)
        else:
            stays = pivot.sum_of_parts() >= under.sum_of_parts()
        top, bottom = where(stays, pivot, under), where(stays, under, pivot)
        factor = where(top.equals(0), 0, bottom / where(top.equals(0), 1, top))
        wide = stays.everywhere(own.shape)
        upper, lower = where(wide, own, other), where(wide, other, own)
        factors = factor.everywhere(own.shape)
        right = right.put(1, step, upper).put(1, following, lower - factors * upper)
        right_of_top = where(stays, over, next_pivot)
        pivots = pivots.put(1, step, top)
        pivots = pivots.put(1, following, where(stays, next_pivot, over) - factor * right_of_top)
        second = second.put(1, step, where(stays, 0, next_over))
        above = above.put(1, step, right_of_top)
        above = above.put(1, following, where(stays, next_over, -(factor * next_over)))
        return [below, pivots, above, second, right]

    state = [below, pivots, above, second, right]
    _, pivots, above, second, right = counted(n - 1, eliminate, state) if n > 1 else state
    if perturb_singular:
        pivots, valid = _away_from_zero(pivots, above, second), None
    else:
        valid = pivots.differs(0).every(1)

    def substitute(step, pivots, above, second, right, one, two):
        place = number_like(step, n - 1, ()) - step
        shape = one.shape
        sums = above.at(1, place).everywhere(shape) * one + second.at(1, place).everywhere(shape) * two
        found = (right.at(1, place) - sums) / pivots.at(1, place).everywhere(shape)
        return [pivots, above, second, right.put(1, place, found), found, one]

    none = number_like(right, 0, (size, right.shape[2]))
    found = counted(n, substitute, [pivots, above, second, right, none, none])[3]
    if valid is not None:
        nan = complex(np.nan, np.nan) if found.is_complex else np.nan
        found = where(valid.everywhere(found.shape), found, nan)
    return as_results(b.shape[:-2], found)[0]


def _away_from_zero(pivots: Matrices, above: Matrices, second: Matrices) -> Matrices:
    """Pivots, of which those close to zero count as the unit of rounding times the largest element of the factor."""
    limits = np.finfo(real_dtype(pivots.dtype))
    largest = [x.magnitude().largest(1) for x in (pivots, above, second)]
    least = largest[0].maximum(largest[1]).maximum(largest[2]) * float(limits.eps)
    least = least.maximum(float(limits.tiny)).everywhere(pivots.shape)
    signed = where(pivots.real() < 0, -least, least).as_dtype(pivots.dtype)
    return where(pivots.magnitude() < least, signed, pivots)
