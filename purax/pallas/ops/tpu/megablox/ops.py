"""`gmm`, which is differentiated as it is."""

from purax.pallas.ops.tpu.megablox.gmm import gmm

__all__ = ["gmm"]
