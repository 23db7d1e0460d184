"""`jax._src.dispatch`."""

from __future__ import annotations

from purax.compat.modules.xla import apply_primitive
from purax.xla.callbacks import effects_barrier as wait_for_tokens

__all__ = ["apply_primitive", "wait_for_tokens"]
