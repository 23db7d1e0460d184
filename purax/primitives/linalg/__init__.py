"""Linear algebra: factorizations, eigenvalues, triangular and tridiagonal systems.

A `lower` rule asks the builder for its platform ("cpu", "gpu" for CUDA, "rocm", "tpu", …). Factorizations call LAPACK
on the CPU (`lapack`) and the libraries of a GPU; other platforms get formulations in plain StableHLO, written as
formulas on batches of matrices (`matrix_formulas`): `elimination`, `reflections` (Householder) and `rotations`
(Jacobi). What a GPU's libraries lack is done by the host, called from the program (`lapack.call_host`). XLA's
compiler for GPUs refuses, or dies of, some dtypes: `products.contraction` and `products.convolution_on_accelerators`
write those in terms of others.
"""
