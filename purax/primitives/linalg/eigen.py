"""Eigenvalues and eigenvectors of Hermitian and of general matrices.

Derivatives of eigenvectors divide by the differences of eigenvalues: they are infinite or NaN where an eigenvalue is
repeated, and those of the eigenvalues alone are then those of some order of them. `eigh` reads one triangle; its
derivative takes the tangent to be Hermitian, as the matrix is.
"""

from __future__ import annotations

import enum

import numpy as np

from purax.core.avals import ShapedArray, aval_of
from purax.primitives.elementwise.arithmetic import abs_, div, sub
from purax.primitives.elementwise.conversion import complex_, imag
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import eq, select
from purax.primitives.linalg.lapack import (
    GPU_PREFIXES,
    batch_work,
    call_kernel,
    check_matrix,
    code,
    complex_dtype,
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
from purax.primitives.linalg.lu import solve
from purax.primitives.linalg.matrices import (
    Batched,
    adjoint,
    column_sums,
    column_vector,
    conjugate,
    diagonal_of,
    identity_like,
    like,
    matmul,
    real_part,
    row_vector,
    scale_columns,
    without_diagonal,
)
from purax.primitives.linalg.rotations import emit_eigh
from purax.primitives.reductions.reduction import argmax
from purax.primitives.shape.reshaping import iota
from purax.xla import native

_INT32 = np.dtype(np.int32)


class EighImplementation(enum.Enum):
    """Algorithms for the eigenvalues of Hermitian matrices; JACOBI is for GPUs and TPUs, QDWH for TPUs."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """Libraries for the eigenvalues of general matrices; CUSOLVER and MAGMA are for GPUs."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


# --- Hermitian matrices


class Eigh(Batched):
    """Eigenvectors, as columns, and ascending eigenvalues of Hermitian matrices, of which one triangle is read.

    Params:
        lower: which triangle.
        algorithm: an `EighImplementation`, or None for the platform's own choice.
    """

    name = "eigh"
    multiple_results = True

    def infer(self, x, *, lower, algorithm):
        check_matrix(self.name, x, square=True)
        return [x.strip_weak_type(), ShapedArray(x.shape[:-1], real_dtype(x.dtype))]

    def host(self, x, *, lower, algorithm):
        _check_algorithm("cpu", algorithm)

        def one(x):
            if not x.size:
                return x, np.zeros(0, real_dtype(x.dtype))
            w, v, info = routine("syevd", x.dtype)(x, 1, lower)
            return (nan_like(v), nan_like(w)) if info or np.isnan(w).any() else (v, w)

        return over_batch(one, (x,), (2,), lambda: self.infer(aval_of(x), lower=lower, algorithm=algorithm))

    def host_work(self, x, **params):
        return batch_work(x)

    def lower(self, builder, x, *, lower, algorithm):
        avals = self.infer(x.aval, lower=lower, algorithm=algorithm)
        if not x.aval.size:
            return [x, builder.constant(0, avals[1])]
        batch = x.ndim - 2
        if builder.platform == "cpu":
            _check_algorithm("cpu", algorithm)
            count = native_batch(builder, x, by_rotations=True)
            if count and algorithm is None:
                sizes = {"batch": count, "n": x.shape[-1]}
                return native.call(builder, "eigh", [x], avals, batch_axes=batch, lower=lower, **sizes)
            target = lapack_target("syevd", x.dtype)
            config = f"mode = {code('V')}, uplo = {code('L' if lower else 'U')}"
        elif is_gpu(builder):
            _check_algorithm("gpu", algorithm)
            target = gpu_target(builder, "solver_syevd_ffi")
            number = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}[algorithm]
            config = f"algorithm = {number} : ui8, lower = {flag(lower)}"
        else:
            _check_algorithm(builder.platform, algorithm)
            return emit_eigh(builder, x, lower)
        results = [*avals, scalars(x.aval, batch)]
        finite = None
        if is_gpu(builder):  # what its library makes of other numbers is not known
            index = x.aval.with_dtype(_INT32)
            rows, columns = (builder.iota(index, batch + axis) for axis in (0, 1))
            is_read = builder.compare("GE" if lower else "LE", rows, columns)
            read = builder.select(is_read, x, builder.constant(0, x.aval))
            x, finite = finite_only(builder, read)
        v, w, info = call_kernel(builder, target, (x,), results, batch, config, [(0, 0)])
        # If infinity is in a matrix, LAPACK finds NaN for its eigenvalues, and unit vectors.
        are_numbers = builder.reduce(builder.compare("EQ", w, w), True, "and", (batch,))
        valid = builder.op("and", (succeeded(builder, info), are_numbers), are_numbers.aval)
        if finite is not None:
            valid = builder.op("and", (valid, finite), valid.aval)
        return nan_unless(builder, valid, v, w)

    def jvp(self, primals, tangents, **params):
        # vᴴ dx v = diag(dw) + (vᴴ dv) ∘ (wⱼ − wᵢ), where the diagonal of vᴴ dv is chosen to be zero.
        v, w = self.bind(*primals, **params)
        inner = matmul(adjoint(v), matmul(tangents[0], v))
        dv = matmul(v, without_diagonal(div(inner, like(_differences(w), inner))))
        return [v, w], [dv, real_part(diagonal_of(inner))]


