"""`jax.extend.backend`, and what is left of `jax.lib.xla_bridge`: XLA's clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.api.jit import clear_caches
from purax.xla import client, jaxlib_api
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
    "backend_xla_version",
    "backends",
    "backends_are_initialized",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "default_backend",
    "device_count",
    "devices",
    "get_backend",
    "get_compile_options",
    "get_default_device",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "register_backend_cache",
]


def __getattr__(name: str) -> Any:
    if name == "_backends":  # the clients made so far, by which libraries tell whether devices are in use
        return client.clients()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_backend(platform: str | None = None) -> Any:
    """XLA's client of a platform; of the default one when left out."""
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


_caches: list[Any] = []


def register_backend_cache(cache: Any, for_what: str) -> None:
    """Has a cache cleared when `clear_backends` is called.

    Args:
        cache: what `functools.lru_cache` made, or another with a `cache_clear`.
        for_what: a name for it.
    """
    _caches.append(cache)


def clear_backends(_crash: bool = False) -> None:
    """Forgets compiled programs, and clears the caches that were registered; devices stay in use."""
    clear_in_memory_compilation_cache()
    for cache in _caches:
        cache.cache_clear()


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA in a plugin, if it says one."""
    return getattr(get_backend(platform), "xla_version", None)


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: dict[str, str] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """The options that XLA compiles a program with.

    Args:
        num_replicas: how many copies of the program run.
        num_partitions: into how many parts it is cut.
        device_assignment: the devices, or their numbers, by copy and part.
        env_options_overrides: XLA's flags, by name.
        fdo_profile: of an earlier run.
        detailed_logging: accepted, without effect.
        backend: accepted, without effect.
    """
    options = jaxlib_api.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = num_replicas
    options.num_partitions = build.num_partitions = num_partitions
    if device_assignment is not None:
        ids = np.vectorize(lambda x: getattr(x, "id", x), otypes=[np.int32])(np.asarray(device_assignment))
        options.device_assignment = jaxlib_api.make_device_assignment(
            ids.reshape(num_replicas, num_partitions)
        )
    build.use_spmd_partitioning = num_partitions > 1
    build.use_shardy_partitioner = True
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    if env_options_overrides:
        options.env_option_overrides = list(env_options_overrides.items())
    return options
