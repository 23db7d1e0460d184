"""Cases for `purax.primitives.linalg.eigen`.

Finite differences along arbitrary directions are no test for `eigh`, whose derivative is that of a Hermitian matrix:
tests/numpy/test_linalg.py tries it on Hermitian ones.
"""

import numpy as np

from purax.primitives.linalg.eigen import EighImplementation, EigImplementation, eig_p, eigh_p
from purax.testing.case import case, numbers
from tests.cases.triangular import DTYPES, positive

EMPTY = ((0, 0), (0, 2, 2), (2, 0, 0))
special = np.array([[[1, np.nan], [np.nan, 3]], [[1, 2], [2, 1]]], np.float32)


def hermitian(x, lower=True, algorithm=None):
    return case(eigh_p, x, differentiable=False, tolerance=1e-5, lower=lower, algorithm=algorithm)


def general(x, left=True, right=True, differentiable=False, implementation=None):
    return case(
        eig_p,
        x,
        differentiable=differentiable,
        tolerance=2e-5,
        compute_left_eigenvectors=left,
        compute_right_eigenvectors=right,
        enable_eigvec_derivs=True,
        implementation=implementation,
    )


# A pair of complex eigenvalues and a real one; no zeros, at which reflections change sign.
rotation = np.array([[1, 2, 0.1], [-3, 1, 1], [0.3, 0.5, 3]], np.float32)

CASES = [
    *[hermitian(positive((3, 3), dtype)) for dtype in DTYPES],
    *[hermitian(numbers((3, 3), dtype), lower=False) for dtype in (np.float32, np.complex64)],
    hermitian(positive((2, 1, 3, 3)), algorithm=EighImplementation.QR),
    hermitian(special),
    hermitian(np.eye(2, dtype=np.float32)),
    *[hermitian(np.zeros(shape, np.float32)) for shape in EMPTY],
    *[general(numbers((3, 3), dtype), differentiable=True) for dtype in DTYPES],
    *[
        general(numbers((2, 3, 3), np.complex64), left, right, differentiable=True)
        for left in (False, True)
        for right in (False, True)
    ],
    *[
        general(rotation, left, right, differentiable=True)
        for left in (False, True)
        for right in (False, True)
    ],
    general(numbers((2, 1, 3, 3)), implementation=EigImplementation.LAPACK),
    general(special),
    general(np.eye(2, dtype=np.float32)),
    *[general(np.zeros(shape, np.float32)) for shape in EMPTY],
]
