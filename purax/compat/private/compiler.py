"""`jax._src.compiler`, which Chex imports."""

from __future__ import annotations

from purax.xla.compiler import compile_program

__all__ = ["compile_program"]
