"""Triangular matrices: Cholesky factorization, solving triangular systems, and updating a factor."""

from __future__ import annotations

import numpy as np

from purax.core.avals import Zero, aval_of
from purax.core.primitive import is_linear
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.elementwise import add, mul, neg
from purax.primitives.linalg.lapack import (
    INT32,
    batch_work,
    call_kernel,
    check_dtype,
    check_matrix,
    check_same,
    code,
    emit_window,
    flag,
    gpu_target,
    is_complex,
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
    adjoint,
    conjugate,
    like,
    lower_triangle,
    matmul,
    only_diagonal,
    real_part,
    transposed,
    upper_triangle,
)
from purax.primitives.linalg.reflections import emit_geqrf
from purax.primitives.shape.broadcasting import broadcast_in_dim, materialize, move_axis
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.xla import native


class Cholesky(Batched):
    """The lower triangular L with x = L Lᴴ; NaN where `x` is not positive definite. Only its lower triangle is read."""

    name = "cholesky"

    def infer(self, x):
        check_matrix(self.name, x, square=True)
        return x

    def host(self, x):
        return over_batch(self._host, (x,), (2,), lambda: (aval_of(x),))[0]

    def _host(self, x):
        if not x.size:
            return (x,)
        factor, info = routine("potrf", x.dtype)(x, 1, 1)
        return (np.tril(nan_like(x)) if info else factor,)

    def host_work(self, x):
        return batch_work(x)

    def lower(self, builder, x):
        if not x.aval.size:
            return x
        count = native_batch(builder, x)
        if count:
            return native.call(builder, "cholesky", [x], [x.aval], batch_axes=x.ndim - 2, batch=count, n=x.shape[-1])[0]
        batch = x.ndim - 2
        results = [x.aval, scalars(x.aval, batch)]
        if builder.platform == "cpu":
            target, config = lapack_target("potrf", x.dtype), f"uplo = {code('L')}"
        elif is_gpu(builder):
            target, config = gpu_target(builder, "solver_potrf_ffi"), "lower = true"
        else:
            return clean_below(builder, builder.op("cholesky", (x,), x.aval, "lower = true"))
        factor, info = call_kernel(builder, target, (x,), results, batch, config, [(0, 0)])
        return clean_below(builder, nan_unless(builder, succeeded(builder, info), factor)[0])

    def jvp(self, primals, tangents):
        # x = L Lᴴ gives L⁻¹ dx L⁻ᴴ = L⁻¹ dL + (L⁻¹ dL)ᴴ, whose first term is lower triangular.
        factor = self.bind(*primals)
        strict = lower_triangle(tangents[0], strict=True)
        diagonal = like(real_part(only_diagonal(tangents[0])), strict)
        return factor, cholesky_tangent(factor, add(add(strict, adjoint(strict)), diagonal))


def cholesky_tangent(factor, dx):
    """The tangent of the lower triangular factor of a matrix with the Hermitian tangent `dx`."""
    inner = triangular_solve(factor, dx, left_side=True, lower=True)
    inner = triangular_solve(factor, inner, left_side=False, lower=True, transpose_a=True, conjugate_a=True)
    return matmul(factor, _half_diagonal(lower_triangle(inner)))


def clean_below(builder, x):
    """Emits `x` with zeros above the diagonal."""
    index = x.aval.with_dtype(INT32)
    inside = builder.compare("GE", builder.iota(index, x.ndim - 2), builder.iota(index, x.ndim - 1))
    return builder.select(inside, x, builder.constant(0, x.aval))


def _half_diagonal(a):
    return sub(a, mul(only_diagonal(a), np.array(0.5, aval_of(a).dtype)))


