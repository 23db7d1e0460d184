"""Names of `jax` that are asked for here where `purax` itself does not have them."""

from __future__ import annotations

from purax.compat.modules.copies import device_put_replicated, device_put_sharded
from purax.compat.modules.references import array_ref
from purax.compat.settings import context_of
from purax.xla.client import process_indices

__all__ = [
    "array_garbage_collection_guard",
    "array_ref",
    "device_put_replicated",
    "device_put_sharded",
    "host_ids",
    "jax2tf_associative_scan_reductions",
    "remove_size_one_mesh_axis_from_type",
    "thread_guard",
]

array_garbage_collection_guard = context_of("jax_array_garbage_collection_guard")
jax2tf_associative_scan_reductions = context_of("jax2tf_associative_scan_reductions")
remove_size_one_mesh_axis_from_type = context_of("jax_remove_size_one_mesh_axis_from_type")
thread_guard = context_of("jax_thread_guard")


def host_ids(backend: str | None = None) -> list[int]:
    """The numbers of all processes, as `process_indices` says them."""
    return process_indices(backend)
