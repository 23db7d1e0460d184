"""Solving tridiagonal systems."""

from __future__ import annotations

import sys

import numpy as np

from purax.core.avals import Zero, aval_of
from purax.core.primitive import is_linear
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.elementwise import mul, neg
from purax.primitives.linalg.elimination import emit_tridiagonal_solve
from purax.primitives.linalg.lapack import (
    batch_work,
    call_kernel,
    check_dtype,
    check_same,
    emit_window,
    gpu_target,
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
from purax.primitives.linalg.matrices import Batched, column_vector
from purax.primitives.shape.broadcasting import move_axis
from purax.primitives.shape.reshaping import reshape
from purax.primitives.shape.slicing import pad
from purax.xla.stablehlo import integers


class TridiagonalSolve(Batched):
    """The x with T x = b for T with the diagonals dl (below), d and du (above).

    Row i of T is dl[i], d[i], du[i]; dl[0] and du[-1] are not read. The result is NaN if T is singular; if
    `perturb_singular`, pivots close to zero count as the unit of rounding times the largest element of the factor U,
    and which multiple of a null vector comes out depends on the order of elimination.
    """

    name = "tridiagonal_solve"

    def infer(self, dl, d, du, b, *, perturb_singular):
        for argument, x in (("dl", dl), ("d", d), ("du", du), ("b", b)):
            check_dtype(self.name, x, argument)
        check_same(self.name, dl=dl, d=d, du=du, b=b)
        if d.ndim < 1 or dl.shape != d.shape or du.shape != d.shape or b.shape[:-1] != d.shape:
            raise ValueError(
                "tridiagonal_solve: dl, d and du must have one shape [..., m] and b the shape [..., m, k], got "
                f"{dl.shape}, {d.shape}, {du.shape} and {b.shape}"
            )
        return b

    def host(self, dl, d, du, b, *, perturb_singular):
        one = _solve_perturbed if perturb_singular else _solve
        return over_batch(one, (dl, d, du, b), (1, 1, 1, 2), lambda: (aval_of(b),))[0]

    def host_work(self, dl, d, du, b, *, perturb_singular):
        if perturb_singular:  # the kernel's choice, also eagerly
            return sys.maxsize
        return batch_work(d, 1) + b.size

    def lower(self, builder, dl, d, du, b, *, perturb_singular):
        if not b.aval.size:
            return b
        batch = d.ndim - 1
        operands = (dl, d, du, b)
        if builder.platform == "cpu":
            if perturb_singular:
                return call_kernel(builder, "tridiagonal_solve_perturbed_ffi", operands, [b.aval], batch)[0]
            results = [dl.aval, d.aval, du.aval, b.aval, scalars(d.aval, batch)]
            aliases = [(i, i) for i in range(4)]
            target = lapack_target("gtsv", b.dtype)
            *_, x, info = call_kernel(builder, target, operands, results, batch, "", aliases)
            return nan_unless(builder, succeeded(builder, info), x)[0]
        if not is_gpu(builder):
            return emit_tridiagonal_solve(builder, dl, d, du, b, perturb_singular)
        if perturb_singular:
            target = gpu_target(builder, "_tridiagonal_solve_perturbed")
            return call_kernel(builder, target, operands, [b.aval], batch)[0]
        missing = max(3 - d.shape[-1], 0)  # the routine wants three rows: rows of the identity are added
        if missing:
            fill = (0, 1, 0, 0)
            operands = [
                _emit_longer(builder, x, batch, missing, value)
                for x, value in zip(operands, fill, strict=True)
            ]
        target = gpu_target(builder, "sparse_gtsv2_ffi")
        x = call_kernel(builder, target, operands, [operands[3].aval], batch, "", [(0, 3)])[0]
        return emit_window(builder, x, b.shape)

    def jvp(self, primals, tangents, **params):
        # T x = b gives T dx = db − dT x.
        dl, d, du, _ = primals
        *diagonals, right = tangents
        x = self.bind(*primals, **params)
        for tangent, shift in zip(diagonals, (1, 0, -1), strict=True):
            if type(tangent) is not Zero:
                shape = aval_of(x).shape
                moved = mul(column_vector(tangent, shape), _shifted(x, shift, len(shape) - 2))
                right = neg(moved) if type(right) is Zero else sub(right, moved)
        return x, right if type(right) is Zero else self.bind(dl, d, du, right, **params)

    def transpose(self, cotangent, dl, d, du, b, **params):
        if any(map(is_linear, (dl, d, du))):
            raise TypeError("tridiagonal_solve is linear in the right side b only")
        axis = aval_of(d).ndim - 1
        return (
            None,
            None,
            None,
            self.bind(_shifted(du, 1, axis), d, _shifted(dl, -1, axis), cotangent, **params),
        )

    def batch(self, operands, batch_axes, **params):
        *diagonals, b = operands
        if any(axis is not None for axis in batch_axes[:3]):
            return super().batch(operands, batch_axes, **params)
        last = aval_of(b).ndim - 1  # one matrix for all right sides, which become more columns
        b = move_axis(b, batch_axes[3], last)
        shape = aval_of(b).shape
        merged = reshape(b, (*shape[:-2], shape[-2] * shape[-1]))
        return reshape(self.bind(*diagonals, merged, **params), shape), last


def _shifted(x, by: int, axis: int):
    """Element i of the result is element i − by of `x` along `axis`, or zero."""
    if not by:
        return x
    config = [(by, -by, 0) if a == axis else (0, 0, 0) for a in range(aval_of(x).ndim)]
    return pad(x, np.zeros((), aval_of(x).dtype), config)


def _emit_longer(builder, x, axis: int, count: int, value: float):
    shape = (*x.shape[:axis], x.shape[axis] + count, *x.shape[axis + 1 :])
    none = [0] * x.ndim
    high = [count if a == axis else 0 for a in range(x.ndim)]
    fill = builder.constant(value, x.aval.with_shape(()))
    attributes = (
        f"edge_padding_low = {integers(none)}, edge_padding_high = {integers(high)}, "
        f"interior_padding = {integers(none)}"
    )
    return builder.op("pad", (x, fill), x.aval.with_shape(shape), attributes)


def _solve(dl, d, du, b):
    if not b.size:
        return (b,)
    if d.shape[0] == 1:
        return (nan_like(b) if d[0] == 0 else b / d,)
    *_, x, info = routine("gtsv", b.dtype)(dl[1:], d, du[:-1], b)
    return (nan_like(b) if info else x,)


def _solve_perturbed(dl, d, du, b):
    """Gaussian elimination with pivots that are large in their row, and those close to zero moved away from it."""
    n = d.shape[0]
    if not b.size:
        return (b,)
    below, pivots, above, b = dl[1:].copy(), d.copy(), du[:-1].copy(), b.copy()
    second = np.zeros(max(n - 2, 0), d.dtype)
    for i in range(n - 1):
        own = abs(pivots[i]) + abs(above[i])
        other = abs(below[i]) + abs(pivots[i + 1]) + (abs(above[i + 1]) if i < n - 2 else 0)
        if below[i] == 0 or abs(pivots[i]) * other >= abs(below[i]) * own:
            if pivots[i] != 0:
                factor = below[i] / pivots[i]
                pivots[i + 1] -= factor * above[i]
                b[i + 1] -= factor * b[i]
        else:
            factor = pivots[i] / below[i]
            pivots[i] = below[i]
            pivots[i + 1], above[i] = above[i] - factor * pivots[i + 1], pivots[i + 1]
            if i < n - 2:
                second[i] = above[i + 1]
                above[i + 1] = -factor * above[i + 1]
            b[[i, i + 1]] = b[i + 1], b[i] - factor * b[i + 1]
    limits = np.finfo(real_dtype(d.dtype))
    largest = max(float(np.abs(x).max(initial=0)) for x in (pivots, above, second))
    least = max(float(limits.eps) * largest, float(limits.tiny))
    small = np.abs(pivots) < least
    pivots[small] = np.where(pivots[small].real < 0, -least, least)
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            b[i] -= above[i] * b[i + 1]
        if i < n - 2:
            b[i] -= second[i] * b[i + 2]
        b[i] /= pivots[i]
    return (b,)


tridiagonal_solve_p = TridiagonalSolve()


def tridiagonal_solve(dl, d, du, b, perturb_singular: bool = False):
    """The solution of a tridiagonal system; see `TridiagonalSolve`."""
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))
