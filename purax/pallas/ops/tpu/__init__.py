"""Operations that kernels for TPUs compute in jax."""
