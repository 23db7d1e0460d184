"""Cases for `purax.primitives.linalg.singular_values`.

Phases of complex vectors, and the vectors that complete a basis, are a matter of choice: their derivatives do not agree
with finite differences. tests/numpy/test_linalg.py tries functions that do not depend on the choice.
"""

import numpy as np

from purax.primitives.linalg.singular_values import SvdAlgorithm, svd_p
from purax.testing.case import case, numbers
from tests.cases.triangular import DTYPES

SHAPES = ((3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 1, 2, 3))
EMPTY = ((0, 0), (0, 2), (2, 0), (0, 2, 2), (2, 0, 0))
special = np.array([[[1, np.nan], [np.inf, 3]], [[1, 2], [3, 1]]], np.float32)


def decompose(x, differentiable=True, full_matrices=False, compute_uv=True, algorithm=None):
    return case(
        svd_p,
        x,
        differentiable=differentiable,
        tolerance=1e-5,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        algorithm=algorithm,
    )


CASES = [
    *[decompose(numbers((3, 3), dtype), np.dtype(dtype).kind == "f") for dtype in DTYPES],
    *[
        decompose(
            numbers(shape, dtype),
            not compute_uv or (dtype is np.float32 and not full_matrices),
            full_matrices,
            compute_uv,
        )
        for shape in SHAPES
        for dtype in (np.float32, np.complex64)
        for full_matrices in (False, True)
        for compute_uv in (False, True)
    ],
    *[
        decompose(numbers((3, 2)), algorithm=algorithm)
        for algorithm in (SvdAlgorithm.DEFAULT, SvdAlgorithm.QR)
    ],
    decompose(numbers((2, 3)), compute_uv=False, algorithm=SvdAlgorithm.QR),
    decompose(special, differentiable=False),
    decompose(np.eye(2, dtype=np.float32), differentiable=False),
    decompose(np.zeros((2, 2), np.float32), differentiable=False),
    *[
        decompose(np.zeros(shape, dtype), False, full_matrices, compute_uv)
        for shape in EMPTY
        for dtype in (np.float32, np.complex64)
        for full_matrices in (False, True)
        for compute_uv in (False, True)
    ],
]
