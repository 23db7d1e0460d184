# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Products of groups of rows with a matrix for each group."""

from purax.pallas.ops.tpu.megablox.gmm import gmm as gmm

__all__ = ['gmm']
