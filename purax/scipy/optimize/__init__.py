"""Minimization of functions of a vector, as `jax.scipy.optimize`."""

# ruff: noqa: F401
from purax.scipy.optimize.minimization import OptimizeResults, minimize
