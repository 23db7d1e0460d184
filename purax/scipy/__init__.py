"""Scientific functions with the names and arguments of `jax.scipy`, each package imported when it is first used."""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

from purax.errors import shown

_SUBMODULES = (
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
)
__all__ = list(_SUBMODULES)  # noqa: PLE0604


def __getattr__(name: str) -> _Any:
    if name in _SUBMODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {shown(__name__)} has no attribute {shown(name)}")


def __dir__() -> list[str]:
    return sorted((*globals(), *_SUBMODULES))
