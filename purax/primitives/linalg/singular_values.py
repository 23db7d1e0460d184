"""The singular value decomposition x = u diag(s) vt.

Derivatives of the vectors divide by the differences of squared singular values, and for rectangular matrices by the
singular values: they are infinite or NaN where one is repeated, or zero. Those of the values alone are always finite.
"""

from __future__ import annotations

import enum

import numpy as np

from purax.core.avals import ShapedArray, aval_of
from purax.primitives.elementwise.arithmetic import div, sub
from purax.primitives.elementwise.conversion import complex_, imag
from purax.primitives.elementwise.elementwise import add, mul, neg
from purax.primitives.linalg.lapack import (
    batch_work,
    call_kernel,
    check_matrix,
    code,
    emit_window,
    finite_only,
    flag,
    gpu_target,
    is_complex,
    is_gpu,
    lapack_target,
    nan_like,
    nan_unless,
    native_batch,
    over_batch,
    real_dtype,
    routine,
    scalars,
    succeeded,
    unavailable,
)
from purax.primitives.linalg.matrices import (
    Batched,
    adjoint,
    column_vector,
    columns_of,
    diagonal_of,
    identity_like,
    like,
    matmul,
    real_part,
    row_vector,
    rows_of,
    scale_columns,
    scale_rows,
    without_diagonal,
)
from purax.primitives.linalg.rotations import emit_svd
from purax.primitives.shape.reshaping import concatenate
from purax.xla import native
from purax.xla.stablehlo import integers

_JACOBI_LIMIT = 1024  # Jacobi's method is the fastest on a GPU for matrices up to this size


