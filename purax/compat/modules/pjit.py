"""`jax.experimental.pjit`: `jit`, by its old name."""

from purax.transforms.jit import jit as pjit

__all__ = ["pjit"]
