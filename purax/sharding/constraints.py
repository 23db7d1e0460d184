"""How values lie over a mesh inside of programs: `with_sharding_constraint` and `reshard` say it, and `free` takes it
from a type, so that the compiler decides.

A function computed without such types, whose result is given one, is a function of arrays over a mesh with axes of type
`Explicit` that never asks how things lie (`freely`): so `out_sharding=` works, and so transposes are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.core import source
from purax.core.avals import ShapedArray, aval_of
from purax.core.specs import AbstractSharding, AxisType, PartitionSpec, layout_of
from purax.execution.device_put import as_sharding, put, put_on
from purax.interpreters.arguments import to_array
from purax.interpreters.vmap import spread_of_rule
from purax.primitives.shape.broadcasting import Linear
from purax.sharding.shardings import NamedSharding, named_sharding, with_devices
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla import jaxlib_api
from purax.xla.array import DeviceArray, PlacedArray
from purax.xla.stablehlo import sharding_text


class ShardingConstraint(Linear):
    """`x`, which lies over the mesh of `sharding` as that says. An `AbstractSharding` is one over the mesh of `x`."""

    name = "sharding_constraint"
    runs_itself = True

    def physical(self, x, **params):
        """Of arrays that stand for keys, the last axis is not cut."""
        return self.bind(x, **params)

    def infer(self, x, *, sharding):
        if isinstance(sharding, NamedSharding):
            sharding.check_shape(x.shape)
        return x

    def infer_checked(self, avals, params):
        (x,), sharding = avals, params["sharding"]
        out = super().infer_checked((x.with_layout(None),), params)
        return out.with_layout(sharding.as_type(x.ndim) or x.layout)

    def host(self, x, *, sharding):
        return x

    def run(self, x, *, sharding):
        if not isinstance(sharding, NamedSharding):
            mesh = getattr(x._placement, "mesh", None) or with_devices(sharding.mesh)
            if mesh is None:  # on one device, where nothing can be cut
                return x
            sharding = named_sharding(mesh, sharding.spec)
        return put(x, sharding)

    def lower(self, builder, x, *, sharding):
        if builder.module.mesh is None:  # one device, where nothing can be cut
            return x
        return builder.constrain(x, sharding_text(sharding.spec, x.ndim))

    def transpose(self, cotangent, x, *, sharding):
        return (self.bind(cotangent, sharding=x.aval.layout or sharding),)

    def batch(self, operands, batch_axes, *, sharding):
        (x,), (axis,) = operands, batch_axes
        entries = [*sharding.spec, *(None,) * (x.ndim - 1 - len(sharding.spec))]
        typed = x.aval.layout is not None
        spread = spread_of_rule()
        if spread is not None:
            entries.insert(axis, spread)
        else:
            entries.insert(axis, x.aval.spec[axis] if typed else PartitionSpec.UNCONSTRAINED)
        return self.bind(x, sharding=sharding.update(spec=PartitionSpec(*entries))), axis


class FreeSharding(Linear):
    """`x`, of whose place along `axes` its type says nothing any more: the compiler decides."""

    name = "free_sharding"
    runs_itself = True

    def infer(self, x, *, axes):
        return x

    def infer_checked(self, avals, params):
        return _freed(avals[0], params["axes"])

    def host(self, x, *, axes):
        return x

    def run(self, x, *, axes):
        x = to_array(x)
        aval = _freed(x.aval, axes)
        if aval is x.aval:
            return x
        return PlacedArray(aval, x._live_buffer(), x._placement, x.committed)

    def lower(self, builder, x, *, axes):
        return x

    def transpose(self, cotangent, x, *, axes):
        return (cotangent,)

    def batch(self, operands, batch_axes, *, axes):
        return self.bind(operands[0], axes=axes), batch_axes[0]


def _freed(aval: ShapedArray, axes: tuple[Any, ...] | None) -> ShapedArray:
    if aval.layout is None:
        return aval
    if axes is None:
        return aval.with_layout(None)
    mesh = aval.layout.mesh.update_axis_types({name: AxisType.Auto for name in axes})
    return aval.with_layout(layout_of(mesh, aval.layout.spec, aval.ndim))


sharding_constraint_p = ShardingConstraint()
free_sharding_p = FreeSharding()


def free(x: Any, axes: tuple[Any, ...] | None = None) -> Any:
    """`x`, of whose place along `axes` (all unless given) the compiler decides."""
    layout = getattr(getattr(x, "aval", None), "layout", None)
    return x if layout is None else free_sharding_p.bind(x, axes=axes)


def laid_out_as(aval: ShapedArray, x: Any) -> Any:
    """`x`, which lies as the type of another array of its shape says."""
    if aval.layout is None or aval_of(x).layout is aval.layout:
        return x
    return sharding_constraint_p.bind(to_array(x), sharding=aval.layout)


def beside(a: Any, x: Any) -> Any:
    """`x`, an array made to be like `a`, where `a` lies: by its type, or by the devices that `a` is committed to.

    An array of another shape takes a device from `a`, but no sharding over several.
    """
    aval = getattr(a, "aval", None)
    if aval is None:
        return x
    alike = aval.shape == aval_of(x).shape
    if isinstance(a, PlacedArray) and a.committed and isinstance(x, DeviceArray):
        return put_on(x, a.sharding) if alike or len(a.sharding.device_set) == 1 else x
    return laid_out_as(aval, x) if alike else x


def freely(function: Callable[..., Any], out_sharding: Any, *operands: Any) -> Any:
    """`function` of arrays, computed as the compiler wants, with a result that lies as `out_sharding` says.

    With None for `out_sharding`, types say how the result lies.
    """
    if out_sharding is None:
        return function(*operands)
    wanted = as_sharding(out_sharding, "out_sharding")
    return constrain(function(*map(free, operands)), wanted)


def put_at(x: Any, place: Any) -> Any:
    """An array that a function has made where the user asked for it: at a device or sharding; None is anywhere."""
    if place is None:
        return x
    if isinstance(place, (PartitionSpec, NamedSharding, AbstractSharding)):
        return constrain(x, as_sharding(place, "the place of an array"))
    return put_on(x, place)


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
    for leaf, sharding in zip(leaves, wanted, strict=True):
        _check_layout(leaf, sharding)
    return tree_unflatten(tree, [constrain(leaf, s) for leaf, s in zip(leaves, wanted, strict=True)])


def _check_layout(x: Any, sharding: Any) -> None:
    """Raises where a type says how an array lies, and a constraint says otherwise."""
    aval = aval_of(x)
    if aval.layout is None or not hasattr(sharding, "spec"):
        return
    wanted = sharding.as_type(aval.ndim)
    if wanted is not None and wanted.spec != aval.layout.spec:
        raise source.with_location(
            AssertionError(
                f"with_sharding_constraint: the array is {aval.str_short()}, over a mesh with axes of type Explicit, "
                f"along which types say how arrays lie; {sharding.spec} is not what its type says. To move it, write "
                f"purax.sharding.reshard(x, {sharding.spec})."
            )
        )


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Moves arrays to another layout over the devices of a mesh.

    Args:
        xs: an array, or a tree of them.
        out_shardings: a sharding, a `PartitionSpec` (for the mesh in use), or a tree of them that is a prefix of `xs`.

    Returns:
        `xs`, laid out so; over a mesh with axes of type `Explicit` their types say it.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.sharding import AxisType, PartitionSpec, reshard
    >>> with px.set_mesh(px.make_mesh((1,), ("data",), axis_types=AxisType.Explicit)):
    ...     px.typeof(reshard(jnp.arange(3.0), PartitionSpec("data")))
    ShapedArray(float32[3@data])
    """
    leaves, tree = tree_flatten(xs)
    wanted = flat_shardings(out_shardings, xs, "out_shardings")
    return tree_unflatten(tree, [constrain(leaf, s) for leaf, s in zip(leaves, wanted, strict=True)])


def flat_shardings(shardings: Any, values: Any, what: str) -> list[Any]:
    """For each leaf of `values` the sharding that a tree of them, a prefix of `values`, has for it."""
    kinds = (jaxlib_api.EngineSharding, AbstractSharding, PartitionSpec)
    is_leaf = lambda s: s is None or isinstance(s, kinds)  # noqa: E731
    flat = broadcast_prefix(shardings, values, is_leaf=is_leaf, prefix_name=what, full_name="the values")
    return [as_sharding(s, what) for s in flat]


def constrain(x: Any, sharding: Any) -> Any:
    """One array, laid out as `sharding` says; None leaves it as it is."""
    if sharding is None:
        return x
    if not isinstance(sharding, (NamedSharding, AbstractSharding)):
        return put_on(x, sharding)
    return sharding_constraint_p.bind(to_array(x), sharding=sharding)
