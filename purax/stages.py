"""The stages of ahead-of-time compilation, as `jax.stages`."""

from purax.api.jit import JitFunction as Wrapped
from purax.api.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
