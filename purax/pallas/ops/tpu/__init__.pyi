# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Operations that kernels for TPUs compute in jax."""

from purax.pallas.ops.tpu import megablox as megablox
from purax.pallas.ops.tpu import splash_attention as splash_attention

