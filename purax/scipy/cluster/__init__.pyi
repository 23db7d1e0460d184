# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Clusters, as `jax.scipy.cluster`."""

from purax.scipy.cluster import vq as vq

