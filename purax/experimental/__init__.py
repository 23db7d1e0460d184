"""What is not settled yet, under jax's names; submodules are loaded when they are first used."""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from purax.callbacks.io import io_callback
from purax.config import enable_x64

_LAZY = (
    "array_serialization",
    "buffer_callback",
    "checkify",
    "colocated_python",
    "compilation_cache",
    "compute_on",
    "control_deps",
    "custom_partitioning",
    "fused",
    "jet",
    "key_reuse",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "profiler",
    "pytree_serialization",
    "random",
    "rnn",
    "roofline",
    "scheduling_groups",
    "serialize_executable",
    "shard_alike",
    "shard_map",
    "sparse",
    "topologies",
    "xla_metadata",
)


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        try:
            return _importlib.import_module(f"purax.experimental.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"purax.experimental.{name}":
                raise
    raise AttributeError(f"module 'purax.experimental' has no attribute {name!r}")


__all__ = ["enable_x64", "io_callback"]
