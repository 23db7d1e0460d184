"""`jax.extend.backend`, and what is left of `jax.lib.xla_bridge`: the engine's clients."""

from __future__ import annotations

from typing import Any

from purax.transforms.jit import clear_caches
from purax.xla import client
from purax.xla.client import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)

__all__ = [
    "backends",
    "backends_are_initialized",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "default_backend",
    "device_count",
    "devices",
    "get_backend",
    "get_default_device",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
]


def __getattr__(name: str) -> Any:
    if name == "_backends":  # the clients made so far, by which libraries tell whether devices are in use
        return client.clients()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_backend(platform: str | None = None) -> Any:
    """The engine's client of a platform; of the default one when left out."""
    return client.client(platform or client.default_backend())


def backends() -> dict[str, Any]:
    """The clients in use, by platform."""
    get_backend()
    return client.clients()


def backends_are_initialized() -> bool:
    """Whether devices are in use, so that settings of theirs come too late."""
    return bool(client.clients())


def get_default_device() -> Any:
    """The device of arrays that are not placed elsewhere."""
    return client.default_device()


def clear_in_memory_compilation_cache() -> None:
    """Forgets compiled programs."""
    clear_caches()


clear_backends = clear_in_memory_compilation_cache
