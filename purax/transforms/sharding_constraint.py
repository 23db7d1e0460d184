"""`with_sharding_constraint`: says, inside of a program, how a value shall lie over a mesh."""

from __future__ import annotations

from typing import Any

from purax.core import source
from purax.core.trace import current
from purax.ops.broadcasting import Linear
from purax.transforms.arguments import to_array
from purax.transforms.eager import eager
from purax.transforms.transfer import put
from purax.tree_prefix import broadcast_prefix
from purax.tree_registry import tree_flatten, tree_unflatten
from purax.xla import door
from purax.xla.mesh import PartitionSpec, current_mesh
from purax.xla.sharding import NamedSharding, SingleDeviceSharding
from purax.xla.stablehlo import sharding_text


class ShardingConstraint(Linear):
    """`x`, which lies over the mesh of `sharding` as that says."""

    name = "sharding_constraint"
    runs_itself = True

    def infer(self, x, *, sharding):
        sharding.check_shape(x.shape)
        return x

    def host(self, x, *, sharding):
        return x

    def run(self, x, *, sharding):
        return put(x, sharding)

    def lower(self, builder, x, *, sharding):
        if builder.module.mesh is None:  # one device, where nothing can be cut
            return x
        target = builder.fresh()
        layout = sharding_text(sharding.spec, x.ndim)
        builder.lines.append(f"{target} = sdy.sharding_constraint {x.name} {layout} : {builder.type_of(x)}")
        return type(x)(target, x.aval)

    def transpose(self, cotangent, x, *, sharding):
        return (self.bind(cotangent, sharding=sharding),)

    def batch(self, operands, batch_axes, *, sharding):
        (axis,) = batch_axes
        entries = [*sharding.spec, *(None,) * (operands[0].ndim - 1 - len(sharding.spec))]
        entries.insert(axis, PartitionSpec.UNCONSTRAINED)
        return self.bind(operands[0], sharding=sharding.update(spec=PartitionSpec(*entries))), axis


sharding_constraint_p = ShardingConstraint()


def as_sharding(given: Any, what: str) -> Any:
    """What a user gave as a sharding: one, a device, or a `PartitionSpec` for the mesh of the context."""
    if given is None or isinstance(given, door.EngineSharding):
        return given
    if isinstance(given, door.Device):
        return SingleDeviceSharding(given)
    if isinstance(given, PartitionSpec):
        mesh = current_mesh()
        if mesh is None:
            raise source.with_location(
                ValueError(
                    f"{what}: {given} needs a mesh. Write it in a `with mesh:` block, or pass "
                    f"NamedSharding(mesh, {given})."
                )
            )
        return NamedSharding(mesh, given)
    raise source.with_location(
        TypeError(
            f"{what} must be a sharding or a PartitionSpec, got {given!r} of type {type(given).__name__}"
        )
    )


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Says how arrays shall lie over the devices of a mesh at this point of a program.

    Args:
        x: an array, or a tree of them.
        shardings: a sharding, a `PartitionSpec` (for the mesh of a `with mesh:` block), or a tree of them that is a
            prefix of `x`.

    Returns:
        `x`, laid out so.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.sharding import Mesh, NamedSharding, PartitionSpec
    >>> rows = NamedSharding(Mesh(px.devices()[:1], ("data",)), PartitionSpec("data"))
    >>> px.jit(lambda x: px.lax.with_sharding_constraint(x * 2, rows))(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    wanted = flat_shardings(shardings, x, "shardings")
    return tree_unflatten(tree, [constrain(leaf, s) for leaf, s in zip(leaves, wanted, strict=True)])


def flat_shardings(shardings: Any, values: Any, what: str) -> list[Any]:
    """For each leaf of `values` the sharding that a tree of them, a prefix of `values`, has for it."""
    is_leaf = lambda s: s is None or isinstance(s, (door.EngineSharding, PartitionSpec))  # noqa: E731
    flat = broadcast_prefix(shardings, values, is_leaf=is_leaf, prefix_name=what, full_name="the values")
    return [as_sharding(s, what) for s in flat]


def constrain(x: Any, sharding: Any) -> Any:
    """One array, laid out as `sharding` says; None leaves it as it is."""
    if sharding is None:
        return x
    if not isinstance(sharding, NamedSharding):
        return put(x, sharding) if current.trace is eager else x
    return sharding_constraint_p.bind(to_array(x), sharding=sharding)
