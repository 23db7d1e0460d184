"""Large linear systems, as `jax.scipy.sparse`."""

# ruff: noqa: F401
from purax.scipy.sparse import linalg
