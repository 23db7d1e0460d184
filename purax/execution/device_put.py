"""Values at a place: on a device, or sharded over a mesh. `put` moves concrete ones, `device_put_p` traced ones.

A program runs on one device or mesh. The primitive cannot move a value out of it, but where nothing else says where a
program runs, it says so (`mesh_runner.place_program`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core.limits import shallow
from purax.core.memories import MemorySpace, space_of_kind
from purax.core.source import located
from purax.core.specs import AbstractSharding, PartitionSpec
from purax.core.trace import current
from purax.errors import shown
from purax.execution.eager import eager
from purax.execution.placement import buffer_over
from purax.interpreters.arguments import aval_of_argument, to_array
from purax.interpreters.extended_dtypes import as_logical, as_physical, physical_aval
from purax.primitives import memory
from purax.primitives.memory import ToMemory
from purax.primitives.shape.broadcasting import Linear
from purax.primitives.sharding_constraint import ShardingConstraint
from purax.sharding.mesh import current_mesh
from purax.sharding.shardings import NamedSharding, SingleDeviceSharding, in_memory
from purax.xla import jaxlib_api
from purax.xla.array import DeviceArray, PlacedArray
from purax.xla.layout import Format


class DevicePut(Linear):
    """`x` on `device`, which it came to from `src`: there cotangents go back to, unless it is None."""

    name = "device_put"
    moves_elements = True
    runs_itself = True

    def infer(self, x, *, device, src):
        return x

    def lay_out(self, out, x, *, device, src):
        return x.spec

    def host(self, x, *, device, src):
        return x

    def run(self, x, *, device, src):
        return put(x, device)

    def lower(self, builder, x, *, device, src):
        return x

    def transpose(self, cotangent, x, *, device, src):
        return (cotangent if src is None else self.bind(cotangent, device=src, src=device),)

    def batch(self, operands, batch_axes, *, device, src):
        return self.bind(operands[0], device=device, src=src), batch_axes[0]


device_put_p = DevicePut()


def put(x: Any, device: Any, copy: bool = True) -> DeviceArray:
    """A concrete value as an array, committed to `device` unless that is None."""
    aval = aval_of_argument(x)
    if not isinstance(x, DeviceArray):
        x = DeviceArray(aval, np.array(x, aval.dtype, copy=copy or None))
    if device is None:
        return x
    sharding = device if isinstance(device, jaxlib_api.EngineSharding) else SingleDeviceSharding(device)
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
    kind = moved._placement.memory_kind
    if moved._buffer._sharding.memory_kind != kind:
        moved._buffer = jaxlib_api.copy_to(moved._buffer, moved._placement)
    moved.aval = moved.aval.with_memory(space_of_kind(kind, next(iter(sharding.device_set))))
    return as_logical(moved, aval)


def to_memory(x: Any, space: MemorySpace) -> DeviceArray:
    """A concrete value in a memory of the device, or of the devices, that it is on."""
    array = x if isinstance(x, DeviceArray) else put(x, None)
    aval = as_physical(array).aval
    if aval.memory_space is space:
        return array
    placement = in_memory(array.sharding, space)
    moved = put(array, placement)
    as_physical(moved).committed = array.committed
    return moved


ShardingConstraint.put = staticmethod(put)
ToMemory.move = staticmethod(to_memory)


def as_sharding(given: Any, what: str) -> Any:
    """What a user gave as a sharding: one, a device, or a `PartitionSpec` for the mesh of the context."""
    if isinstance(given, Format):
        given = given.place()
    if given is None or isinstance(given, (jaxlib_api.EngineSharding, AbstractSharding)):
        return given
    if isinstance(given, MemorySpace):
        if given is MemorySpace.Any:
            raise located(ValueError, f"{what}: Space.Any is no place to move to; take Space.Device or Space.Host")
        return given
    if isinstance(given, jaxlib_api.Device):
        return SingleDeviceSharding(given)
    if isinstance(given, PartitionSpec):
        mesh = current_mesh()
        if mesh is None:
            raise located(
                ValueError,
                f"{what}: {given} needs a mesh. Write it in a `with mesh:` block, or pass "
                f"NamedSharding(mesh, {given}).",
            )
        return NamedSharding(mesh, given)  # type: ignore[arg-type]  # an abstract one is refused there
    raise located(
        TypeError,
        f"{what} must be a sharding or a PartitionSpec, got {shown(given)} of type {type(given).__name__}",
    )


def put_on(x: Any, device: Any) -> Any:
    """An array on a device, now or where the program says."""
    if isinstance(device, MemorySpace):
        return memory.to_memory(to_array(x), device)
    if current.trace is eager:
        return put(x, device)
    shallow(device)  # which is looked up
    return memory.to_memory(device_put_p.bind(to_array(x), device=device, src=None), space_of(device))


def space_of(place: Any) -> MemorySpace:
    """Which memory a device or a sharding means."""
    kind = getattr(place, "memory_kind", None)
    return space_of_kind(kind, next(iter(place.device_set))) if kind is not None else MemorySpace.Device
