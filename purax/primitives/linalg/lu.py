"""LU factors of general matrices with partial pivoting, and solving systems with them."""

from __future__ import annotations

import numpy as np

from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.primitive import is_linear
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.elementwise import add, neg
from purax.primitives.linalg.elimination import emit_lu
from purax.primitives.linalg.lapack import (
    INT32,
    batch_work,
    call_kernel,
    check_matrix,
    check_same,
    gpu_target,
    is_gpu,
    lapack_target,
    nan_like,
    nan_unless,
    native_batch,
    over_batch,
    routine,
    scalars,
    succeeded,
)
from purax.primitives.linalg.matrices import (
    Batched,
    columns_of,
    identity_like,
    lower_triangle,
    matmul,
    permute_rows,
    rows_of,
    transposed,
    upper_triangle,
)
from purax.primitives.linalg.triangular import triangular_solve, triangular_solve_p
from purax.primitives.shape.broadcasting import move_axis
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.primitives.stop_gradient import stop_gradient
from purax.xla import native


class LU(Batched):
    """Factors of P x = L U in one matrix, the pivots (row k was swapped with row pivots[k]) and P as a permutation.

    Row i of P x is row `permutation[i]` of x. The diagonal of L is ones and not stored.
    """

    name = "lu"
    multiple_results = True

    def infer(self, x):
        check_matrix(self.name, x)
        *batch, rows, columns = x.shape
        pivots = ShapedArray((*batch, min(rows, columns)), INT32)
        return [x.strip_weak_type(), pivots, ShapedArray((*batch, rows), INT32)]

    def host(self, x):
        return over_batch(self._host, (x,), (2,), lambda: self.infer(aval_of(x)))

    def _host(self, x):
        rows = x.shape[0]
        if not x.size:
            return x, np.zeros(0, np.int32), np.arange(rows, dtype=np.int32)
        factors, pivots, info = routine("getrf", x.dtype)(x)
        if info < 0:
            factors = nan_like(x)
        return factors, pivots, permutation_of(pivots, rows)

    def host_work(self, x):
        return batch_work(x)

    def lower(self, builder, x):
        avals = self.infer(x.aval)
        if not x.aval.size:
            return [x, builder.constant(0, avals[1]), builder.iota(avals[2], x.ndim - 2)]
        count = native_batch(builder, x) if x.shape[-1] == x.shape[-2] else 0
        if count:
            return native.call(builder, "lu", [x], avals, batch_axes=x.ndim - 2, batch=count, n=x.shape[-1])
        batch = x.ndim - 2
        if builder.platform == "cpu":
            target = lapack_target("getrf", x.dtype)
        elif is_gpu(builder):
            target = gpu_target(builder, "solver_getrf_ffi")
        else:
            return emit_lu(builder, x)
        results = [x.aval, avals[1], scalars(x.aval, batch)]
        factors, pivots, info = call_kernel(builder, target, (x,), results, batch, "", [(0, 0)])
        pivots = builder.op("subtract", (pivots, builder.constant(1, pivots.aval)), pivots.aval)
        factors = nan_unless(builder, succeeded(builder, info, "GE"), factors)[0]
        return [factors, pivots, emit_permutation(builder, pivots, x.shape[-2])]

    def jvp(self, primals, tangents):
        # With k = min(m, n) and the leading k×k blocks L₁, U₁: L₁⁻¹ P dx₁₁ U₁⁻¹ = L₁⁻¹ dL₁ + dU₁ U₁⁻¹, a strictly lower
        # and an upper triangular matrix. What is below or to the right follows from x = L U.
        factors, pivots, permutation = self.bind(*primals)
        dx = permute_rows(tangents[0], permutation)
        rows, columns = aval_of(factors).shape[-2:]
        k = min(rows, columns)
        square = columns_of(rows_of(factors, 0, k), 0, k)
        inner = solve_lower(square, columns_of(rows_of(dx, 0, k), 0, k))
        inner = solve_upper_right(square, inner)
        l1, u1 = unit_lower(square), upper_triangle(square)
        dl1 = matmul(l1, lower_triangle(inner, strict=True))
        du1 = matmul(upper_triangle(inner), u1)
        tangent = add(dl1, du1)
        if rows > k:
            l2 = rows_of(factors, k, rows)
            dl2 = solve_upper_right(square, sub(rows_of(dx, k, rows), matmul(l2, du1)))
            tangent = concatenate([tangent, dl2], aval_of(dx).ndim - 2)
        elif columns > k:
            u2 = columns_of(factors, k, columns)
            du2 = solve_lower(square, sub(columns_of(dx, k, columns), matmul(dl1, u2)))
            tangent = concatenate([tangent, du2], aval_of(dx).ndim - 1)
        return [factors, pivots, permutation], [tangent, Zero.like(pivots), Zero.like(permutation)]


