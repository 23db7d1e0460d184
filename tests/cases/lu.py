"""Cases for `purax.primitives.linalg.lu`.

`lu_solve` is differentiated as the solution for a matrix whose factors it is given, which finite differences in one
operand are not; tests/numpy/test_linalg.py tries it on matrices with their factors.
"""

import numpy as np

from purax.primitives.linalg.lu import lu_p, lu_pivots_to_permutation_p, lu_solve_p
from purax.testing.case import case, numbers
from tests.cases.triangular import DTYPES, regular


def solve(shape, columns, dtype=np.float32, transpose_a=False):
    """With factors of which only the form matters, and a permutation."""
    a = regular(shape, dtype)
    order = np.broadcast_to(np.roll(np.arange(shape[-1], dtype=np.int32), 1), shape[:-1])
    b = numbers((*shape[:-1], columns), dtype)
    return case(lu_solve_p, a, a, order, b, linear=(3,), differentiable=False, transpose_a=transpose_a)


special = np.array([[1, np.nan, 2], [np.inf, 0, 1], [1, 1, 1]], np.float32)

CASES = [
    *[case(lu_p, numbers((3, 3), dtype)) for dtype in DTYPES],
    *[
        case(lu_p, numbers(shape, dtype))
        for shape in ((4, 2), (2, 4))
        for dtype in (np.float32, np.complex64)
    ],
    case(lu_p, numbers((2, 1, 3, 3))),
    case(lu_p, numbers((2, 4, 3), np.complex64)),
    case(lu_p, numbers((40, 40)), differentiable=False, tolerance=2e-5),
    case(lu_p, np.ones((2, 2), np.float32), differentiable=False),
    case(lu_p, np.zeros((2, 2), np.float32), differentiable=False),
    case(lu_p, special, differentiable=False),
    *[
        case(lu_p, np.zeros(shape, np.float32), differentiable=False)
        for shape in ((0, 0), (0, 2), (2, 0), (0, 2, 2))
    ],
    case(lu_pivots_to_permutation_p, np.array([2, 2, 2], np.int32), permutation_size=3),
    case(lu_pivots_to_permutation_p, np.array([[2, 3, 2], [0, 1, 4]], np.int32), permutation_size=5),
    case(lu_pivots_to_permutation_p, np.array([1, 1], np.int64), permutation_size=2),
    case(lu_pivots_to_permutation_p, np.zeros((2, 0), np.int32), permutation_size=2),
    case(lu_pivots_to_permutation_p, np.zeros((0, 2), np.int32), permutation_size=2),
    *[solve((3, 3), 2, dtype, transpose_a) for dtype in DTYPES for transpose_a in (False, True)],
    *[solve((2, 1, 3, 3), 1, np.float32, transpose_a) for transpose_a in (False, True)],
    solve((0, 0), 2),
    solve((2, 2), 0),
    solve((0, 2, 2), 2),
]
