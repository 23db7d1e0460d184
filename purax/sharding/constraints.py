"""How values lie over a mesh inside of programs: `with_sharding_constraint` and `reshard` say it, and `free` takes it
from a type, so that the compiler decides.

A function computed without such types, whose result is given one, is a function of arrays over a mesh with axes of type
`Explicit` that never asks how things lie (`freely`): so `out_sharding=` works, and so transposes are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.core.avals import aval_of
from purax.core.source import located
from purax.core.specs import AbstractSharding, PartitionSpec
from purax.core.trace import current
from purax.execution.device_put import as_sharding, put_on, space_of
from purax.execution.eager import eager
from purax.interpreters.arguments import to_array
from purax.primitives.memory import to_memory
from purax.primitives.sharding_constraint import free, laid_out_as, sharding_constraint_p
from purax.sharding.shardings import NamedSharding
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla import jaxlib_api
from purax.xla.array import DeviceArray, PlacedArray


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
    """Says how arrays shall be sharded over the devices of a mesh at this point of a program.

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
        raise located(
            AssertionError,
            f"with_sharding_constraint: the array is {aval.str_short()}, over a mesh with axes of type Explicit, "
            f"along which types say how arrays lie; {sharding.spec} is not what its type says. To move it, write "
            f"purax.sharding.reshard(x, {sharding.spec}).",
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
    if current.trace is eager:
        return sharding_constraint_p.bind(to_array(x), sharding=sharding)
    placed = to_memory(to_array(x), space_of(sharding)) if isinstance(sharding, NamedSharding) else to_array(x)
    return sharding_constraint_p.bind(placed, sharding=sharding)
