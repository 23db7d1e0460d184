"""QR: a unitary matrix times a triangular one, by Householder reflections.

A reflection is H = I − τ v vᴴ with v zero above its own row, where it is 1; `geqrf` stores the rest of v below the
diagonal of R. Q is the product of all of them.
"""

from __future__ import annotations

import functools

import numpy as np

from purax.core.avals import ShapedArray, Zero, aval_of
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.conversion import complex_, imag
from purax.primitives.elementwise.elementwise import add
from purax.primitives.linalg.lapack import (
    INT32,
    batch_work,
    call_kernel,
    check_dtype,
    check_matrix,
    check_same,
    emit_width,
    emit_window,
    flag,
    gpu_target,
    is_complex,
    is_gpu,
    lapack_target,
    native_batch,
    over_batch,
    routine,
)
from purax.primitives.linalg.lu import solve
from purax.primitives.linalg.matrices import (
    Batched,
    adjoint,
    columns_of,
    conjugate,
    identity_like,
    lower_triangle,
    matmul,
    only_diagonal,
    permute_columns,
    rows_of,
)
from purax.primitives.linalg.reflections import emit_geqp3, emit_geqrf, emit_householder_product, emit_ormqr
from purax.primitives.linalg.triangular import triangular_solve
from purax.primitives.shape.reshaping import concatenate
from purax.primitives.shape.slicing import pad
from purax.xla import native


class Geqrf(Batched):
    """R in the upper triangle, Householder vectors below it, and their factors."""

    name = "geqrf"
    multiple_results = True

    def infer(self, x):
        check_matrix(self.name, x)
        *batch, rows, columns = x.shape
        return [x.strip_weak_type(), ShapedArray((*batch, min(rows, columns)), x.dtype)]

    def host(self, x):
        return over_batch(self._host, (x,), (2,), lambda: self.infer(aval_of(x)))

    def _host(self, x):
        if not x.size:
            return x, np.zeros(min(x.shape), x.dtype)
        return routine("geqrf", x.dtype)(x)[:2]

    def host_work(self, x):
        return batch_work(x)

    def lower(self, builder, x):
        avals = self.infer(x.aval)
        if not x.aval.size:
            return [x, builder.constant(0, avals[1])]
        if builder.platform == "cpu":
            target = lapack_target("geqrf", x.dtype)
        elif is_gpu(builder):
            target = gpu_target(builder, "solver_geqrf_ffi")
        else:
            return emit_geqrf(builder, x)
        return call_kernel(builder, target, (x,), avals, x.ndim - 2, "", [(0, 0)])


class Geqp3(Batched):
    """As `geqrf`, of `x` with its columns reordered so that the diagonal of R decreases; and their order."""

    name = "geqp3"
    multiple_results = True

    def infer(self, x):
        check_matrix(self.name, x)
        *batch, rows, columns = x.shape
        taus = ShapedArray((*batch, min(rows, columns)), x.dtype)
        return [x.strip_weak_type(), ShapedArray((*batch, columns), INT32), taus]

    def host(self, x):
        return over_batch(self._host, (x,), (2,), lambda: self.infer(aval_of(x)))

    def _host(self, x):
        if not x.size:
            return x, np.arange(x.shape[1], dtype=np.int32), np.zeros(min(x.shape), x.dtype)
        packed, order, taus, _, _ = routine("geqp3", x.dtype)(x)
        return packed, order.astype(np.int32) - np.int32(1), taus

    def host_work(self, x):
        return batch_work(x)

    def lower(self, builder, x):
        avals = self.infer(x.aval)
        batch = x.ndim - 2
        if not x.aval.size:
            return [x, builder.iota(avals[1], batch), builder.constant(0, avals[2])]
        free = builder.constant(0, avals[1])
        if builder.platform == "cpu":
            target, config = lapack_target("geqp3", x.dtype), ""
        elif is_gpu(builder):
            target, config = gpu_target(builder, "hybrid_geqp3"), 'magma = "auto"'
        else:
            return emit_geqp3(builder, x)
        packed, order, taus = call_kernel(builder, target, (x, free), avals, batch, config, [(0, 0), (1, 1)])
        return [packed, builder.op("subtract", (order, builder.constant(1, order.aval)), order.aval), taus]


