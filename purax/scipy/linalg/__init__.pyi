# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Linear algebra, as `jax.scipy.linalg`."""

from purax.scipy.linalg.decompositions import cho_factor as cho_factor
from purax.scipy.linalg.decompositions import cholesky as cholesky
from purax.scipy.linalg.decompositions import eigh as eigh
from purax.scipy.linalg.decompositions import eigh_tridiagonal as eigh_tridiagonal
from purax.scipy.linalg.decompositions import hessenberg as hessenberg
from purax.scipy.linalg.decompositions import lu as lu
from purax.scipy.linalg.decompositions import lu_factor as lu_factor
from purax.scipy.linalg.decompositions import polar as polar
from purax.scipy.linalg.decompositions import qr as qr
from purax.scipy.linalg.decompositions import qr_multiply as qr_multiply
from purax.scipy.linalg.decompositions import rsf2csf as rsf2csf
from purax.scipy.linalg.decompositions import schur as schur
from purax.scipy.linalg.decompositions import svd as svd
from purax.scipy.linalg.functions import expm as expm
from purax.scipy.linalg.functions import expm_frechet as expm_frechet
from purax.scipy.linalg.functions import funm as funm
from purax.scipy.linalg.functions import sqrtm as sqrtm
from purax.scipy.linalg.solving import cho_solve as cho_solve
from purax.scipy.linalg.solving import det as det
from purax.scipy.linalg.solving import inv as inv
from purax.scipy.linalg.solving import lu_solve as lu_solve
from purax.scipy.linalg.solving import solve as solve
from purax.scipy.linalg.solving import solve_sylvester as solve_sylvester
from purax.scipy.linalg.solving import solve_triangular as solve_triangular
from purax.scipy.linalg.special_matrices import block_diag as block_diag
from purax.scipy.linalg.special_matrices import circulant as circulant
from purax.scipy.linalg.special_matrices import companion as companion
from purax.scipy.linalg.special_matrices import convolution_matrix as convolution_matrix
from purax.scipy.linalg.special_matrices import dft as dft
from purax.scipy.linalg.special_matrices import fiedler as fiedler
from purax.scipy.linalg.special_matrices import fiedler_companion as fiedler_companion
from purax.scipy.linalg.special_matrices import hadamard as hadamard
from purax.scipy.linalg.special_matrices import hankel as hankel
from purax.scipy.linalg.special_matrices import helmert as helmert
from purax.scipy.linalg.special_matrices import hilbert as hilbert
from purax.scipy.linalg.special_matrices import invhilbert as invhilbert
from purax.scipy.linalg.special_matrices import invpascal as invpascal
from purax.scipy.linalg.special_matrices import leslie as leslie
from purax.scipy.linalg.special_matrices import pascal as pascal
from purax.scipy.linalg.special_matrices import toeplitz as toeplitz

