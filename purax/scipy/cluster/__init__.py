"""Clusters, as `jax.scipy.cluster`."""

# ruff: noqa: F401
from purax.scipy.cluster import vq