class HouseholderProduct(Batched):
    """The first columns of H₁ H₂ … for Householder reflections as `geqrf` gives them."""

    name = "householder_product"

    def infer(self, a, taus):
        check_matrix(self.name, a, "a")
        check_dtype(self.name, taus, "taus")
        check_same(self.name, a=a, taus=taus)
        if a.shape[-2] < a.shape[-1]:
            raise ValueError(
                f"householder_product: a must have at least as many rows as columns, but has shape {a.shape}"
            )
        if taus.shape[:-1] != a.shape[:-2] or taus.ndim != a.ndim - 1 or taus.shape[-1] > a.shape[-1]:
            raise ValueError(
                f"householder_product: for a of shape {a.shape}, taus must have shape {(*a.shape[:-2], 'k')} with k at "
                f"most {a.shape[-1]}, but has {taus.shape}"
            )
        return a

    def host(self, a, taus):
        return over_batch(self._host, (a, taus), (2, 1), lambda: (aval_of(a),))[0]

    def _host(self, a, taus):
        if not a.size:
            return (a,)
        if not taus.size:
            return (np.eye(*a.shape, dtype=a.dtype),)
        return (routine("orgqr", a.dtype)(a, taus)[0],)

    def host_work(self, a, taus):
        return batch_work(a)

    def lower(self, builder, a, taus):
        if not a.aval.size:
            return a
        if not taus.aval.size:
            index = a.aval.with_dtype(INT32)
            inside = builder.compare("EQ", builder.iota(index, a.ndim - 2), builder.iota(index, a.ndim - 1))
            return builder.convert(inside, a.dtype)
        if builder.platform == "cpu":
            target = lapack_target("orgqr", a.dtype)
        elif is_gpu(builder):
            target = gpu_target(builder, "solver_orgqr_ffi")
        else:
            return emit_householder_product(builder, a, taus)
        return call_kernel(builder, target, (a, taus), [a.aval], a.ndim - 2, "", [(0, 0)])[0]


class Ormqr(Batched):
    """Q c, or c Q unless `left`, for Q = H₁ H₂ … as `geqrf` gives it; Qᴴ in its place if `transpose`."""

    name = "ormqr"

    def infer(self, a, taus, c, *, left, transpose):
        check_matrix(self.name, a, "a")
        check_matrix(self.name, c, "c")
        check_same(self.name, a=a, taus=taus, c=c)
        side = c.shape[-2] if left else c.shape[-1]
        if (
            taus.shape[:-1] != a.shape[:-2]
            or c.shape[:-2] != a.shape[:-2]
            or taus.shape[-1] > min(a.shape[-2:])
        ):
            raise ValueError(
                f"ormqr: shapes do not fit: a {a.shape}, taus {taus.shape}, c {c.shape}; their leading axes must be "
                "equal, and there must be at most one of taus for each column of a"
            )
        if side != a.shape[-2]:
            raise ValueError(
                f"ormqr: c of shape {c.shape} must have as many {'rows' if left else 'columns'} as a of shape "
                f"{a.shape} has rows"
            )
        return c

    def host(self, a, taus, c, *, left, transpose):
        def one(a, taus, c):
            if not c.size or not taus.size:
                return (c,)
            trans = ("C" if is_complex(a.dtype) else "T") if transpose else "N"
            columns = a[:, : taus.shape[0]]
            return (
                routine("ormqr", a.dtype)("L" if left else "R", trans, columns, taus, c, 64 * max(c.shape))[
                    0
                ],
            )

        return over_batch(one, (a, taus, c), (2, 1, 2), lambda: (aval_of(c),))[0]

    def host_work(self, a, taus, c, **params):
        return batch_work(a) + c.size

    def lower(self, builder, a, taus, c, *, left, transpose):
        if not c.aval.size or not taus.aval.size:
            return c
        if builder.platform == "cpu":
            target = lapack_target("ormqr", a.dtype)
        elif is_gpu(builder):
            target = gpu_target(builder, "solver_ormqr_ffi")
        else:
            return emit_ormqr(builder, a, taus, c, left, transpose)
        config = f"left = {flag(left)}, transpose = {flag(transpose)}"
        return call_kernel(builder, target, (a, taus, c), [c.aval], a.ndim - 2, config, [(0, 2)])[0]

    def jvp(self, primals, tangents, **params):
        a, taus, _ = primals
        da, dtaus, dc = tangents
        out = self.bind(*primals, **params)
        if type(da) is not Zero or type(dtaus) is not Zero:
            raise NotImplementedError(
                "ormqr is differentiable in c only, not in the reflections a and taus; make Q with "
                "jnp.linalg.qr(mode='complete') and multiply by it"
            )
        return out, Zero.like(out) if type(dc) is Zero else self.bind(a, taus, dc, **params)

    def transpose(self, cotangent, a, taus, c, *, left, transpose):
        # The transpose of Q, not its adjoint: (Q c)ᵀ pulls back y to Qᵀ y = conj(Qᴴ conj(y)).
        moved = self.bind(a, taus, conjugate(cotangent), left=left, transpose=not transpose)
        return None, None, conjugate(moved)


