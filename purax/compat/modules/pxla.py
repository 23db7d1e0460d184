"""`jax.interpreters.pxla`: what is left of it are names of old programs, and the mesh of a `with mesh:` block."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from purax.sharding.mesh import Mesh, current_mesh
from purax.sharding.mesh import PartitionSpec as PartitionSpec

__all__ = ["Mesh", "PartitionSpec", "thread_resources"]

_NO_MESH = Mesh(np.empty((), object).reshape(())[None][:0], ("",))


class _Resources:
    """Where libraries look for the mesh in use: `thread_resources.env.physical_mesh`; an empty one if there is none."""

    @property
    def env(self) -> Any:
        return SimpleNamespace(physical_mesh=current_mesh() or _NO_MESH)


thread_resources = _Resources()
