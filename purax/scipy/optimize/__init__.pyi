# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Minimization of functions of a vector, as `jax.scipy.optimize`."""

from purax.scipy.optimize.minimization import OptimizeResults as OptimizeResults
from purax.scipy.optimize.minimization import minimize as minimize

