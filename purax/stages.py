"""The stages of ahead-of-time compilation, as `jax.stages`."""

from purax.transforms.jit import JitFunction as Wrapped
from purax.transforms.stages import Compiled, Lowered, Traced

__all__ = ["Compiled", "Lowered", "Traced", "Wrapped"]
