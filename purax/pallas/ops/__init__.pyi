# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Operations that other libraries take from `jax.experimental.pallas.ops`: the same results, by XLA programs."""

from purax.pallas.ops import gpu as gpu
from purax.pallas.ops import tpu as tpu

