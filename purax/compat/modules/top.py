"""Names of `jax` itself that differ from those of `purax`: its version and its settings."""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Sequence
from typing import Any

from purax.compat.settings import settings as config
from purax.compat.version import JAX_VERSION, PURAX_VERSION, __version__, __version_info__
from purax.core.specs import AxisType
from purax.sharding import mesh
from purax.xla import client

__all__ = ["__version__", "__version_info__", "config", "make_mesh", "print_environment_info"]


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Any],
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> mesh.Mesh:
    """A mesh of the given shape, whose axes are `Explicit` unless `axis_types` says otherwise.

    Args:
        axis_shapes: the size of each axis.
        axis_names: the name of each axis.
        axis_types: the `AxisType` of each axis.
        devices: the devices; all of the default platform unless given.
    """
    if axis_types is None:
        axis_types = (AxisType.Explicit,) * len(axis_names)
    return mesh.make_mesh(axis_shapes, axis_names, axis_types, devices=devices)


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints versions and devices, for a bug report.

    Args:
        return_string: whether to return the text instead.

    Returns:
        The text, or None if it was printed.
    """
    versions = {name: importlib.import_module(name).__version__ for name in ("numpy", "jaxlib")}
    text = "\n".join(
        [
            f"jax:    {JAX_VERSION}, provided by purax {PURAX_VERSION}",
            *(f"{name}: {version}" for name, version in versions.items()),
            f"python: {sys.version}",
            f"devices: {client.devices()}",
            f"platform: {platform.platform()}",
        ]
    )
    if return_string:
        return text
    print(text)
    return None
