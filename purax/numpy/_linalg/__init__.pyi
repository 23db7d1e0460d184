# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Products, factorizations and solvers behind `purax.numpy` and `purax.numpy.linalg`."""

