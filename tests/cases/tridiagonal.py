"""Cases for `purax.primitives.linalg.tridiagonal`."""

import numpy as np

from purax.primitives.linalg.tridiagonal import tridiagonal_solve_p
from purax.testing.case import case, numbers
from tests.cases.triangular import DTYPES


def solve(shape, columns, dtype=np.float32, perturb_singular=False):
    below, above = numbers(shape, dtype, seed=1), numbers(shape, dtype, seed=2)
    middle = (numbers(shape, dtype) + 3).astype(dtype)
    b = numbers((*shape, columns), dtype)
    return case(
        tridiagonal_solve_p,
        below,
        middle,
        above,
        b,
        linear=(3,),
        tolerance=1e-5,
        perturb_singular=perturb_singular,
    )


def singular(*diagonals, perturb_singular):
    diagonals = [np.array(d, np.float32) for d in diagonals]
    b = np.ones((*diagonals[0].shape, 1), np.float32)
    return case(tridiagonal_solve_p, *diagonals, b, differentiable=False, perturb_singular=perturb_singular)


CASES = [
    *[solve((4,), 2, dtype) for dtype in DTYPES],
    *[solve((4,), 2, dtype, True) for dtype in (np.float32, np.float64)],
    solve((2, 1, 3), 2),
    solve((2, 5), 1, np.complex64),
    solve((1,), 2),
    solve((2,), 2),
    solve((0,), 2),
    solve((3,), 0),
    solve((0, 3), 2),
    singular([0, 1], [1, 0], [0, 0], perturb_singular=False),
    singular([0, 0], [0, 0], [0, 0], perturb_singular=True),
    singular([0], [0], [0], perturb_singular=False),
]
