"""Cases for `purax.primitives.linalg.condensed`."""

import numpy as np

from purax.primitives.linalg.condensed import hessenberg_p, schur_p, tridiagonal_p
from purax.testing.case import case, numbers
from tests.cases.triangular import DTYPES, positive

EMPTY = ((0, 0), (0, 2, 2), (2, 0, 0))
special = np.array([[[1, np.nan], [np.nan, 3]], [[1, 2], [3, np.inf]], [[1, 2], [2, 1]]], np.float32)


def triangular(x, vectors=True):
    return case(
        schur_p,
        x,
        differentiable=False,
        tolerance=1e-5,
        compute_schur_vectors=vectors,
        sort_eig_vals=False,
        select_callable=None,
    )


CASES = [
    *[triangular(numbers((3, 3), dtype), vectors) for dtype in DTYPES for vectors in (False, True)],
    triangular(numbers((2, 1, 3, 3))),
    triangular(special),
    triangular(special.astype(np.complex64), False),
    *[triangular(np.zeros(shape, np.float32)) for shape in EMPTY],
    *[case(hessenberg_p, numbers((4, 4), dtype), differentiable=False) for dtype in DTYPES],
    *[
        case(hessenberg_p, numbers(shape), differentiable=False)
        for shape in ((2, 1, 3, 3), (1, 1), (2, 2), *EMPTY)
    ],
    *[
        case(tridiagonal_p, positive((4, 4), dtype), differentiable=False, lower=lower)
        for dtype in DTYPES
        for lower in (False, True)
    ],
    *[
        case(tridiagonal_p, numbers(shape), differentiable=False, lower=True)
        for shape in ((2, 1, 3, 3), (1, 1), (2, 1, 1), (2, 2), *EMPTY)
    ],
]
