"""`smap`: `shard_map` over one axis of a mesh, with axes of arrays instead of partition specifications."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from purax.core.avals import aval_of
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import name_of, to_array, wraps
from purax.sharding.mesh import PartitionSpec
from purax.sharding.shard_map import shard_map
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.tree_util import tree_map

_is_none = lambda x: x is None  # noqa: E731


def smap(f: Callable | None = None, /, *, in_axes: Any, out_axes: Any, axis_name: Any) -> Callable:
    """Runs a function on the devices along one axis of the mesh in use, each with its own part of the arguments.

    Args:
        f: a function of parts; `axis_name` is a named axis in it.
        in_axes: the axis of each argument that is cut: an integer, None for an argument that all devices get, or a
            tuple with trees of them that are prefixes of the arguments.
        out_axes: the axis along which the parts of each result lie, counted from the front; None for a result that is
            the same on all devices.
        axis_name: the axis of the mesh.

    Returns:
        A function of whole arrays. The compiler handles the other axes of the mesh.

    >>> import purax as px, purax.numpy as jnp
    >>> centred = px.smap(lambda x: x - px.lax.psum(x.sum(), "i"), in_axes=0, out_axes=0, axis_name="i")
    >>> with px.make_mesh((1,), ("i",)):
    ...     centred(jnp.arange(3.0))
    Array([-3., -2., -1.], dtype=float32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    what = f"smap of `{name_of(f)}`"

    def spec(axis: int | None) -> PartitionSpec:
        if axis is not None and (not isinstance(axis, int) or axis < 0):
            raise located(
                ValueError, f"{what}: out_axes are axes counted from the front, or None; got {shown(axis)}"
            )
        return PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, axis_name)

    out_specs = tree_map(spec, out_axes, is_leaf=_is_none)

    @wraps(f)
    def mapped(*args):
        leaves, tree = tree_flatten(args)
        axes = broadcast_prefix(
            tuple(in_axes) if isinstance(in_axes, list) else in_axes,
            args,
            is_leaf=_is_none,
            prefix_name="in_axes",
            full_name="the arguments",
        )
        specs = []
        for x, axis in zip(leaves, axes, strict=True):
            ndim = aval_of(to_array(x)).ndim
            if axis is not None and not -ndim <= axis < ndim:
                raise located(ValueError, f"{what}: in_axes has {axis} for an argument with {ndim} axes")
            specs.append(spec(None if axis is None else axis % ndim))
        cut = tree_unflatten(tree, specs)
        return shard_map(f, in_specs=cut, out_specs=out_specs, axis_names={axis_name})(*args)

    return mapped
