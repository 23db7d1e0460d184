"""PJRT plugins: the libraries through which XLA drives GPUs, TPUs and other accelerators.

They are found by looking at folders and package metadata. No plugin's Python module is imported, since those
of the `jax_plugins` packages import jax. Nothing here runs before somebody asks for a device.
"""

import functools
import glob
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from purax.config import config
from purax.xla import jaxlib_api

logger = logging.getLogger("purax")


@dataclass(frozen=True)
class Plugin:
    """One plugin: the platform it serves, its library, and the package it came with."""

    platform: str
    library: str
    package: str


def _package_folders(name: str) -> list[str]:
    """The folders of a package, found without running it (if its parents are namespace packages)."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def _entry_points(group: str) -> Iterator[tuple[str, str]]:
    """Name and module of a group's entry points; `importlib.metadata` takes ten times as long to find them."""
    for folder in dict.fromkeys(sys.path):
        for path in glob.glob(os.path.join(glob.escape(folder or "."), "*.dist-info", "entry_points.txt")):
            try:
                with open(path, encoding="utf-8") as file:
                    text = file.read()
            except (OSError, UnicodeDecodeError):
                continue
            section = text.partition(f"[{group}]")[2].partition("\n[")[0]
            for line in section.splitlines():
                name, equals, value = line.partition("=")
                if equals:
                    yield name.strip(), value.partition(":")[0].strip()


def _library_in(folder: str) -> str | None:
    for pattern in ("*plugin*.so", "*pjrt*.so", "lib*.so", "*plugin*.dylib", "*pjrt*.dylib"):
        found = sorted(glob.glob(os.path.join(glob.escape(folder), pattern)))
        if found:
            return found[0]
    return None


def _platform_of(package: str) -> str:
    """`xla_cuda13` serves cuda, `xla_rocm7` rocm; others are named after themselves."""
    name = package.removeprefix("xla_").rstrip("0123456789_")
    return name or package


@functools.cache
def find_plugins() -> dict[str, Plugin]:
    """The plugins installed here, by platform. `PJRT_NAMES_AND_LIBRARY_PATHS=name:path,...` adds to them."""
    found: dict[str, Plugin] = {}
    for folder in _package_folders("jax_plugins"):
        for package in sorted(os.listdir(folder), reverse=True) if os.path.isdir(folder) else ():
            library = _library_in(os.path.join(folder, package))
            if library is not None:
                platform = _platform_of(package)
                found.setdefault(platform, Plugin(platform, library, f"jax_plugins.{package}"))
    for name, module in _entry_points("jax_plugins"):
        platform = _platform_of(name)
        if platform in found or "." in module and not module.startswith("jax_plugins."):
            continue  # to look into a package below another one would run the other
        for folder in _package_folders(module):
            library = _library_in(folder)
            if library is not None:
                found.setdefault(platform, Plugin(platform, library, module))
    library = os.environ.get("TPU_LIBRARY_PATH")
    if library is None:
        for folder in _package_folders("libtpu"):
            candidate = os.path.join(folder, "libtpu.so")
            library = candidate if os.path.exists(candidate) else library
    if library is not None:
        found["tpu"] = Plugin("tpu", library, "libtpu")
    for pair in filter(None, os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(",")):
        platform, _, library = pair.partition(":")
        found[platform] = Plugin(platform, library, "PJRT_NAMES_AND_LIBRARY_PATHS")
    return found


def _has_nvidia_gpu() -> bool:
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1", "NoDevFiles"):
        return False
    return any(map(glob.glob, ("/dev/nvidia[0-9]*", "/proc/driver/nvidia/gpus/*", "/dev/dxg")))


def has_device(platform: str) -> bool:
    """Whether it is worth starting a plugin by default: its hardware seems to be there."""
    if platform == "cuda":
        return _has_nvidia_gpu()
    if platform == "rocm":
        return os.path.exists("/dev/kfd")
    if platform == "tpu":
        return bool(glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*"))
    return True


def missing_plugin_hint(platform: str) -> str:
    """What to install for a platform, as the end of an error message."""
    package = {"cuda": "jax-cuda13-plugin", "tpu": "libtpu", "rocm": "jax-rocm7-plugin"}.get(platform)
    if package is None:
        return ""
    return f" Install {package}" + (f"=={jaxlib_api.version}" if platform != "tpu" else "") + " to use it"


@functools.cache
def hint_at_unused_gpu() -> None:
    """Say once that there is a GPU that no plugin drives."""
    if _has_nvidia_gpu() and "cuda" not in find_plugins() and not config.platforms:
        logger.warning(
            "there is an NVIDIA GPU but no plugin for it, so the CPU is used: "
            "pip install 'jax-cuda13-plugin[with-cuda]==%s' 'jax-cuda13-pjrt==%s' makes the GPU usable, "
            "PURAX_PLATFORMS=cpu silences this",
            jaxlib_api.version,
            jaxlib_api.version,
        )


def _gpu_options(platform: str) -> dict[str, Any]:
    """Options of a GPU client; the environment variables are those that XLA's documentation names."""
    options: dict[str, Any] = {"platform_name": platform}
    allocator = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    if allocator not in ("default", "platform", "bfc", "cuda_async"):
        raise ValueError(
            "the environment variable XLA_PYTHON_CLIENT_ALLOCATOR must be 'default', 'platform', 'bfc' or "
            f"'cuda_async', not {allocator!r}"
        )
    options["allocator"] = allocator
    preallocate = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE")
    options["preallocate"] = (
        config.memory_preallocate if preallocate is None else preallocate.lower() not in ("0", "false")
    )
    fraction = os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION") or os.environ.get("XLA_CLIENT_MEM_FRACTION")
    if fraction:
        options["memory_fraction"] = float(fraction)
    return options


@functools.cache
def cuda_folder() -> str | None:
    """Where the GPU compiler finds NVIDIA's own tools and libraries, if they are installed as packages."""
    for folder in _package_folders("nvidia"):
        for package in ("cu13", "cuda_nvcc"):
            candidate = os.path.join(folder, package)
            if os.path.isdir(candidate):
                return candidate
    return os.environ.get("CUDA_ROOT") or os.environ.get("CUDA_HOME")


def make_client(plugin: Plugin, distributed: Mapping[str, Any]) -> Any:
    """Load a plugin's library and make its client."""
    handle = jaxlib_api.load_plugin(plugin.platform, plugin.library)
    options: dict[str, Any] = {}
    if plugin.platform in ("cuda", "rocm"):
        options.update(_gpu_options(plugin.platform))
    for name in ("node_id", "num_nodes"):
        if name in distributed:
            options[name] = distributed[name]
    if "visible_devices" in distributed and plugin.platform in ("cuda", "rocm"):
        options["visible_devices"] = list(distributed["visible_devices"])
    made = jaxlib_api.make_plugin_client(plugin.platform, options, distributed.get("distributed_client"))
    if plugin.platform in ("cuda", "rocm") and handle is not None:
        try:
            jaxlib_api.register_plugin_kernels(plugin.platform, plugin.package, handle)
        except Exception as error:
            # The device works without them; only programs that call one will not compile.
            logger.warning("the kernels that %s brings could not be registered: %s", plugin.package, error)
    return made
