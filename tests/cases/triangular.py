"""Cases for `purax.primitives.linalg.triangular`."""

import numpy as np

from purax.primitives.linalg.triangular import (
    cholesky_p,
    cholesky_update_p,
    symmetric_product_p,
    triangular_solve_p,
)
from purax.testing.case import case, numbers

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def positive(shape, dtype=np.float32, seed=0):
    """Hermitian, positive definite matrices."""
    x = numbers(shape, dtype, seed=seed)
    n = shape[-1]
    return (x @ x.swapaxes(-1, -2).conj() / max(n, 1) + n * np.eye(n)).astype(dtype)


def regular(shape, dtype=np.float32, seed=0):
    """Matrices far from singular."""
    return (numbers(shape, dtype, seed=seed) + 4 * np.eye(*shape[-2:])).astype(dtype)


def solve(a, b, differentiable=True, **params):
    flags = dict.fromkeys(("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal"), False)
    return case(triangular_solve_p, a, b, linear=(1,), differentiable=differentiable, **{**flags, **params})


indefinite = np.array([[[1, 2], [2, 1]], [[2, 1], [1, 2]]], np.float32)

CASES = [
    *[case(cholesky_p, positive((3, 3), dtype)) for dtype in DTYPES],
    case(cholesky_p, positive((2, 1, 4, 4), np.float32)),
    case(cholesky_p, positive((2, 3, 3), np.complex64)),
    case(cholesky_p, indefinite, differentiable=False),
    case(cholesky_p, indefinite.astype(np.complex64), differentiable=False),
    case(cholesky_p, np.zeros((0, 0), np.float32), differentiable=False),
    case(cholesky_p, np.zeros((0, 2, 2), np.float32), differentiable=False),
    case(cholesky_p, np.zeros((2, 0, 0), np.float32)),
    *[solve(regular((3, 3), dtype), numbers((2, 3), dtype)) for dtype in DTYPES],
    *[
        solve(
            regular((3, 3), np.complex64),
            numbers((3, 2), np.complex64),
            left_side=True,
            lower=lower,
            transpose_a=transpose_a,
            conjugate_a=conjugate_a,
        )
        for lower in (False, True)
        for transpose_a in (False, True)
        for conjugate_a in (False, True)
    ],
    solve(regular((3, 3)), numbers((2, 3)), lower=True, unit_diagonal=True, transpose_a=True),
    solve(regular((3, 3)), numbers((3, 2)), left_side=True, unit_diagonal=True),
    solve(regular((2, 3, 3)), numbers((2, 3, 1)), left_side=True, lower=True),
    solve(regular((2, 2, 3, 3), np.complex64), numbers((2, 2, 1, 3), np.complex64), conjugate_a=True),
    solve(
        np.array([[1, 2], [0, 0]], np.float32), np.ones((2, 1), np.float32), False, left_side=True
    )._replace(linear=()),
    solve(np.zeros((0, 0), np.float32), np.zeros((0, 2), np.float32), left_side=True),
    solve(regular((2, 2)), np.zeros((0, 2), np.float32)),
    solve(np.zeros((0, 2, 2), np.float32), np.zeros((0, 2, 1), np.float32), left_side=True),
    *[
        case(
            symmetric_product_p,
            numbers(shape, dtype),
            numbers((*shape[:-1], shape[-2]), dtype),
            alpha=2.0,
            beta=-0.5,
        )
        for dtype in (np.float32, np.float64)
        for shape in ((3, 2), (2, 2, 4), (2, 0), (0, 3))
    ],
    *[
        case(cholesky_update_p, regular((3, 3), dtype), numbers((3,), dtype))
        for dtype in (np.float32, np.float64)
    ],
    case(cholesky_update_p, regular((2, 4, 4)), numbers((2, 4)), tolerance=1e-5),
    case(cholesky_update_p, np.zeros((0, 0), np.float32), np.zeros(0, np.float32)),
]
