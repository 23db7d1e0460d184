"""How an array is sharded over devices.

A sharding is what XLA wants to know of the place of a buffer. There is one `SingleDeviceSharding` per
device, so that equal places are the same object and comparing them costs nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from purax.core import display
from purax.core.limits import finite, shallow
from purax.core.memories import MemorySpace, kind_of_space, space_of_kind
from purax.core.source import located
from purax.core.specs import AbstractMesh, AbstractSharding, PartitionSpec, layout_of
from purax.errors import shown
from purax.sharding.mesh import Mesh, current_mesh
from purax.xla import client, jaxlib_api

_instances: dict[Any, SingleDeviceSharding] = {}
_REPLICATED = jaxlib_api.HloSharding.replicate()
_MAX_SHAPES = 256


class SingleDeviceSharding(jaxlib_api.EngineSingleDeviceSharding):
    """The sharding of an array that lies on one device, as a whole.

    Arguments:
        device: the device.
        memory_kind: which of the device's memories; None is its default one.

    Returns:
        The one instance for these arguments.

    >>> from purax.xla import client
    >>> device = client.devices("cpu")[0]
    >>> SingleDeviceSharding(device) is SingleDeviceSharding(device)
    True
    >>> SingleDeviceSharding(device)
    SingleDeviceSharding(device=cpu:0)
    """

    def __new__(cls, device: Any, memory_kind: str | None = None) -> SingleDeviceSharding:
        key = device if memory_kind is None else (device, memory_kind)
        if device.__class__ is tuple:
            shallow(device)
        instance = _instances.get(key)
        if instance is None:
            instance = super().__new__(cls)
            instance.__init__(device, memory_kind)
            instance = _instances.setdefault(key, instance)
        return instance

    def __init__(self, device: Any, memory_kind: str | None = None) -> None:
        if "_device_set" in self.__dict__:
            return
        if not isinstance(device, jaxlib_api.Device):
            raise TypeError(f"SingleDeviceSharding needs a device, as from devices(), not {shown(device)}")
        super().__init__(device, memory_kind)
        self._device_set: frozenset[Any] = frozenset((device,))

    @property
    def device_set(self) -> frozenset[Any]:
        """The devices that hold a part of the array."""
        return self._device_set

    @property
    def memory_kind(self) -> str | None:
        """The name of the memory the array lies in."""
        return self._memory_kind

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device, and another of its memories.

        >>> import purax as px
        >>> SingleDeviceSharding(px.devices()[0]).with_memory_kind("pinned_host").memory_kind
        'pinned_host'
        """
        return SingleDeviceSharding(self._device, kind)

    @property
    def addressable_devices(self) -> frozenset[Any]:
        """The devices of this process that hold a part of the array."""
        return self._device_set if self._internal_device_list.is_fully_addressable else frozenset()

    @property
    def num_devices(self) -> int:
        """How many devices hold a part of the array."""
        return 1

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return True

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read the whole array."""
        return self._internal_device_list.is_fully_addressable

    def as_type(self, ndim: int) -> None:
        """What the type of an array says of its place: nothing."""
        return None

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of one device's part."""
        return tuple(finite(global_shape))

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
        """Which part of an array of `global_shape` each device holds."""
        return {self._device: (slice(None),) * len(global_shape)}

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
        """`devices_indices_map` of the devices of this process."""
        return self.devices_indices_map(global_shape) if self.is_fully_addressable else {}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether arrays of `ndim` axes lie in the same way under both shardings."""
        del ndim
        return self == other

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        del num_dimensions
        return _REPLICATED

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SingleDeviceSharding):
            return NotImplemented
        return self._device == other._device and self.memory_kind == other.memory_kind

    def __hash__(self) -> int:
        return hash((self._device, self.memory_kind))

    def __reduce__(self) -> Any:
        return _restored, (self._device.platform, self._device.id, self.memory_kind)

    def __repr__(self) -> str:
        default = self._device.default_memory().kind
        memory = "" if self.memory_kind in (None, default) else f", memory_kind={self.memory_kind!r}"
        return f"SingleDeviceSharding(device={self._device}{memory})"


def _restored(platform: str, number: int, memory_kind: str | None) -> SingleDeviceSharding:
    return SingleDeviceSharding(client.device_of(platform, number), memory_kind=memory_kind)


def single_device_sharding(device: Any) -> SingleDeviceSharding:
    """The sharding of arrays on `device`: `SingleDeviceSharding(device)`, faster."""
    return _instances.get(device) or SingleDeviceSharding(device)


def in_memory(sharding: Any, space: MemorySpace) -> Any:
    """The sharding of the same devices in a memory of theirs.

    >>> import purax as px
    >>> in_memory(SingleDeviceSharding(px.devices()[0]), MemorySpace.Host).memory_kind
    'pinned_host'
    """
    device = next(iter(sharding.device_set))
    if space_of_kind(sharding.memory_kind, device) is space:
        return sharding
    kind = kind_of_space(space, device)
    if isinstance(sharding, NamedSharding):
        return sharding.update(memory_kind=kind)
    return SingleDeviceSharding(sharding._device, kind)


def with_devices(shape: AbstractMesh) -> Mesh | None:
    """The mesh of the context, if `shape` is the shape of it."""
    mesh = current_mesh()
    return mesh if isinstance(mesh, Mesh) and mesh.abstract_mesh.shape_tuple == shape.shape_tuple else None


class NamedSharding(jaxlib_api.EngineTiledSharding):
    """How an array is sharded over a mesh: its axes are cut along axes of the mesh, and repeated along all others.

    Arguments:
        mesh: the mesh.
        spec: for each axis of the array, the axis (or axes) of the mesh that it is cut along.
        memory_kind: which of the devices' memories; None is the default one.

    >>> import purax as px
    >>> from purax.sharding.mesh import Mesh, PartitionSpec
    >>> sharding = NamedSharding(Mesh(px.devices()[:1], ("data",)), PartitionSpec("data"))
    >>> sharding.shard_shape((4, 3))
    (4, 3)

    Of the shape of a mesh that is not the one in use, it is an `AbstractSharding`, which has no devices.
    """

    def __new__(cls, mesh: Any, spec: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(mesh, AbstractMesh) and with_devices(mesh) is None:
            check_spec(mesh, spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec))
            return AbstractSharding(mesh, spec)
        return super().__new__(cls)

    def __init__(
        self, mesh: Mesh, spec: Any, memory_kind: str | None = None, _logical_device_ids: Any = None
    ) -> None:
        if isinstance(mesh, AbstractMesh):  # the shape of the mesh in use stands for it
            mesh = with_devices(mesh)
        if not isinstance(mesh, Mesh):
            raise TypeError(f"NamedSharding needs a Mesh, got {shown(mesh)}")
        spec = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        check_spec(mesh, spec)
        super().__init__(mesh.device_list, _REPLICATED, memory_kind)
        self.mesh = mesh
        self.spec = spec
        self._cut = _trimmed(spec)
        self._hash = hash((mesh, self._cut, memory_kind))
        self._device_set = frozenset(mesh.flat)
        self._by_ndim: dict[int, Any] = {}
        self._tiles_by_ndim: dict[int, tuple[Any, ...]] = {}
        self._own_parts: dict[tuple[int, ...], dict[Any, tuple[slice, ...]]] = {}
        self._types: dict[int, AbstractSharding | None] = {}

    @property
    def device_set(self) -> frozenset[Any]:
        """The devices that hold a part of the array."""
        return self._device_set

    @property
    def memory_kind(self) -> str | None:
        """The name of the memory the array lies in."""
        return self._memory_kind

    @property
    def addressable_devices(self) -> frozenset[Any]:
        """The devices of this process that hold a part of the array."""
        return frozenset(self.mesh.local_devices)

    @property
    def num_devices(self) -> int:
        """How many devices hold a part of the array."""
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return all(self.mesh.shape[name] == 1 for name in self.spec.all_names)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read the whole array."""
        return self.mesh.device_list.is_fully_addressable

    def as_type(self, ndim: int) -> AbstractSharding | None:
        """What the type of an array of `ndim` axes says of its place: the part along `Explicit` axes, or None."""
        if ndim not in self._types:
            self._types[ndim] = layout_of(self.mesh.abstract_mesh, self.spec, ndim)
        return self._types[ndim]

    def parts(self, ndim: int) -> tuple[int, ...]:
        """Into how many parts each of `ndim` axes is cut."""
        names = self.spec.names + ((),) * (ndim - len(self.spec))
        return tuple(math.prod(self.mesh.shape[name] for name in axis) for axis in names)

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of one device's part."""
        self.check_shape(tuple(finite(global_shape)))
        return tuple(n // parts for n, parts in zip(global_shape, self.parts(len(global_shape)), strict=True))

    def check_shape(self, shape: tuple[int, ...], what: str = "an array") -> None:
        """Raises if an array of `shape` cannot be cut in this way."""
        if len(self._cut) > len(shape):
            raise located(
                ValueError,
                f"{self.spec} has {len(self._cut)} entries, {what} of shape {shape} has only {len(shape)} axes",
            )
        for axis, (n, parts) in enumerate(zip(shape, self.parts(len(shape)), strict=True)):
            if n % parts:
                names = self.spec.names[axis]
                along = " and ".join(f"{name!r} (size {self.mesh.shape[name]})" for name in names)
                raise located(
                    ValueError,
                    f"axis {axis} of {what} of shape {shape} has size {n}, which does not divide into "
                    f"{parts} equal parts along mesh axis {along}. Pad the axis, or leave it whole: put None "
                    f"there in {self.spec}.",
                )

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
        """Which part of an array of `global_shape` each device holds."""
        shape = tuple(finite(global_shape))
        local = self.shard_shape(shape)
        result = {}
        for place, device in np.ndenumerate(self.mesh.devices):
            position = dict(zip(self.mesh.axis_names, place, strict=True))
            index = []
            for axis, n in enumerate(local):
                names = self.spec.names[axis] if axis < len(self.spec) else ()
                part = 0
                for name in names:
                    part = part * self.mesh.shape[name] + position[name]
                cut = any(self.mesh.shape[name] > 1 for name in names)
                index.append(slice(part * n, (part + 1) * n) if cut else slice(None))
            result[device] = tuple(index)
        return result

    def addressable_devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
        """The same, for the devices of this process."""
        shape = tuple(finite(global_shape))
        parts = self._own_parts.get(shape)
        if parts is None:
            mine = self.addressable_devices
            parts = {d: i for d, i in self.devices_indices_map(shape).items() if d in mine}
            if len(self._own_parts) >= _MAX_SHAPES:
                self._own_parts.clear()
            self._own_parts[shape] = parts
        return dict(parts)

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether arrays of `ndim` axes lie in the same way under both shardings."""
        if self == other:
            return True
        if isinstance(other, SingleDeviceSharding):
            return self.mesh.flat == (other._device,)
        if not isinstance(other, NamedSharding) or self.mesh.flat != other.mesh.flat:
            return False
        return self.memory_kind == other.memory_kind and self._tiles(ndim) == other._tiles(ndim)

    def _tiles(self, ndim: int) -> tuple[Any, ...]:
        """Which part each device holds, in order of the devices."""
        tiles = self._tiles_by_ndim.get(ndim)
        if tiles is None:
            shape = self.parts(ndim)
            tiles = self._tiles_by_ndim[ndim] = tuple(
                tuple((s.start or 0) if s.stop is not None else 0 for s in index)
                for index in self.devices_indices_map(shape).values()
            ) + (shape,)
        return tiles

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same sharding in another memory."""
        return NamedSharding(self.mesh, self.spec, kind)

    def update(self, **changes: Any) -> NamedSharding:
        """The sharding with another mesh, spec or memory_kind."""
        given = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind} | changes
        return NamedSharding(**given)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        found = self._by_ndim.get(num_dimensions)
        if found is None:
            found = self._by_ndim[num_dimensions] = self._make_hlo_sharding(num_dimensions)
        return found

    def _make_hlo_sharding(self, ndim: int) -> Any:
        used = self.spec.all_names
        if not any(self.mesh.shape[name] > 1 for name in used):
            return _REPLICATED
        order = {name: i for i, name in enumerate(self.mesh.axis_names)}
        rest = [name for name in self.mesh.axis_names if name not in used]
        repeats = math.prod(self.mesh.shape[name] for name in rest)
        tiles = list(self.parts(ndim)) + ([repeats] if repeats > 1 else [])
        permutation = [order[name] for name in (*used, *rest)]
        kinds = [jaxlib_api.OpSharding.Type.REPLICATED] if repeats > 1 else []
        return jaxlib_api.HloSharding.iota_tile(
            dims=tiles,
            reshape_dims=list(self.mesh.axis_sizes),
            transpose_perm=permutation,
            subgroup_types=kinds,
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, NamedSharding):
            return NotImplemented
        return self._cut == other._cut and self.mesh == other.mesh and self.memory_kind == other.memory_kind

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return NamedSharding, (self.mesh, self.spec, self.memory_kind)

    def __repr__(self) -> str:
        default = self.mesh.flat[0].default_memory().kind
        memory = "" if self.memory_kind in (None, default) else f", memory_kind={self.memory_kind!r}"
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r}{memory})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the axes of arrays, and the devices of the mesh."""
        used = [(axis, " and ".join(map(str, names)) or "not cut") for axis, names in enumerate(self.spec.names)]
        sizes = [(str(name), int(size)) for name, size in self.mesh.shape.items()]
        return display.framed(
            "NamedSharding",
            display.table(used, ("axis of the array", "cut along"), ""),
            display.table(sizes, ("axis of the mesh", "devices"), ""),
            display.folded("devices", str(self.mesh.devices)),
        )


def named_sharding(mesh: Mesh, spec: PartitionSpec) -> NamedSharding:
    """`NamedSharding(mesh, spec)`, the same one every time."""
    found = mesh.shardings.get(spec)
    if found is None:
        found = mesh.shardings[spec] = NamedSharding(mesh, spec)
    return found


def _trimmed(spec: PartitionSpec) -> tuple[Any, ...]:
    """The entries without Nones at the end, which mean nothing."""
    entries = list(spec)
    while entries and entries[-1] is None:
        entries.pop()
    return tuple(entries)


def check_spec(mesh: Any, spec: PartitionSpec) -> None:
    """Raises if a spec names an axis that the mesh does not have, or one axis twice."""
    names = spec.all_names
    for name in names:
        if name not in mesh.shape:
            raise located(
                ValueError,
                f"{spec} names the axis {name!r}, which the mesh does not have: its axes are "
                f"{', '.join(f'{n!r} (size {s})' for n, s in mesh.shape.items()) or 'none'}",
            )
        if names.count(name) > 1:
            raise located(
                ValueError,
                f"{spec} names the axis {name!r} twice: one axis of a mesh cuts one axis of an array",
            )


def from_hlo(mesh: Mesh, hlo: Any, ndim: int) -> NamedSharding | None:
    """The sharding over `mesh` that the compiler means by `hlo`, or None if it is not one of whole axes of the mesh."""
    if mesh.size == 1:  # for which the compiler says nothing
        return named_sharding(mesh, PartitionSpec())
    hlo = hlo if isinstance(hlo, jaxlib_api.HloSharding) else jaxlib_api.HloSharding.from_proto(hlo)
    if hlo.is_replicated():
        return named_sharding(mesh, PartitionSpec())
    if not hlo.is_tiled():
        return None
    tiles = list(hlo.tile_assignment_dimensions())
    wanted = np.array(hlo.tile_assignment_devices()).reshape(tiles)
    for spec in _specs(mesh, tiles[:ndim], mesh.axis_names):
        own = NamedSharding(mesh, spec)._to_xla_hlo_sharding(ndim)
        dims = list(own.tile_assignment_dimensions()) if own.is_tiled() else []
        if dims[:ndim] == tiles[:ndim] and np.array_equal(
            np.sort(np.array(own.tile_assignment_devices()).reshape((*tiles[:ndim], -1))),
            np.sort(wanted.reshape((*tiles[:ndim], -1))),
        ):
            return named_sharding(mesh, PartitionSpec(*_trimmed(spec)))
    return None


def _specs(mesh: Mesh, tiles: Sequence[int], names: Sequence[Any]) -> Iterator[PartitionSpec]:
    """All specs that cut axes into the given numbers of tiles."""
    if not tiles:
        yield PartitionSpec()
        return
    for count in range(len(names) + 1):
        for chosen in itertools.permutations(names, count):
            if math.prod(mesh.shape[n] for n in chosen) == tiles[0] and all(
                mesh.shape[n] > 1 for n in chosen
            ):
                left = [n for n in names if n not in chosen]
                for rest in _specs(mesh, tiles[1:], left):
                    yield PartitionSpec(chosen or None, *rest)


def make_single_device_sharding(device: object, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of arrays that are on one device.

    Args:
        device: the device.
        memory_kind: which of its memories; the default one when left out.
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