class QR(Batched):
    """Q and R with x = Q R, and, if `pivoting`, the order p of columns with x[:, p] = Q R.

    Q has as many columns as x has rows if `full_matrices`, else as many as the smaller side of x.
    """

    name = "qr"
    multiple_results = True

    def infer(self, x, *, pivoting, full_matrices):
        check_matrix(self.name, x)
        *batch, rows, columns = x.shape
        inner = rows if full_matrices else min(rows, columns)
        results = [
            ShapedArray((*batch, rows, inner), x.dtype),
            ShapedArray((*batch, inner, columns), x.dtype),
        ]
        return results + ([ShapedArray((*batch, columns), INT32)] if pivoting else [])

    def host(self, x, *, pivoting, full_matrices):
        def one(x):
            rows, columns = x.shape
            if pivoting:
                packed, order, taus = geqp3_p._host(x)
            else:
                packed, taus = geqrf_p._host(x)
            inner = rows if full_matrices else min(rows, columns)
            vectors = packed[:, :inner]
            if inner > columns:
                vectors = np.zeros((rows, inner), x.dtype)
                vectors[:, :columns] = packed
            q = householder_product_p._host(vectors, taus)[0]
            r = np.where(_is_below(inner, columns), x.dtype.type(0), packed[:inner])
            return (q, r, order) if pivoting else (q, r)

        return over_batch(
            one, (x,), (2,), lambda: self.infer(aval_of(x), pivoting=pivoting, full_matrices=full_matrices)
        )

    def host_work(self, x, **params):
        return batch_work(x)

    def lower(self, builder, x, *, pivoting, full_matrices):
        q_aval, r_aval, *_ = self.infer(x.aval, pivoting=pivoting, full_matrices=full_matrices)
        count = 0 if pivoting else native_batch(builder, x)
        if count:
            sizes = {"rows": x.shape[-2], "columns": x.shape[-1], "inner": q_aval.shape[-1]}
            return native.call(builder, "qr", [x], [q_aval, r_aval], batch_axes=x.ndim - 2, batch=count, **sizes)
        if pivoting:
            packed, *order, taus = geqp3_p.lower(builder, x)
        else:
            packed, taus = geqrf_p.lower(builder, x)
            order = []
        rows, columns = x.shape[-2:]
        inner = q_aval.shape[-1]
        vectors = packed
        if inner != columns:
            vectors = emit_width(builder, packed, inner)
        q = householder_product_p.lower(builder, vectors, taus)
        r = packed
        if inner != rows:
            r = emit_window(builder, packed, r_aval.shape)
        if r_aval.size:
            index = r_aval.with_dtype(INT32)
            below = builder.compare("GT", builder.iota(index, x.ndim - 2), builder.iota(index, x.ndim - 1))
            r = builder.select(below, builder.constant(0, r_aval), r)
        return [q, r, *order]

    def jvp(self, primals, tangents, *, pivoting, full_matrices):
        q, r, *order = self.bind(*primals, pivoting=pivoting, full_matrices=full_matrices)
        dx = permute_columns(tangents[0], order[0]) if pivoting else tangents[0]
        dq, dr = _qr_tangents(q, r, dx)
        return [q, r, *order], [dq, dr, *map(Zero.like, order)]


