"""Cases for `purax.primitives.linalg.orthogonal`."""

import numpy as np

from purax.primitives.linalg.orthogonal import geqp3_p, geqrf_p, householder_product_p, ormqr_p, qr_p
from purax.testing.case import case, numbers
from tests.cases.triangular import DTYPES

SHAPES = ((3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 1, 2, 3))
EMPTY = ((0, 0), (0, 2), (2, 0), (0, 2, 2))


def packed(shape, dtype=np.float32):
    """Reflections as `geqrf` gives them, for each matrix."""
    return geqrf_p.host(numbers(shape, dtype))


def multiply(shape, c, dtype=np.float32, **params):
    # Reflections come from one call, so that variants of them, as numbers, are still reflections in form.
    return case(
        ormqr_p, *packed(shape, dtype), numbers(c, dtype), linear=(2,), differentiable=False, **params
    )


CASES = [
    *[case(geqrf_p, numbers((3, 2), dtype), differentiable=False) for dtype in DTYPES],
    *[case(geqrf_p, numbers(shape), differentiable=False) for shape in (*SHAPES, *EMPTY)],
    *[case(geqp3_p, numbers((3, 2), dtype), differentiable=False) for dtype in DTYPES],
    *[case(geqp3_p, numbers(shape), differentiable=False) for shape in (*SHAPES, *EMPTY)],
    *[case(householder_product_p, *packed((3, 2), dtype), differentiable=False) for dtype in DTYPES],
    *[
        case(householder_product_p, *packed(shape), differentiable=False)
        for shape in ((3, 3), (2, 4, 2), (0, 0), (2, 0), (0, 2, 2))
    ],
    case(householder_product_p, numbers((3, 2)), np.zeros(0, np.float32), differentiable=False),
    case(householder_product_p, numbers((4, 3)), numbers((2,)), differentiable=False),
    *[multiply((4, 2), (4, 3), dtype, left=True, transpose=False) for dtype in DTYPES],
    *[
        multiply((4, 2), (4, 3) if left else (3, 4), np.complex64, left=left, transpose=transpose)
        for left in (False, True)
        for transpose in (False, True)
    ],
    multiply((2, 3, 3), (2, 3, 1), left=True, transpose=True),
    multiply((3, 0), (3, 2), left=True, transpose=False),
    multiply((3, 2), (3, 0), left=True, transpose=False),
    *[
        case(qr_p, numbers(shape, dtype), pivoting=pivoting, full_matrices=full_matrices)
        for shape in SHAPES
        for dtype in (np.float32, np.complex64)
        for pivoting in (False, True)
        for full_matrices in (False, True)
    ],
    *[
        case(qr_p, numbers((3, 2), dtype), pivoting=False, full_matrices=False)
        for dtype in (np.float64, np.complex128)
    ],
    *[
        case(
            qr_p,
            np.zeros(shape, np.float32),
            differentiable=False,
            pivoting=pivoting,
            full_matrices=full_matrices,
        )
        for shape in EMPTY
        for pivoting in (False, True)
        for full_matrices in (False, True)
    ],
    case(qr_p, np.zeros((2, 2), np.float32), differentiable=False, pivoting=False, full_matrices=True),
]
