"""Sparse arrays, as `jax.experimental.sparse`: BCOO with all its operations, and the compressed forms.

Sparse arrays are pytrees, so that they pass through `jit` and `vmap`; `sparse.grad` differentiates with respect to the
elements they store; `sparsify` runs functions for dense arrays on them.
"""

# ruff: noqa: F401
from purax.errors import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning
from purax.experimental.sparse import linalg
from purax.experimental.sparse.ad import grad, jacfwd, jacobian, jacrev, value_and_grad
from purax.experimental.sparse.base import JAXSparse
from purax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_update_layout,
)
from purax.experimental.sparse.compressed import (
    BCSR,
    COO,
    CSC,
    CSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from purax.experimental.sparse.creation import empty, eye, random_bcoo, todense
from purax.experimental.sparse.operators import install as _install
from purax.experimental.sparse.products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_reduce_sum,
)
from purax.experimental.sparse.shaping import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)
from purax.experimental.sparse.transform import sparsify

_install()
