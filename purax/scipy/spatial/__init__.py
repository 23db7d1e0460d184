"""Geometry, as `jax.scipy.spatial`."""

# ruff: noqa: F401
from purax.scipy.spatial import transform
