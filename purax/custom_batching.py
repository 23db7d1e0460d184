"""Custom vectorization rules, as `jax.custom_batching`."""

from purax.control_flow.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