def _differences(w):
    """wⱼ − wᵢ, and 1 where i = j."""
    shape = (*aval_of(w).shape, aval_of(w).shape[-1])
    differences = sub(row_vector(w, shape), column_vector(w, shape))
    return add(differences, identity_like(differences))


def _check_algorithm(platform: str, algorithm: EighImplementation | None) -> None:
    known = {"cpu": (None, EighImplementation.QR)}.get(platform, (None, EighImplementation.JACOBI))
    if algorithm not in known and not (platform in GPU_PREFIXES and algorithm is EighImplementation.QR):
        raise NotImplementedError(
            f"eigh: the implementation {algorithm} is not available on {platform}; leave it out"
        )


# --- general matrices


class Eig(Batched):
    """Eigenvalues, left and right eigenvectors of square matrices, the vectors as columns and if asked for.

    Eigenvectors have length 1 and a real largest component.

    Params:
        compute_left_eigenvectors, compute_right_eigenvectors: which vectors to return.
        enable_eigvec_derivs: whether vectors may be differentiated, which is right only if no eigenvalue is repeated
            and no vector has two largest components.
        implementation: an `EigImplementation`, or None.
    """

    name = "eig"
    multiple_results = True

    def infer(
        self,
        x,
        *,
        compute_left_eigenvectors,
        compute_right_eigenvectors,
        enable_eigvec_derivs,
        implementation,
    ):
        check_matrix(self.name, x, square=True)
        dtype = complex_dtype(x.dtype)
        vectors = [ShapedArray(x.shape, dtype)] * (compute_left_eigenvectors + compute_right_eigenvectors)
        return [ShapedArray(x.shape[:-1], dtype), *vectors]

    def host(self, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **params):
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        flags = {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right}
        return over_batch(
            lambda x: _eig_host(x, left, right), (x,), (2,), lambda: self.infer(aval_of(x), **flags, **params)
        )

    def host_work(self, x, **params):
        return batch_work(x)

    def lower(
        self, builder, x, *, compute_left_eigenvectors, compute_right_eigenvectors, implementation, **params
    ):
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        batch = x.ndim - 2
        real = real_dtype(x.dtype)
        is_real = not is_complex(x.dtype)
        values = ShapedArray(x.shape[:-1], complex_dtype(x.dtype))
        vectors = ShapedArray(x.shape, values.dtype)
        if not x.aval.size:
            return [builder.constant(0, aval) for aval in [values, *[vectors] * (left + right)]]
        parts = [values.with_dtype(real)] * 2 if is_real else [values]
        if builder.platform == "cpu":
            if implementation not in (None, EigImplementation.LAPACK):
                raise NotImplementedError(f"eig: the implementation {implementation} is not available on cpu")
            target = lapack_target("geev", x.dtype)
            config = (
                f"compute_left = {code('V' if left else 'N')}, compute_right = {code('V' if right else 'N')}"
            )
        elif is_gpu(builder) and implementation is not EigImplementation.CUSOLVER:
            magma = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}[
                implementation
            ]
            target = gpu_target(builder, "hybrid_eig_real" if is_real else "hybrid_eig_comp")
            config = f'left = {flag(left)}, magma = "{magma}", right = {flag(right)}'
        else:
            raise unavailable(self.name, builder.platform, x.aval)
        results = [*parts, vectors, vectors, scalars(x.aval, batch)]
        x, finite = finite_only(builder, x) if is_gpu(builder) else (x, None)
        *parts, vl, vr, info = call_kernel(builder, target, (x,), results, batch, config)
        w = builder.op("complex", parts, values) if is_real else parts[0]
        valid = succeeded(builder, info)
        if finite is not None:
            valid = builder.op("and", (valid, finite), valid.aval)
        return nan_unless(builder, valid, w, *[vl] * left, *[vr] * right)

    def jvp(self, primals, tangents, *, compute_left_eigenvectors, compute_right_eigenvectors, **params):
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        if (left or right) and not params["enable_eigvec_derivs"]:
            raise NotImplementedError(
                "eigenvectors of general matrices are not differentiated by default: their derivatives are right only "
                "if no eigenvalue is repeated and no vector has two components of the largest size. If that holds, use "
                "lax.linalg.eig(x, enable_eigvec_derivs=True); for eigenvalues alone, jnp.linalg.eigvals(x)."
            )
        flags = {"compute_left_eigenvectors": left, "compute_right_eigenvectors": True}
        w, *vectors = self.bind(*primals, **flags, **params)
        dx = like(tangents[0], w)
        dw, dvr = _eig_tangents(w, vectors[-1], dx)
        out, out_tangents = [w], [dw]
        if left:
            out.append(vectors[0])
            out_tangents.append(_eig_tangents(conjugate(w), vectors[0], adjoint(dx))[1])
        if right:
            out.append(vectors[-1])
            out_tangents.append(dvr)
        return out, out_tangents


