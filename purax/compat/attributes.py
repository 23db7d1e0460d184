"""Attributes of jax's types that purax's lack, given to them in this mode: where arrays of a type lie."""

from __future__ import annotations

from typing import Any

from purax.compat.modules.sharding import AbstractMesh, NamedSharding, PartitionSpec
from purax.core.avals import ShapedArray

_NO_MESH = AbstractMesh((), ())


def _sharding(aval: Any) -> NamedSharding:
    """No mesh axis splits an axis of the array."""
    return NamedSharding(_NO_MESH, PartitionSpec(*(None,) * aval.ndim))


def attach() -> None:
    """Gives `ShapedArray` the attributes, unless it has them."""
    for name, value in (("sharding", property(_sharding)), ("vma", frozenset()), ("memory_space", None)):
        if not hasattr(ShapedArray, name):
            setattr(ShapedArray, name, value)