class TriangularSolve(Batched):
    """The x with op(a) x = b, or x op(a) = b unless `left_side`, for triangular a.

    op transposes if `transpose_a` and conjugates if `conjugate_a`; the diagonal counts as ones if `unit_diagonal`. The
    other triangle is not read.
    """

    name = "triangular_solve"

    def infer(self, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        check_matrix(self.name, a, "a", square=True)
        check_matrix(self.name, b, "b")
        check_same(self.name, a=a, b=b)
        axis = -2 if left_side else -1
        if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[axis]:
            side = "rows" if left_side else "columns"
            raise TypeError(
                f"triangular_solve: a of shape {a.shape} and b of shape {b.shape} do not fit for left_side="
                f"{left_side}: b needs the leading axes {a.shape[:-2]} of a and {a.shape[-1]} {side}"
            )
        return b

    def host(self, a, b, **params):
        return over_batch(lambda *pair: self._host(*pair, **params), (a, b), (2, 2), lambda: (aval_of(b),))[0]

    def _host(self, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if not b.size:
            return (b,)
        if conjugate_a and not transpose_a:
            a = a.conj()
        trans = (2 if conjugate_a else 1) if transpose_a else 0
        return (routine("trsm", b.dtype)(1.0, a, b, not left_side, lower, trans, unit_diagonal),)

    def host_work(self, a, b, **params):
        return batch_work(a) + b.size

    def lower(self, builder, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if not b.aval.size:
            return b
        conjugated = conjugate_a and is_complex(a.dtype)
        if conjugated and not transpose_a:
            a = _conjugated(builder, a)
        columns = b.shape[-1 if left_side else -2]
        count = native_batch(builder, a, columns)
        if count:
            settings = {
                "lower": lower,
                "transpose": transpose_a,
                "unit": unit_diagonal,
                "by_rows": not left_side,
            }
            sizes = {"batch_axes": a.ndim - 2, "batch": count, "n": a.shape[-1], "k": columns}
            return native.call(builder, "triangular_solve", [a, b], [b.aval], **sizes, **settings)[0]
        if builder.platform == "cpu":
            trans = ("C" if conjugated else "T") if transpose_a else "N"
            config = (
                f"diag = {code('U' if unit_diagonal else 'N')}, side = {code('L' if left_side else 'R')}, "
                f"trans_x = {code(trans)}, uplo = {code('L' if lower else 'U')}"
            )
            target = lapack_target("trsm", a.dtype)
            return call_kernel(builder, target, (a, b), [b.aval], a.ndim - 2, config, [(0, 1)])[0]
        trans = ("ADJOINT" if conjugated else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
        attributes = (
            f"left_side = {flag(left_side)}, lower = {flag(lower)}, transpose_a = #stablehlo<transpose {trans}>, "
            f"unit_diagonal = {flag(unit_diagonal)}"
        )
        return builder.op("triangular_solve", (a, b), b.aval, attributes)

    def jvp(self, primals, tangents, **params):
        # op(a) x = b gives op(a) dx = db − op(da) x.
        (a, _), (da, db) = primals, tangents
        x = self.bind(*primals, **params)
        if type(da) is Zero:
            return x, db if type(db) is Zero else self.bind(a, db, **params)
        triangle = lower_triangle if params["lower"] else upper_triangle
        da = triangle(da, strict=params["unit_diagonal"])
        if params["transpose_a"]:
            da = transposed(da)
        if params["conjugate_a"]:
            da = conjugate(da)
        moved = matmul(da, x) if params["left_side"] else matmul(x, da)
        right = neg(moved) if type(db) is Zero else sub(db, moved)
        return x, self.bind(a, right, **params)

    def transpose(self, cotangent, a, b, *, transpose_a, **params):
        if is_linear(a):
            raise TypeError(
                "triangular_solve is not linear in the matrix a, so that it has no transpose in it"
            )
        return None, self.bind(a, cotangent, transpose_a=not transpose_a, **params)

    def batch(self, operands, batch_axes, **params):
        (a, b), (a_axis, b_axis) = operands, batch_axes
        if a_axis is not None:
            return super().batch(operands, batch_axes, **params)
        # One matrix for all right sides: they become more columns, or rows, of one system.
        ndim = aval_of(b).ndim - 1
        place = ndim if params["left_side"] else ndim - 1
        b = move_axis(b, b_axis, place)
        shape = aval_of(b).shape
        merged = (*shape[: place - 1], shape[place - 1] * shape[place], *shape[place + 1 :])
        return reshape(self.bind(a, reshape(b, merged), **params), shape), place


def _conjugated(builder, a):
    part = a.aval.with_dtype(np.zeros((), a.dtype).real.dtype)
    parts = [builder.op(name, (a,), part) for name in ("real", "imag")]
    return builder.op("complex", (parts[0], builder.op("negate", (parts[1],), part)), a.aval)


class SymmetricProduct(Batched):
    """alpha a aᵀ + beta c"""

    name = "symmetric_product"

    def infer(self, a, c, *, alpha, beta):
        check_matrix(self.name, a, "a_matrix")
        check_matrix(self.name, c, "c_matrix")
        check_same(self.name, a_matrix=a, c_matrix=c)
        if is_complex(a.dtype):
            raise TypeError(f"symmetric_product takes real matrices, got a_matrix {a.str_short()}")
        if c.shape != (*a.shape[:-1], a.shape[-2]):
            raise ValueError(
                f"symmetric_product: for a_matrix of shape {a.shape}, c_matrix must have shape "
                f"{(*a.shape[:-1], a.shape[-2])}, but has {c.shape}"
            )
        return c

    def host(self, a, c, *, alpha, beta):
        return a.dtype.type(alpha) * (a @ np.swapaxes(a, -1, -2)) + c.dtype.type(beta) * c

    def host_work(self, a, c, **params):
        return a.size * a.shape[-2] // 8 + c.size

    def lower(self, builder, a, c, *, alpha, beta):
        batch = ", ".join(map(str, range(a.ndim - 2)))
        axes = (
            f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{batch}], "
            f"rhs_batching_dimensions = [{batch}], lhs_contracting_dimensions = [{a.ndim - 1}], "
            f"rhs_contracting_dimensions = [{a.ndim - 1}]>, "
            "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"
        )
        product = builder.op("dot_general", (a, a), c.aval, axes)
        terms = [
            builder.op("multiply", (builder.constant(factor, c.aval), x), c.aval)
            for factor, x in ((alpha, product), (beta, c))
        ]
        return builder.op("add", terms, c.aval)

    def jvp(self, primals, tangents, *, alpha, beta):
        out = self.bind(*primals, alpha=alpha, beta=beta)
        (a, _), (da, dc) = primals, tangents
        tangent = dc if type(dc) is Zero else mul(dc, np.array(beta, aval_of(dc).dtype))
        if type(da) is not Zero:
            half = matmul(da, transposed(a))
            both = mul(add(half, transposed(half)), np.array(alpha, aval_of(a).dtype))
            tangent = both if type(tangent) is Zero else add(tangent, both)
        return out, tangent


class CholeskyUpdate(Batched):
    """The upper triangular factor of rᵀ r + w wᵀ with a positive diagonal, for upper triangular r."""

    name = "cholesky_update"

    def infer(self, r, w):
        check_matrix(self.name, r, "r_matrix", square=True)
        check_dtype(self.name, w, "w_vector")
        check_same(self.name, r_matrix=r, w_vector=w)
        if w.shape != r.shape[:-1]:
            raise ValueError(
                f"cholesky_update: for r_matrix of shape {r.shape}, w_vector must have shape {r.shape[:-1]}, "
                f"but has {w.shape}"
            )
        if is_complex(r.dtype):
            raise TypeError(f"cholesky_update takes real arrays, got r_matrix {r.str_short()}")
        return r

    def host(self, r, w):
        """Givens rotations, row by row, that turn w into zeros."""
        r, w = np.triu(r), w.copy()
        for k in range(r.shape[-1]):
            length = np.hypot(r[..., k, k], w[..., k])
            cosine, sine = ((part / length)[..., None] for part in (r[..., k, k], w[..., k]))
            row = r[..., k, :].copy()
            r[..., k, :] = cosine * row + sine * w
            w = cosine * w - sine * row
        return np.triu(r)

    def host_work(self, r, w):
        return r.size + 4000 * r.shape[-1]

    def lower(self, builder, r, w):
        """The factor of [r; wᵀ] = Q R, with the signs of its rows chosen."""
        if not r.aval.size:
            return r
        batch = r.ndim - 2
        n = r.shape[-1]
        zero = builder.constant(0, r.aval)
        index = r.aval.with_dtype(INT32)
        below = builder.compare("GT", builder.iota(index, batch), builder.iota(index, batch + 1))
        diagonal = builder.compare("EQ", builder.iota(index, batch), builder.iota(index, batch + 1))
        row = builder.reshape(w, (*w.shape[:-1], 1, n))
        tall = r.aval.with_shape((*r.shape[:-2], n + 1, n))
        tall = builder.op(
            "concatenate", (builder.select(below, zero, r), row), tall, f"dimension = {batch} : i64"
        )
        results = [tall.aval, w.aval]
        if builder.platform == "cpu" or is_gpu(builder):
            target = lapack_target("geqrf", r.dtype)
            if is_gpu(builder):
                target = gpu_target(builder, "solver_geqrf_ffi")
            packed = call_kernel(builder, target, (tall,), results, batch, "", [(0, 0)])[0]
        else:
            packed = emit_geqrf(builder, tall)[0]
        top = emit_window(builder, packed, r.shape)
        top = builder.select(below, zero, top)
        signs = builder.reduce(
            builder.op("sign", (builder.select(diagonal, top, zero),), r.aval), 0, "add", (batch + 1,)
        )
        return builder.op("multiply", (top, builder.broadcast(signs, r.shape, range(batch + 1))), r.aval)

    def jvp(self, primals, tangents):
        r, w = primals
        dr, dw = map(materialize, tangents)
        out = self.bind(r, w)
        wide = (*aval_of(w).shape[:-1], 1, aval_of(w).shape[-1])
        stacked = concatenate([upper_triangle(r), reshape(w, wide)], aval_of(r).ndim - 2)
        moved = concatenate([upper_triangle(dr), reshape(dw, wide)], aval_of(r).ndim - 2)
        half = matmul(transposed(moved), stacked)
        return out, transposed(cholesky_tangent(transposed(out), add(half, transposed(half))))


cholesky_p = Cholesky()
triangular_solve_p = TriangularSolve()
symmetric_product_p = SymmetricProduct()
cholesky_update_p = CholeskyUpdate()


def cholesky(x, symmetrize_input: bool = True):
    """The lower triangular L with x = L Lᴴ."""
    if symmetrize_input:
        x = symmetrize(x)
    return cholesky_p.bind(x)


def symmetrize(x):
    """(x + xᴴ) / 2"""
    return mul(add(x, adjoint(x)), np.array(0.5, aval_of(x).dtype))


def triangular_solve(
    a,
    b,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
):
    """The solution of a triangular system, whose right side may be a vector; see `TriangularSolve`."""
    conjugate_a = conjugate_a and is_complex(aval_of(a).dtype)
    vector = aval_of(b).ndim == aval_of(a).ndim - 1
    if vector:
        shape = aval_of(b).shape
        extra = (*shape, 1) if left_side else (*shape[:-1], 1, *shape[-1:])
        axes = range(len(shape)) if left_side else (*range(len(shape) - 1), len(shape))
        b = broadcast_in_dim(b, extra, axes)
    out = triangular_solve_p.bind(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )
    return reshape(out, shape) if vector else out


def symmetric_product(a, c, alpha: float = 1.0, beta: float = 0.0):
    """alpha a aᵀ + beta c"""
    return symmetric_product_p.bind(a, c, alpha=float(alpha), beta=float(beta))


cholesky_update = cholesky_update_p.bind
