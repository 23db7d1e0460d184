"""`jax.experimental.pjit`: `jit`, by its old name."""

from purax.api.jit import jit as pjit

__all__ = ["pjit"]
