# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Operations that kernels for GPUs compute in jax."""

