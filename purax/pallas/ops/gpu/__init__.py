"""Operations that kernels for GPUs compute in jax."""