@functools.lru_cache(256)
def _is_below(rows: int, columns: int) -> np.ndarray:
    """Where a matrix of this size is below its diagonal."""
    return np.tri(rows, columns, -1, bool)


def _qr_tangents(q, r, dx):
    """The tangents of Q and R.

    With the leading square block R₁ of R and C = Qᴴ dx₁ R₁⁻¹: Qᴴ dQ is skew-Hermitian and dR₁ R₁⁻¹ upper triangular
    with a real diagonal, and they add up to C.
    """
    rows, columns = aval_of(dx).shape[-2:]
    inner = aval_of(q).shape[-1]
    k = min(rows, columns)
    axis = aval_of(dx).ndim - 2
    r1 = columns_of(rows_of(r, 0, k), 0, k)
    q1 = columns_of(q, 0, k)
    scaled = triangular_solve(r1, columns_of(dx, 0, k))
    c = matmul(adjoint(q1), scaled)
    strict = lower_triangle(c, strict=True)
    skew = sub(strict, adjoint(strict))
    if is_complex(aval_of(c).dtype):
        diagonal = imag(only_diagonal(c))
        skew = add(skew, complex_(np.zeros((), aval_of(diagonal).dtype), diagonal))
    rest = sub(c, skew)
    dq1 = sub(scaled, matmul(q1, rest))
    dr1 = matmul(rest, r1)
    if columns > k:
        r2 = columns_of(r, k, columns)
        dr2 = matmul(adjoint(q1), sub(columns_of(dx, k, columns), matmul(dq1, r2)))
        return dq1, concatenate([dr1, dr2], axis + 1)
    if inner == k:
        return dq1, dr1
    zeros = [(0, 0, 0)] * axis + [(0, inner - k, 0), (0, 0, 0)]
    return concatenate([dq1, _complement_tangent(q1, dq1)], axis + 1), pad(
        dr1, np.zeros((), aval_of(r).dtype), zeros
    )


def _complement_tangent(q1, dq1):
    """The tangent of the other columns Q₂ of a product of reflections, which the first ones Q₁ determine.

    Q = I − V T Vᴴ with lower trapezoidal V. So Q₂ = E₂ + (Q₁ − E₁) M with M = (Q₁₁ − I)⁻ᴴ Q₂₁ᴴ, where Q₁₁ and Q₂₁ are
    the top and the rest of Q₁, and E₁, E₂ columns of the identity. It is NaN where a reflection is the identity.
    """
    rows, k = aval_of(q1).shape[-2:]
    top = rows_of(q1, 0, k)
    shifted = sub(top, identity_like(top))
    bottom = rows_of(q1, k, rows)
    m = solve(adjoint(shifted), adjoint(bottom))
    dtop, dbottom = rows_of(dq1, 0, k), rows_of(dq1, k, rows)
    dm = solve(adjoint(shifted), sub(adjoint(dbottom), matmul(adjoint(dtop), m)))
    whole = concatenate([shifted, bottom], aval_of(q1).ndim - 2)
    return add(matmul(dq1, m), matmul(whole, dm))


geqrf_p = Geqrf()
geqp3_p = Geqp3()
householder_product_p = HouseholderProduct()
ormqr_p = Ormqr()
qr_p = QR()


def geqrf(x) -> list:
    """See `Geqrf`."""
    return geqrf_p.bind(x)


def geqp3(x) -> list:
    """See `Geqp3`."""
    return geqp3_p.bind(x)


householder_product = householder_product_p.bind


def ormqr(a, taus, c, left: bool = True, transpose: bool = False):
    """See `Ormqr`."""
    return ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))


def qr(x, pivoting: bool = False, full_matrices: bool = True) -> list:
    """Q, R and, if `pivoting`, the order of columns; see `QR`."""
    return qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices))