def _eig_host(x: np.ndarray, left: bool, right: bool) -> tuple[np.ndarray, ...]:
    dtype = complex_dtype(x.dtype)
    n = x.shape[0]
    if not n or not np.isfinite(x).all():
        fill = complex(np.nan, np.nan)
        return (np.full(n, fill, dtype), *[np.full((n, n), fill, dtype)] * (left + right))
    geev = routine("geev", x.dtype)
    if is_complex(x.dtype):
        w, vl, vr, info = geev(x, left, right)
    else:
        re, im, vl, vr, info = geev(x, left, right)
        w = np.empty(n, dtype)
        w.real, w.imag = re, im
        vl, vr = (_paired(v, im, dtype) if wanted else v for v, wanted in ((vl, left), (vr, right)))
    results = (w, *[vl] * left, *[vr] * right)
    return tuple(map(nan_like, results)) if info else results


def _paired(v: np.ndarray, imaginary: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Complex vectors from LAPACK's real ones: columns j and j + 1 of a conjugate pair are real and imaginary part."""
    out = v.astype(dtype)
    if not imaginary.any():
        return out
    first = np.flatnonzero(imaginary > 0)
    out[:, first] = v[:, first] + 1j * v[:, first + 1]
    out[:, first + 1] = out[:, first].conj()
    return out


def _eig_tangents(w, v, dx):
    """The tangents of eigenvalues and of right eigenvectors of length 1 with a real largest component."""
    inner = solve(v, matmul(dx, v))
    free = matmul(v, without_diagonal(div(inner, _differences(w))))
    # A multiple of each vector may be added: it keeps the length, and the largest component real.
    lengths = real_part(column_sums(mul(conjugate(v), free)))
    unit = sub(free, scale_columns(v, like(lengths, v)))
    shape = aval_of(v).shape
    axis = len(shape) - 2
    largest = row_vector(argmax(abs_(v), axis, _INT32), shape)
    is_largest = eq(iota(_INT32, shape, axis), largest)
    zero = np.zeros((), aval_of(v).dtype)
    turned = div(*(column_sums(select(is_largest, a, zero)) for a in (unit, v)))
    part = imag(turned)
    turn = complex_(np.zeros((), aval_of(part).dtype), part)
    return diagonal_of(inner), sub(unit, scale_columns(v, turn))


eigh_p = Eigh()
eig_p = Eig()


def eigh(x, lower: bool = True, algorithm: EighImplementation | None = None) -> list:
    """Eigenvectors and eigenvalues of Hermitian matrices; see `Eigh`."""
    return eigh_p.bind(x, lower=bool(lower), algorithm=algorithm)


def eig(
    x,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
) -> list:
    """Eigenvalues, left and right eigenvectors; see `Eig`."""
    return eig_p.bind(
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )
