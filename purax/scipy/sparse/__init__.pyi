# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Large linear systems, as `jax.scipy.sparse`."""

from purax.scipy.sparse import linalg as linalg