def unit_lower(factors):
    """L from the factors in one matrix."""
    return add(lower_triangle(factors, strict=True), identity_like(factors))


def solve_lower(factors, b, transpose: bool = False, conjugate: bool = False):
    """L⁻¹ b, or L⁻ᵀ b, from the factors in one matrix."""
    return triangular_solve(
        factors,
        b,
        left_side=True,
        lower=True,
        unit_diagonal=True,
        transpose_a=transpose,
        conjugate_a=conjugate,
    )


def solve_upper_right(factors, b):
    """b U⁻¹"""
    return triangular_solve(factors, b)


class LUPivotsToPermutation(Batched):
    """The permutation that swapping row k with row pivots[k], for k = 0, 1, …, amounts to."""

    name = "lu_pivots_to_permutation"
    own_axes = 1

    def infer(self, pivots, *, permutation_size):
        if pivots.ndim < 1 or pivots.dtype.kind not in "iu":
            raise TypeError(
                f"lu_pivots_to_permutation: pivots must be integers with at least one axis, got {pivots.str_short()}"
            )
        if permutation_size < pivots.shape[-1]:
            raise ValueError(
                f"lu_pivots_to_permutation: permutation_size={permutation_size} is less than the {pivots.shape[-1]} "
                f"pivots of shape {pivots.shape}"
            )
        return ShapedArray((*pivots.shape[:-1], permutation_size), pivots.dtype)

    def host(self, pivots, *, permutation_size):
        def one(row):
            return (permutation_of(row, permutation_size),)

        avals = (self.infer(aval_of(pivots), permutation_size=permutation_size),)
        return over_batch(one, (pivots,), (1,), lambda: avals)[0]

    def host_work(self, pivots, *, permutation_size):
        return 50 * pivots.size + batch_work(pivots, 1)

    def lower(self, builder, pivots, *, permutation_size):
        return emit_permutation(builder, pivots, permutation_size)

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        return out, Zero.like(out)


def permutation_of(pivots: np.ndarray, size: int) -> np.ndarray:
    order = list(range(size))
    for k, other in enumerate(pivots.tolist()):
        if other != k:
            order[k], order[other] = order[other], order[k]
    return np.array(order, pivots.dtype)


def emit_permutation(builder, pivots, size: int):
    """Emits `permutation_of` for every row of `pivots`."""
    batch = pivots.ndim - 1
    count = pivots.shape[-1]
    permutation = pivots.aval.with_shape((*pivots.shape[:-1], size))
    start = builder.iota(permutation, batch)
    if not count or not permutation.size:
        return start
    if is_gpu(builder) and pivots.dtype == INT32:
        target = gpu_target(builder, "_lu_pivots_to_permutation")
        return call_kernel(builder, target, (pivots,), [permutation], batch)[0]
    counter = ShapedArray((), INT32)
    column = pivots.aval.with_shape((*pivots.shape[:-1], 1))
    zero = builder.constant(0, counter)

    def at(inner, x, k):
        return inner.window(x, [*[zero] * batch, k], column.shape)

    def body(inner, k, order, pivots):
        positions = inner.iota(permutation, batch)
        other = inner.broadcast(at(inner, pivots, k), permutation.shape, range(permutation.ndim))
        own = at(inner, order, k)
        at_other = inner.compare("EQ", positions, other)
        found = inner.reduce(
            inner.select(at_other, order, inner.constant(0, permutation)), 0, "add", (batch,)
        )
        swapped = inner.select(
            at_other, inner.broadcast(own, permutation.shape, range(permutation.ndim)), order
        )
        moved = inner.op(
            "dynamic_update_slice",
            (swapped, inner.reshape(found, column.shape), *[zero] * batch, k),
            permutation,
        )
        following = inner.op("add", (k, inner.constant(1, counter)), counter)
        return [following, moved, pivots]

    def condition(inner, k, order, pivots):
        return [inner.compare("LT", k, inner.constant(count, counter))]

    avals = [counter, permutation, pivots.aval]
    regions = (builder.region(avals, condition), builder.region(avals, body))
    return builder.op("while", (zero, start, pivots), avals, regions=regions)[1]