class SvdAlgorithm(enum.Enum):
    """Algorithms for the singular value decomposition.

    On the CPU, DEFAULT is divide and conquer; on GPUs, JACOBI for small and QR for large matrices.
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


_ON_CPU = {
    None: "gesdd",
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}


class SVD(Batched):
    """Descending singular values, and, if `compute_uv`, left vectors as columns and right vectors as conjugated rows.

    Params:
        full_matrices: whether the vectors are completed to bases.
        compute_uv: whether the vectors are returned.
        algorithm: a `SvdAlgorithm`, or None.
    """

    name = "svd"
    multiple_results = True

    def infer(self, x, *, full_matrices, compute_uv, algorithm):
        check_matrix(self.name, x)
        *batch, rows, columns = x.shape
        k = min(rows, columns)
        values = ShapedArray((*batch, k), real_dtype(x.dtype))
        if not compute_uv:
            return [values]
        u = ShapedArray((*batch, rows, rows if full_matrices else k), x.dtype)
        return [values, u, ShapedArray((*batch, columns if full_matrices else k, columns), x.dtype)]

    def host(self, x, *, full_matrices, compute_uv, algorithm):
        name = _cpu_routine(algorithm)

        def infer(x):
            return self.infer(
                aval_of(x), full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm
            )

        def one(x):
            if not x.size:
                return tuple(
                    np.eye(*a.shape, dtype=a.dtype) if a.ndim == 2 else np.zeros(0, a.dtype) for a in infer(x)
                )
            if not np.isfinite(x).all():  # with infinity, LAPACK does not end
                return tuple(nan_like(np.empty(a.shape, a.dtype)) for a in infer(x))
            u, s, vt, info = routine(name, x.dtype)(x, compute_uv, full_matrices)
            results = (s, u, vt) if compute_uv else (s,)
            return tuple(map(nan_like, results)) if info else results

        return over_batch(one, (x,), (2,), lambda: infer(x))

    def host_work(self, x, **params):
        return batch_work(x)

    def lower(self, builder, x, *, full_matrices, compute_uv, algorithm):
        avals = self.infer(x.aval, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm)
        if not x.aval.size:
            return [
                _emit_identity(builder, aval) if aval.ndim == x.ndim else builder.constant(0, aval)
                for aval in avals
            ]
        if builder.platform == "cpu":
            _cpu_routine(algorithm)
            count = native_batch(builder, x, by_rotations=True)
            if count and algorithm in (None, SvdAlgorithm.DEFAULT):
                rows, columns = x.shape[-2:]
                k = min(rows, columns)
                left, right = (rows, columns) if full_matrices else (k, k)
                sizes = {"rows": rows, "columns": columns, "left": left, "right": right}
                return native.call(builder, "svd", [x], avals, batch_axes=x.ndim - 2, batch=count, **sizes)
            x, finite = finite_only(builder, x)
            *values, info = _emit_on_cpu(builder, x, full_matrices, compute_uv, algorithm)
            valid = builder.op("and", (finite, succeeded(builder, info)), finite.aval)
        elif is_gpu(builder):
            x, finite = finite_only(builder, x)
            *values, info = _emit_on_gpu(builder, x, full_matrices, compute_uv, algorithm)
            valid = builder.op("and", (finite, succeeded(builder, info)), finite.aval)
        else:
            if algorithm not in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.JACOBI):
                raise NotImplementedError(
                    f"svd: the algorithm {algorithm} is not available on {builder.platform}; leave it out"
                )
            return emit_svd(builder, x, full_matrices, compute_uv)
        return nan_unless(builder, valid, *values[: len(avals)])

    def jvp(self, primals, tangents, *, full_matrices, compute_uv, algorithm):
        (x,), (dx,) = primals, tangents
        s, *vectors = self.bind(
            x, full_matrices=full_matrices and compute_uv, compute_uv=True, algorithm=algorithm
        )
        u, vt = vectors
        k = aval_of(s).shape[-1]
        u1, v1 = columns_of(u, 0, k), adjoint(rows_of(vt, 0, k))
        inner = matmul(adjoint(u1), matmul(dx, v1))
        ds = real_part(diagonal_of(inner))
        if not compute_uv:
            return [s], [ds]
        du1, dv1 = _vector_tangents(s, u1, v1, inner, dx)
        du, dv = _completed(u, u1, du1), _completed(adjoint(vt), v1, dv1)
        return [s, u, vt], [ds, du, adjoint(dv)]


def _vector_tangents(s, u, v, inner, dx):
    """The tangents of the first vectors; `inner` is uᴴ dx v.

    Both uᴴ du and vᴴ dv are skew-Hermitian, and uᴴ dx v = (uᴴ du) S + dS + S (vᴴ dv)ᴴ; on their diagonals, which are
    imaginary and not determined, vᴴ dv is chosen to be zero.
    """
    rows, columns = aval_of(dx).shape[-2:]
    k = aval_of(s).shape[-1]
    shape = aval_of(inner).shape
    across, down = row_vector(s, shape), column_vector(s, shape)
    gaps = mul(sub(across, down), add(across, down))
    gaps = like(add(gaps, identity_like(gaps)), inner)
    values = like(s, inner)
    right, left = scale_columns(inner, values), scale_rows(values, inner)
    du = matmul(u, without_diagonal(div(add(right, adjoint(right)), gaps)))
    dv = matmul(v, without_diagonal(div(add(left, adjoint(left)), gaps)))
    if is_complex(aval_of(inner).dtype):
        turn = div(imag(diagonal_of(inner)), s)
        du = add(du, scale_columns(u, complex_(np.zeros((), aval_of(turn).dtype), turn)))
    if rows > k:
        du = add(du, _divided(sub(matmul(dx, v), matmul(u, inner)), values))
    if columns > k:
        dv = add(dv, _divided(sub(matmul(adjoint(dx), u), matmul(v, adjoint(inner))), values))
    return du, dv


def _divided(a, v):
    """a diag(v)⁻¹"""
    return div(a, row_vector(v, aval_of(a).shape))


def _completed(u, u1, du1):
    """The tangent of a whole basis u = [u₁ u₂] from that of u₁; inside of the span of u₂ it is chosen to be zero."""
    size, k = aval_of(u).shape[-1], aval_of(u1).shape[-1]
    if size == k:
        return du1
    rest = neg(matmul(u1, matmul(adjoint(du1), columns_of(u, k, size))))
    return concatenate([du1, rest], aval_of(u).ndim - 1)


# --- kernels


def _cpu_routine(algorithm: SvdAlgorithm | None) -> str:
    if algorithm not in _ON_CPU:
        raise NotImplementedError(
            f"svd: the algorithm {algorithm} is not available on cpu; leave it out or take QR"
        )
    return _ON_CPU[algorithm]


def _basis_avals(x: ShapedArray, full: bool) -> tuple[ShapedArray, ShapedArray, ShapedArray]:
    *batch, rows, columns = x.shape
    k = min(rows, columns)
    return (
        ShapedArray((*batch, k), real_dtype(x.dtype)),
        ShapedArray((*batch, rows, rows if full else k), x.dtype),
        ShapedArray((*batch, columns if full else k, columns), x.dtype),
    )


def _emit_on_cpu(builder, x, full_matrices, compute_uv, algorithm):
    target = lapack_target(_cpu_routine(algorithm), x.dtype)
    mode = ("A" if full_matrices else "S") if compute_uv else "N"
    batch = x.ndim - 2
    results = [x.aval, *_basis_avals(x.aval, full_matrices and compute_uv), scalars(x.aval, batch)]
    return call_kernel(builder, target, (x,), results, batch, f"mode = {code(mode)}", [(0, 0)])[1:]


def _emit_on_gpu(builder, x, full_matrices, compute_uv, algorithm):
    batch = x.ndim - 2
    rows, columns = x.shape[-2:]
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        algorithm = SvdAlgorithm.JACOBI if max(rows, columns) <= _JACOBI_LIMIT else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER:
        raise unavailable("svd by divide and conquer", builder.platform)
    if (
        algorithm is SvdAlgorithm.QR and rows < columns
    ):  # the routine wants tall matrices: xᵀ = vtᵀ diag(s) uᵀ
        s, u, vt, info = _emit_on_gpu(
            builder, _emit_transposed(builder, x), full_matrices, compute_uv, algorithm
        )
        return (
            [s, _emit_transposed(builder, vt), _emit_transposed(builder, u), info]
            if compute_uv
            else [s, u, vt, info]
        )
    full = full_matrices or algorithm is SvdAlgorithm.JACOBI
    s, u, vt = _basis_avals(x.aval, full)
    config = f"compute_uv = {flag(compute_uv)}, full_matrices = {flag(full)}"
    if algorithm is SvdAlgorithm.QR:
        if not compute_uv:
            u = vt = scalars(x.aval, batch, x.dtype)
        results = [x.aval, s, u, vt, scalars(x.aval, batch)]
        config += ", transposed = false"
        target = gpu_target(builder, "solver_gesvd_ffi")
        return call_kernel(builder, target, (x,), results, batch, config, [(0, 0)])[1:]
    # The other routines give v itself, as columns.
    name = "solver_gesvdj_ffi" if algorithm is SvdAlgorithm.JACOBI else "solver_gesvdp_ffi"
    v = vt.with_shape((*vt.shape[:-2], vt.shape[-1], vt.shape[-2]))
    results = [x.aval, s, u, v, scalars(x.aval, batch)]
    _, s, u, v, info = call_kernel(builder, gpu_target(builder, name), (x,), results, batch, config, [(0, 0)])
    if not compute_uv:
        return [s, u, v, info]
    vt = _emit_transposed(builder, v)
    if is_complex(x.dtype):
        part = vt.aval.with_dtype(real_dtype(x.dtype))
        real, imaginary = (builder.op(name, (vt,), part) for name in ("real", "imag"))
        vt = builder.op("complex", (real, builder.op("negate", (imaginary,), part)), vt.aval)
    _, u_aval, vt_aval = _basis_avals(x.aval, full_matrices)
    return [s, emit_window(builder, u, u_aval.shape), emit_window(builder, vt, vt_aval.shape), info]


def _emit_transposed(builder, x):
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    aval = x.aval.with_shape(tuple([x.shape[axis] for axis in order]))
    return builder.op("transpose", (x,), aval, f"permutation = {integers(order)}")


def _emit_identity(builder, aval: ShapedArray):
    index = aval.with_dtype(np.dtype(np.int32))
    equal = builder.compare("EQ", builder.iota(index, aval.ndim - 2), builder.iota(index, aval.ndim - 1))
    return builder.convert(equal, aval.dtype)


svd_p = SVD()


def svd(
    x, full_matrices: bool = True, compute_uv: bool = True, algorithm: SvdAlgorithm | None = None
) -> list:
    """Singular values, and left and right vectors if `compute_uv`; see `SVD`."""
    return svd_p.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv), algorithm=algorithm)
