"""Moving values between host and devices: `device_put` and related functions, on pytrees."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core.array import Array
from purax.core.memories import MemorySpace
from purax.core.source import located
from purax.core.specs import AbstractSharding, PartitionSpec
from purax.core.trace import Tracer, current
from purax.execution.device_put import as_sharding, device_put_p, put, space_of
from purax.execution.eager import eager
from purax.interpreters.arguments import aval_of_argument
from purax.interpreters.extended_dtypes import ExtendedArray
from purax.primitives.elementwise.arithmetic import copy
from purax.primitives.memory import to_memory
from purax.references import cells
from purax.sharding.constraints import constrain
from purax.sharding.shardings import NamedSharding
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_leaves, tree_unflatten
from purax.tree_util import tree_map
from purax.xla import client, jaxlib_api, living_arrays
from purax.xla.array import DeviceArray

_is_place = lambda d: d is None or isinstance(d, PartitionSpec)  # noqa: E731


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """Moves arrays to a device.

    In a compiled function a `NamedSharding` is a sharding constraint, and a device says where the function runs, if its
    arguments do not: it cannot run in two places.

    Args:
        x: an array, a number, or a tree of them.
        device: a device, a sharding, a `PartitionSpec` for the mesh in use, a `purax.memory.Space`, or a tree of them
            that is a prefix of `x`; the arrays are committed to it. A space is a memory of the device that the array is
            on. None makes arrays of NumPy values, free to move to where they are needed.
        src: where `x` is, like `device`: there cotangents go back to. Unless it is given they stay where they are.
        donate: whether `x` is given away: arrays that had to be moved are deleted. A boolean, or a tree of them that is
            a prefix of `x`, as is the next.
        may_alias: True if the result may share the memory of `x`, a NumPy array, too; False if it must be a copy. None
            makes copies of NumPy arrays and of what has to be moved. In a compiled function memory is XLA's business,
            and neither of the two makes a difference.

    Returns:
        `x` with arrays on the device.

    >>> import purax as px, numpy as np
    >>> px.device_put(np.arange(3.0))
    Array([0., 1., 2.], dtype=float32)
    """
    leaves, tree = tree_flatten(x)

    def spread(prefix: Any, name: str) -> list[Any]:
        return broadcast_prefix(prefix, x, is_leaf=_is_place, prefix_name=name, full_name="x")

    targets, sources = spread(device, "device"), spread(src, "src")
    flags = zip(spread(donate, "donate"), spread(may_alias, "may_alias"), strict=True)
    moved = []
    for leaf, target, origin, (is_given, may_share) in zip(leaves, targets, sources, flags, strict=True):
        if is_given and may_share:
            raise located(
                ValueError, "device_put: donate and may_alias are both true; what is given away is not shared"
            )
        target, origin = _place(target, "device"), _place(origin, "src")
        if isinstance(leaf, Tracer) or current.trace is not eager:
            value = leaf if isinstance(leaf, Array) else put(leaf, None)
            if isinstance(target, (NamedSharding, AbstractSharding, MemorySpace)):
                moved.append(constrain(value, target))
            else:
                value = device_put_p.bind(value, device=target, src=origin)
                moved.append(value if target is None else to_memory(value, space_of(target)))
            continue
        try:
            if isinstance(target, MemorySpace):
                result = to_memory(put(leaf, None, copy=not may_share), target)
            else:
                result = put(leaf, target, copy=not may_share)
        except TypeError as error:
            raise located(TypeError, f"device_put: {error}") from None
        if isinstance(leaf, DeviceArray):
            shares = result is leaf or result._buffer is leaf._buffer
            if shares and may_share is not None and not may_share:
                result = put(copy(result), target)
            elif not shares and is_given:
                leaf._buffer = leaf._host = None  # other arrays may still have its memory
        moved.append(result)
    return tree_unflatten(tree, moved)


def _place(given: Any, what: str) -> Any:
    given = client.parse_device(given) if isinstance(given, str) else given
    return given if given is None or isinstance(given, jaxlib_api.Device) else as_sharding(given, what)


def device_get(x: Any) -> Any:
    """The value of an array, or of a tree of them, as NumPy arrays. A traced array is returned as it is.

    >>> import purax as px
    >>> px.device_get(px.numpy.arange(3))
    array([0, 1, 2], dtype=int32)
    """
    leaves, tree = tree_flatten(x)
    for leaf in leaves:
        if isinstance(leaf, DeviceArray):
            leaf.copy_to_host_async()
    return tree_unflatten(tree, [_host_value(leaf) for leaf in leaves])


def _host_value(x: Any) -> Any:
    """An array in NumPy's form; a traced one, and one of an extended dtype, has none and stays as it is."""
    return np.asarray(x) if isinstance(x, DeviceArray) and type(x) is not ExtendedArray else x


def block_until_ready(x: Any) -> Any:
    """Waits until all arrays of a tree are computed; returns the tree.

    >>> import purax as px
    >>> px.block_until_ready(px.numpy.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    for leaf in tree_leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Starts copying all arrays of a tree to the host; returns the tree."""

    def started(leaf: Any) -> Any:
        if isinstance(leaf, DeviceArray):
            leaf.copy_to_host_async()
        return leaf

    return tree_map(started, x)


def live_arrays(platform: str | None = None) -> list[DeviceArray]:
    """All arrays alive in this process, on `platform` if given."""
    arrays = [x for x in living_arrays.arrays_in_process() if isinstance(x, DeviceArray)]
    return [x for x in arrays if platform is None or any(d.platform == platform for d in x.devices())]


def typeof(x: Any) -> Any:
    """The type of an array or number: shape, dtype and weak type; that of a reference is an `AbstractRef`.

    >>> import purax as px
    >>> px.typeof(px.numpy.ones((2, 3)))
    ShapedArray(float32[2,3])
    """
    kind = None if isinstance(x, Array) else cells.kind_of(x)
    return aval_of_argument(x) if kind is None else kind.type_of(x)