class LUSolve(Batched):
    """The x with a x = b, or aᵀ x = b if `transpose_a`, given the factors of a by `lu`.

    The factors are not differentiated: the derivative is that of the solution for the matrix `a`, which is passed for
    that alone.
    """

    name = "lu_solve"

    def infer(self, a, factors, permutation, b, *, transpose_a):
        check_matrix(self.name, a, "a", square=True)
        check_matrix(self.name, b, "b")
        check_same(self.name, a=a, factors=factors, b=b)
        if factors.shape != a.shape or permutation.shape != a.shape[:-1] or b.shape[:-1] != a.shape[:-1]:
            raise ValueError(
                f"lu_solve: a of shape {a.shape} needs factors of that shape, a permutation of shape {a.shape[:-1]} "
                f"and b of shape {(*a.shape[:-1], 'k')}, got {factors.shape}, {permutation.shape} and {b.shape}"
            )
        return b

    def host(self, a, factors, permutation, b, *, transpose_a):
        def one(factors, permutation, b):
            if not b.size:
                return (b,)
            trsm = routine("trsm", b.dtype)
            if transpose_a:
                x = trsm(1.0, factors, trsm(1.0, factors, b, 0, 0, 1, 0), 0, 1, 1, 1)
                out = np.empty_like(x)
                out[permutation] = x
                return (out,)
            return (trsm(1.0, factors, trsm(1.0, factors, b[permutation], 0, 1, 0, 1), 0, 0, 0, 0),)

        return over_batch(one, (factors, permutation, b), (2, 1, 2), lambda: (aval_of(b),))[0]

    def host_work(self, a, factors, permutation, b, **params):
        return batch_work(a) + b.size

    def lower(self, builder, a, factors, permutation, b, *, transpose_a):
        if not b.aval.size:
            return b

        def solve(x, lower):
            return triangular_solve_p.lower(
                builder,
                factors,
                x,
                left_side=True,
                lower=lower,
                transpose_a=transpose_a,
                conjugate_a=False,
                unit_diagonal=lower,
            )

        if transpose_a:
            return emit_rows(builder, solve(solve(b, False), True), emit_inverse(builder, permutation))
        return solve(solve(emit_rows(builder, b, permutation), True), False)

    def jvp(self, primals, tangents, *, transpose_a):
        # a x = b gives a dx = db − da x.
        a, factors, permutation, _ = primals
        da, _, _, db = tangents
        x = self.bind(*primals, transpose_a=transpose_a)
        if type(da) is Zero:
            right = db
        else:
            moved = matmul(transposed(da) if transpose_a else da, x)
            right = neg(moved) if type(db) is Zero else sub(db, moved)
        if type(right) is Zero:
            return x, right
        return x, self.bind(a, factors, permutation, right, transpose_a=transpose_a)

    def transpose(self, cotangent, a, factors, permutation, b, *, transpose_a):
        if is_linear(a) or is_linear(factors):
            raise TypeError("lu_solve is linear in the right side b only")
        solved = self.bind(a, factors, permutation, cotangent, transpose_a=not transpose_a)
        return None, None, None, solved

    def batch(self, operands, batch_axes, **params):
        *matrices, b = operands
        if any(axis is not None for axis in batch_axes[:3]):
            return super().batch(operands, batch_axes, **params)
        last = aval_of(b).ndim - 1  # one matrix for all right sides, which become more columns
        b = move_axis(b, batch_axes[3], last)
        shape = aval_of(b).shape
        merged = reshape(b, (*shape[:-2], shape[-2] * shape[-1]))
        return reshape(self.bind(*matrices, merged, **params), shape), last


def emit_rows(builder, x, permutation):
    """Emits `permute_rows`."""
    batch = x.ndim - 2
    shape = permutation.shape
    indices = builder.reshape(permutation, (*shape, 1))
    axes = ", ".join(map(str, range(batch)))
    numbers = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = [{batch + 1}], collapsed_slice_dims = [{batch}], "
        f"operand_batching_dims = [{axes}], start_indices_batching_dims = [{axes}], start_index_map = [{batch}], "
        f"index_vector_dim = {len(shape)}>, indices_are_sorted = false"
    )
    return builder.gather(x, indices, (*[1] * (batch + 1), x.shape[-1]), x.aval, numbers)


def emit_inverse(builder, permutation):
    """Emits the inverse of a permutation: its positions, sorted by it."""
    axis = permutation.ndim - 1
    positions = builder.iota(permutation.aval, axis)
    scalar = ShapedArray((), permutation.dtype)
    body = builder.region((scalar,) * 4, lambda inner, a, b, c, d: [inner.compare("LT", a, b)])
    avals = [permutation.aval, permutation.aval]
    attributes = f"dimension = {axis} : i64, is_stable = false"
    return builder.op("sort", (permutation, positions), avals, attributes, (body,))[1]


lu_p = LU()
lu_pivots_to_permutation_p = LUPivotsToPermutation()
lu_solve_p = LUSolve()


def lu(x) -> list:
    """Factors, pivots and permutation; see `LU`."""
    return lu_p.bind(x)


def lu_pivots_to_permutation(pivots, permutation_size: int):
    """The permutation that pivots amount to."""
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=int(permutation_size))


def lu_solve(a, factors, permutation, b, transpose_a: bool = False):
    """The solution of a x = b, given the factors of `a`; see `LUSolve`."""
    return lu_solve_p.bind(a, factors, permutation, b, transpose_a=bool(transpose_a))


def solve(a, b):
    """The x with a x = b, for square matrices `a` and matrices `b` of the same batch shape."""
    factors, _, permutation = lu(stop_gradient(a))
    return lu_solve(a, factors, permutation, b)
