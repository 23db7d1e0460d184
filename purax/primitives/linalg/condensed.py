"""Matrices brought to a condensed form by unitary similarity: Schur's triangular form, Hessenberg's form and the
tridiagonal one. They have no derivatives.
"""

from __future__ import annotations

import numpy as np

from purax.core.avals import ShapedArray, aval_of
from purax.primitives.linalg.lapack import (
    batch_work,
    call_host,
    call_kernel,
    check_matrix,
    code,
    finite_only,
    flag,
    gpu_target,
    is_complex,
    is_gpu,
    lapack_target,
    nan_like,
    nan_unless,
    over_batch,
    real_dtype,
    routine,
    scalars,
    succeeded,
)
from purax.primitives.linalg.matrices import Batched
from purax.primitives.linalg.reflections import emit_hessenberg, emit_tridiagonal


class Schur(Batched):
    """The triangular T with x = Z T Zᴴ and, if `compute_schur_vectors`, Z.

    For real x, T has blocks of two rows and columns on its diagonal for pairs of complex eigenvalues.
    """

    name = "schur"
    multiple_results = True

    def infer(self, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
        check_matrix(self.name, x, square=True)
        if sort_eig_vals or select_callable is not None:
            raise NotImplementedError(
                "schur: sort_eig_vals and select_callable are not supported; leave them out"
            )
        return [x.strip_weak_type()] * (2 if compute_schur_vectors else 1)

    def host(self, x, *, compute_schur_vectors, **params):
        def one(x):
            if not x.size:
                return (x,) * (2 if compute_schur_vectors else 1)
            if not np.isfinite(x).all():
                return (nan_like(x),) * (2 if compute_schur_vectors else 1)
            t, *_, vectors, _, info = routine("gees", x.dtype)(_no_choice, x, compute_schur_vectors)
            results = (t, vectors) if compute_schur_vectors else (t,)
            return tuple(map(nan_like, results)) if info else results

        return over_batch(
            one,
            (x,),
            (2,),
            lambda: self.infer(aval_of(x), compute_schur_vectors=compute_schur_vectors, **params),
        )

    def host_work(self, x, **params):
        return batch_work(x)

    def lower(self, builder, x, *, compute_schur_vectors, **params):
        if not x.aval.size:
            return [x] * (2 if compute_schur_vectors else 1)
        if builder.platform != "cpu":
            params["compute_schur_vectors"] = compute_schur_vectors
            return call_host(builder, self, (x,), params)
        batch = x.ndim - 2
        values = [x.aval.with_shape(x.shape[:-1])] * (1 if is_complex(x.dtype) else 2)
        results = [x.aval, x.aval, *values, scalars(x.aval, batch), scalars(x.aval, batch)]
        config = f"mode = {code('V' if compute_schur_vectors else 'N')}, sort = {code('N')}"
        safe, finite = finite_only(builder, x)
        t, vectors, *_, info = call_kernel(
            builder, lapack_target("gees", x.dtype), (safe,), results, batch, config, [(0, 0)]
        )
        valid = builder.op("and", (finite, succeeded(builder, info)), finite.aval)
        return nan_unless(builder, valid, *[t, vectors][: 2 if compute_schur_vectors else 1])


def _no_choice(*values):
    """LAPACK asks for a choice of eigenvalues even if it does not sort them."""
    return None


class Hessenberg(Batched):
    """The Hessenberg form of `x`, Householder vectors under it, and their factors."""

    name = "hessenberg"
    multiple_results = True

    def infer(self, x):
        check_matrix(self.name, x, square=True)
        return [x.strip_weak_type(), x.with_shape((*x.shape[:-2], max(x.shape[-1] - 1, 0))).strip_weak_type()]

    def host(self, x):
        def one(x):
            if len(x) < 2:
                return x, np.zeros(0, x.dtype)
            form, taus, info = routine("gehrd", x.dtype)(x)
            return (nan_like(form), nan_like(taus)) if info else (form, taus)

        return over_batch(one, (x,), (2,), lambda: self.infer(aval_of(x)))

    def host_work(self, x):
        return batch_work(x)

    def lower(self, builder, x):
        avals = self.infer(x.aval)
        n = x.shape[-1]
        if not x.aval.size or n < 2:
            return [x, builder.constant(0, avals[1])]
        if builder.platform != "cpu":
            return emit_hessenberg(builder, x)
        batch = x.ndim - 2
        results = [*avals, scalars(x.aval, batch)]
        config = f"high = {n} : i32, low = 1 : i32"
        target = lapack_target("gehrd", x.dtype)
        form, taus, info = call_kernel(builder, target, (x,), results, batch, config, [(0, 0)])
        return nan_unless(builder, succeeded(builder, info), form, taus)


class Tridiagonal(Batched):
    """The tridiagonal form of Hermitian matrices, of which one triangle is read: packed, its diagonal, the other one,
    and the factors of Householder reflections.
    """

    name = "tridiagonal"
    multiple_results = True

    def infer(self, x, *, lower):
        check_matrix(self.name, x, square=True)
        *batch, n, _ = x.shape
        real = real_dtype(x.dtype)
        rest = (*batch, max(n - 1, 0))
        return [
            x.strip_weak_type(),
            ShapedArray((*batch, n), real),
            ShapedArray(rest, real),
            ShapedArray(rest, x.dtype),
        ]

    def host(self, x, *, lower):
        def one(x):
            if not x.size:
                return tuple(
                    [np.zeros(aval.shape, aval.dtype) for aval in self.infer(aval_of(x), lower=lower)]
                )
            *results, info = routine("sytrd", x.dtype)(x, lower)
            if x.shape[0] == 1:  # there is no other diagonal, but LAPACK's arrays are never empty
                results = [results[0], results[1], results[2][:0], results[3][:0]]
            return tuple(map(nan_like, results)) if info else tuple(results)

        return over_batch(one, (x,), (2,), lambda: self.infer(aval_of(x), lower=lower))

    def host_work(self, x, **params):
        return batch_work(x)

    def lower(self, builder, x, *, lower):
        avals = self.infer(x.aval, lower=lower)
        if not x.aval.size:
            return [x, *[builder.constant(0, aval) for aval in avals[1:]]]
        if builder.platform == "cpu":
            target, config = lapack_target("sytrd", x.dtype), f"uplo = {code('L' if lower else 'U')}"
        elif is_gpu(builder):
            target, config = gpu_target(builder, "solver_sytrd_ffi"), f"lower = {flag(lower)}"
        else:
            return emit_tridiagonal(builder, x, lower)
        batch = x.ndim - 2
        results = [*avals, scalars(x.aval, batch)]
        *values, info = call_kernel(builder, target, (x,), results, batch, config, [(0, 0)])
        return nan_unless(builder, succeeded(builder, info), *values)


schur_p = Schur()
hessenberg_p = Hessenberg()
tridiagonal_p = Tridiagonal()


def schur(x, compute_schur_vectors: bool = True) -> list:
    """See `Schur`."""
    return schur_p.bind(
        x, compute_schur_vectors=bool(compute_schur_vectors), sort_eig_vals=False, select_callable=None
    )


def hessenberg(x) -> list:
    """See `Hessenberg`."""
    return hessenberg_p.bind(x)


def tridiagonal(x, lower: bool = True) -> list:
    """See `Tridiagonal`."""
    return tridiagonal_p.bind(x, lower=bool(lower))
