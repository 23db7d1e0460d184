"""Linear algebra, as `jax.scipy.linalg`."""

# ruff: noqa: F401
from purax.scipy.linalg.decompositions import (
    cho_factor,
    cholesky,
    eigh,
    eigh_tridiagonal,
    hessenberg,
    lu,
    lu_factor,
    polar,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from purax.scipy.linalg.functions import expm, expm_frechet, funm, sqrtm
from purax.scipy.linalg.solving import cho_solve, det, inv, lu_solve, solve, solve_sylvester, solve_triangular
from purax.scipy.linalg.special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
