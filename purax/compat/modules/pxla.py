"""`jax.interpreters.pxla`: what is left of it are names of old programs, and the mesh of a `with mesh:` block."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from purax.sharding.mesh import Mesh, current_mesh
from purax.sharding.mesh import PartitionSpec as PartitionSpec

__all__ = [
    "ArrayMapping",
    "Index",
    "Mesh",
    "MeshAxisName",
    "PartitionSpec",
    "array_mapping_to_axis_resources",
    "thread_resources",
]

MeshAxisName = Any
Index = int | slice | tuple[int | slice, ...]
ArrayMapping = OrderedDict  # of the names of mesh axes, and the axes of an array that lie along them

_NO_MESH = Mesh(np.empty((), object).reshape(())[None][:0], ("",))


class _Resources:
    """Where libraries look for the mesh in use: `thread_resources.env.physical_mesh`; an empty one if there is none."""

    @property
    def env(self) -> Any:
        return SimpleNamespace(physical_mesh=current_mesh() or _NO_MESH)


thread_resources = _Resources()


def array_mapping_to_axis_resources(array_mapping: Mapping[Any, int]) -> PartitionSpec:
    """The spec of an array of which it is known which axis lies along which axis of a mesh."""
    places: dict[int, list[Any]] = {}
    for name, axis in array_mapping.items():
        places.setdefault(axis, []).append(name)
    entries = [tuple(places.get(axis, ())) for axis in range(max(places, default=-1) + 1)]
    return PartitionSpec(*(None if not names else names[0] if len(names) == 1 else names for names in entries))
