# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Geometry, as `jax.scipy.spatial`."""

from purax.scipy.spatial import transform as transform

