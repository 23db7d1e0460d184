"""The stages of ahead-of-time compilation, as `jax.stages`."""

from purax.transforms.jit import JitFunction as Wrapped
from purax.transforms.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
