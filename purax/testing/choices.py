"""What results say whatever the platform chose: signs and phases of vectors, the order of general eigenvalues, which of
the numbers that are not finite stands for a failure, and which of several updates of one element comes last.

Two platforms are compared by these, and by the results themselves for all other primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from purax.primitives.shape.gather_scatter import scatter_add_p
from purax.testing.case import Case

# Their NaNs and infinities mark failures: a division by zero, or a matrix that has no such factors.
_MATRICES = (
    "cholesky cholesky_update eig eigh geqp3 geqrf hessenberg householder_product lu lu_solve ormqr qr schur svd "
    "symmetric_product triangular_solve tridiagonal tridiagonal_solve"
).split()


def without_choices(case: Case, results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a case, or what does not depend on choices in their place."""
    function = _INVARIANTS.get(case.primitive.name) or _ORDERS.get(case.primitive.name)
    found = list(results) if function is None else function(case, *results)
    return [failures_alike(x) for x in found] if is_factorization(case) else found


def is_free(case: Case) -> bool:
    """Whether the results of a case are a matter of choice, and so are their derivatives."""
    return case.primitive.name in _INVARIANTS


def is_factorization(case: Case) -> bool:
    """Whether numbers that are not finite mark failures in its results."""
    return case.primitive.name in _MATRICES


def failures_alike(x: np.ndarray) -> np.ndarray:
    """`x` with NaN in place of all that is not finite."""
    if x.dtype.kind not in "fc":
        return x
    nan = complex(np.nan, np.nan) if x.dtype.kind == "c" else np.nan
    return np.where(np.isfinite(x), x, np.asarray(nan, x.dtype))


def _wide(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.complex128 if x.dtype.kind == "c" else np.float64)


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2).conj()


def _gram(v: np.ndarray) -> np.ndarray:
    """vᴴ v, the identity for unitary v."""
    return (_adjoint(_wide(v)) @ _wide(v)).astype(v.dtype)


def _eigh(case: Case, v: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    product = (_wide(v) * _wide(w)[..., None, :]) @ _adjoint(_wide(v))
    return [w, product.astype(v.dtype), _gram(v)]


def _svd(case: Case, s: np.ndarray, *vectors: np.ndarray) -> list[np.ndarray]:
    if not vectors:
        return [s]
    u, vt = vectors
    k = s.shape[-1]
    product = (_wide(u)[..., :k] * _wide(s)[..., None, :]) @ _wide(vt)[..., :k, :]
    return [s, product.astype(u.dtype), _gram(u), _gram(_adjoint(vt))]


def _power_sums(w: np.ndarray) -> list[np.ndarray]:
    """Σ wᵢ, Σ wᵢ² and Σ wᵢ³, whatever the order."""
    return [(_wide(w) ** power).sum(-1).astype(w.dtype) for power in (1, 2, 3)]


def _eig(case: Case, w: np.ndarray, *vectors: np.ndarray) -> list[np.ndarray]:
    a = _wide(case.operands[0])
    sides = [
        side
        for side, wanted in (
            ((_adjoint(a), w.conj()), case.params["compute_left_eigenvectors"]),
            ((a, w), case.params["compute_right_eigenvectors"]),
        )
        if wanted
    ]
    found = _power_sums(w)
    for v, (matrix, values) in zip(vectors, sides, strict=True):
        residual = matrix @ _wide(v) - _wide(v) * _wide(values)[..., None, :]
        found += [residual.astype(v.dtype), np.linalg.norm(_wide(v), axis=-2).astype(w.real.dtype)]
    return found


def _schur(case: Case, t: np.ndarray, *vectors: np.ndarray) -> list[np.ndarray]:
    powers = [_wide(t), _wide(t) @ _wide(t)]
    traces = [np.trace(x, axis1=-2, axis2=-1).astype(t.dtype) for x in powers]
    below = np.tril(t, -2)  # zeros, of which LAPACK and others have the sign that they like
    found = [*traces, np.where(np.isnan(below), below, np.abs(below)).astype(t.dtype)]
    for z in vectors:
        found += [(_wide(z) @ _wide(t) @ _adjoint(_wide(z))).astype(t.dtype), _gram(z)]
    return found


def _lu(case: Case, factors: np.ndarray, pivots: np.ndarray, order: np.ndarray) -> list[np.ndarray]:
    """Which row is the largest one is a matter of choice if there is NaN or infinity."""
    if np.isfinite(case.operands[0]).all():
        return [factors, pivots, order]
    return [np.isfinite(factors).all((-1, -2)), np.sort(order, -1)]


def _scatter(case: Case, result: np.ndarray) -> list[np.ndarray]:
    """Which update of an element is the last one is a matter of choice, if there are several."""
    operand, indices, updates = case.operands
    counted = np.zeros(operand.shape, np.int32), indices, np.ones(updates.shape, np.int32)
    return [np.where(scatter_add_p.host(*counted, **case.params) > 1, np.zeros((), result.dtype), result)]


_ORDERS: dict[str, Callable[..., list[np.ndarray]]] = {"scatter": _scatter}
_INVARIANTS: dict[str, Callable[..., list[np.ndarray]]] = {
    "eigh": _eigh, "svd": _svd, "eig": _eig, "schur": _schur, "lu": _lu,
}  # fmt: skip
