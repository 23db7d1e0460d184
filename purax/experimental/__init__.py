"""What is not settled yet, under jax's names; submodules are loaded when they are first used."""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from purax.callbacks.io import io_callback
from purax.config import enable_x64

_LAZY = ("checkify", "colocated_python", "jet", "mesh_utils", "multihost_utils", "sparse")


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        try:
            return _importlib.import_module(f"purax.experimental.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"purax.experimental.{name}":
                raise
    raise AttributeError(f"module 'purax.experimental' has no attribute {name!r}")


__all__ = ["enable_x64", "io_callback"]
