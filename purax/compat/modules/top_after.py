"""Names of `jax` that are asked for here where `purax` itself does not have them."""

from __future__ import annotations

from purax.compat.modules.copies import device_put_replicated, device_put_sharded
from purax.compat.modules.references import array_ref

__all__ = [
    "array_ref",
    "device_put_replicated",
    "device_put_sharded",
]
