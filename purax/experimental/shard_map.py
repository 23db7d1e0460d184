"""`shard_map` as it was called before it became `purax.shard_map`: the mesh comes by position, and `auto` names axes of
it that are left to the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.core.limits import finite
from purax.core.source import located
from purax.core.specs import AbstractMesh
from purax.errors import shown
from purax.sharding import shard_map as _own
from purax.sharding.mesh import Mesh

__all__ = ["shard_map"]


def shard_map(
    f: Callable,
    mesh: Mesh,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Callable:
    """Runs a function on every device of a mesh, each with its own part of the arguments; see `purax.shard_map`.

    Args:
        f: a function of parts.
        mesh: the mesh.
        in_specs: how the arguments are cut.
        out_specs: how the results of the devices make up the results.
        check_rep: whether types say what differs from device to device, and results are checked by them.
        auto: axes of the mesh that the function does not see.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.sharding import PartitionSpec as P
    >>> mesh = px.make_mesh((1,), ("data",))
    >>> shard_map(lambda x: px.lax.psum(x, "data"), mesh, P("data"), P())(jnp.arange(3.0))
    Array([0., 1., 2.], dtype=float32)
    """
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        raise located(TypeError, f"shard_map: `mesh` must be a mesh, got {shown(mesh)}")
    names = frozenset(mesh.axis_names) - frozenset(finite(auto))
    return _own.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep
    )
