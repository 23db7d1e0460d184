"""Products of groups of rows with a matrix for each group."""

from purax.pallas.ops.tpu.megablox.gmm import gmm

__all__ = ["gmm"]
