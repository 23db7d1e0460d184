"""`jax._src.dispatch`."""

from __future__ import annotations

from purax.compat.modules.xla import apply_primitive

__all__ = ["apply_primitive"]
