"""Names of `jax` that are asked for here where `purax` itself does not have them."""

from __future__ import annotations

from purax.compat.modules.references import Ref, array_ref, empty_ref, freeze, new_ref
from purax.xla.mesh import PartitionSpec as P
from purax.xla.mesh import make_mesh, set_mesh
from purax.xla.sharding import NamedSharding

__all__ = [
    "NamedSharding",
    "P",
    "Ref",
    "array_ref",
    "empty_ref",
    "freeze",
    "make_mesh",
    "new_ref",
    "set_mesh",
]
