"""Moving values between host and devices: `device_put` and its relatives, on pytrees."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from purax.core import cells, source
from purax.core.array import Array
from purax.core.specs import AbstractSharding, PartitionSpec
from purax.core.trace import Tracer, current
from purax.ops.broadcasting import Linear
from purax.transforms.arguments import aval_of_argument
from purax.transforms.eager import eager
from purax.transforms.physical import ExtendedArray, as_logical, physical_aval
from purax.transforms.places import buffer_over
from purax.tree_prefix import broadcast_prefix
from purax.tree_registry import tree_flatten, tree_leaves, tree_unflatten
from purax.tree_util import tree_map
from purax.xla import client, door
from purax.xla.array import DeviceArray, PlacedArray
from purax.xla.layout import Format
from purax.xla.mesh import current_mesh
from purax.xla.sharding import NamedSharding, SingleDeviceSharding


class DevicePut(Linear):
    """`x` on `device`. Inside a program it has no effect: the program runs where its arguments are."""

    name = "device_put"
    runs_itself = True

    def infer(self, x, *, device):
        return x

    def lay_out(self, out, x, *, device):
        return x.spec

    def host(self, x, *, device):
        return x

    def run(self, x, *, device):
        return put(x, device)

    def lower(self, builder, x, *, device):
        return x

    def transpose(self, cotangent, x, *, device):
        return (cotangent,)

    def batch(self, operands, batch_axes, *, device):
        return self.bind(operands[0], device=device), batch_axes[0]


device_put_p = DevicePut()


def put(x: Any, device: Any, copy: bool = True) -> DeviceArray:
    """A concrete value as an array, committed to `device` unless that is None."""
    aval = aval_of_argument(x)
    if not isinstance(x, DeviceArray):
        x = DeviceArray(aval, np.array(x, aval.dtype, copy=copy or None))
    if device is None:
        return x
    sharding = device if isinstance(device, door.EngineSharding) else SingleDeviceSharding(device)
    if not sharding.device_set:  # it leaves the place open
        return x
    own = physical_aval(aval)
    if isinstance(sharding, NamedSharding):
        sharding.check_shape(aval.shape)
        if own is aval:  # keys have no layout in their types
            own = own.with_layout(sharding.as_type(own.ndim))
        moved = PlacedArray(own, buffer_over(x, sharding), sharding, committed=True)
    else:
        moved = PlacedArray(own.with_layout(None), x.buffer_on(sharding._device), sharding, committed=True)
    return as_logical(moved, aval)


def as_sharding(given: Any, what: str) -> Any:
    """What a user gave as a sharding: one, a device, or a `PartitionSpec` for the mesh of the context."""
    if isinstance(given, Format):
        given = given.place()
    if given is None or isinstance(given, (door.EngineSharding, AbstractSharding)):
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
        return NamedSharding(mesh, given)  # type: ignore[arg-type]  # an abstract one is refused there
    raise source.with_location(
        TypeError(
            f"{what} must be a sharding or a PartitionSpec, got {given!r} of type {type(given).__name__}"
        )
    )


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """Moves arrays to a device.

    Args:
        x: an array, a number, or a tree of them.
        device: a device, a sharding, a `PartitionSpec` for the mesh in use, or a tree of them that is a prefix of `x`;
            the arrays are committed to it. None makes arrays of NumPy values, free to move to where they are needed.
        donate: whether the memory of `x` may be reused.

    Returns:
        `x` with arrays on the device.

    >>> import purax as px, numpy as np
    >>> px.device_put(np.arange(3.0))
    Array([0., 1., 2.], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    is_leaf = lambda d: d is None or isinstance(d, PartitionSpec)  # noqa: E731
    devices = broadcast_prefix(device, x, is_leaf=is_leaf, prefix_name="device", full_name="x")
    moved = []
    for leaf, target in zip(leaves, devices, strict=True):
        target = client.parse_device(target) if isinstance(target, str) else target
        target = as_sharding(target, "device") if isinstance(target, (Format, PartitionSpec)) else target
        if isinstance(leaf, Tracer) or current.trace is not eager:
            value = leaf if isinstance(leaf, Array) else put(leaf, None)
            moved.append(device_put_p.bind(value, device=target))
        else:
            try:
                moved.append(put(leaf, target))
            except TypeError as error:
                raise source.with_location(TypeError(f"device_put: {error}")) from None
    return tree_unflatten(tree, moved)


def device_get(x: Any) -> Any:
    """The value of an array, or of a tree of them, as NumPy arrays.

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
    """An array in NumPy's form; one of an extended dtype has none and stays as it is."""
    return np.asarray(x) if isinstance(x, Array) and type(x) is not ExtendedArray else x


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
    arrays = [x for x in gc.get_objects() if isinstance(x, DeviceArray) and not x.is_deleted()]
    return [x for x in arrays if platform is None or any(d.platform == platform for d in x.devices())]


def typeof(x: Any) -> Any:
    """The type of an array or number: shape, dtype and weak type; that of a reference is an `AbstractRef`.

    >>> import purax as px
    >>> px.typeof(px.numpy.ones((2, 3)))
    ShapedArray(float32[2,3])
    """
    kind = None if isinstance(x, Array) else cells.kind_of(x)
    return aval_of_argument(x) if kind is None else kind.type_of(x)
