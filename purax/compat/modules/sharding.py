"""`jax.sharding`: meshes of devices and how arrays are laid over them, as descriptions.

Arrays of purax lie on one device. A mesh of one device and shardings over it therefore work; placing an array over
several devices is refused where it is asked for.
"""

from __future__ import annotations

import contextlib
import enum
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from purax.xla import client
from purax.xla.door import EngineSharding as Sharding
from purax.xla.sharding import SingleDeviceSharding

__all__ = [
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "get_abstract_mesh",
    "get_mesh",
    "make_mesh",
    "set_mesh",
    "use_abstract_mesh",
    "use_mesh",
]


class AxisType(enum.Enum):
    """Who decides how arrays lie along an axis of a mesh."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"


class PartitionSpec:
    """For each axis of an array the mesh axis, or axes, that it is split over, or None.

    >>> from purax.compat.modules.sharding import PartitionSpec
    >>> PartitionSpec("data", None)
    PartitionSpec('data', None)
    """

    UNCONSTRAINED = _Unconstrained()

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()):
        self._partitions = tuple(tuple(p) if isinstance(p, list) else p for p in partitions)
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, index: Any) -> Any:
        return self._partitions[index]

    def __add__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*self._partitions, *other)

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other, *self._partitions)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self._partitions == other._partitions
        return self._partitions == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._partitions)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self._partitions))})"

    def __reduce__(self):
        return PartitionSpec, self._partitions

    def index(self, value: Any) -> int:
        """The first axis that is split over `value`."""
        return self._partitions.index(value)

    def count(self, value: Any) -> int:
        """How many axes are split over `value`."""
        return self._partitions.count(value)


class AbstractMesh:
    """The axes of a mesh without its devices.

    Args:
        axis_sizes: the lengths of the axes.
        axis_names: their names.
        axis_types: their types.
    """

    def __init__(self, axis_sizes: Sequence[int], axis_names: Sequence[Any], axis_types: Any = None):
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)
        types = axis_types if axis_types is not None else (AxisType.Auto,) * len(self.axis_names)
        self.axis_types = (types,) * len(self.axis_names) if isinstance(types, AxisType) else tuple(types)

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The lengths of the axes by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of name and length."""
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """How many devices there are."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there is no axis."""
        return not self.axis_names

    @property
    def are_all_axes_explicit(self) -> bool:
        return bool(self.axis_types) and all(kind is AxisType.Explicit for kind in self.axis_types)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is AxisType.Manual)

    def _key(self) -> tuple:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._key() == self._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"{type(self).__name__}({axes}, axis_types={self.axis_types})"


class _Entered(threading.local):
    """The meshes that `with` blocks of this thread have entered."""

    def __init__(self) -> None:
        self.meshes: list[Any] = []


_entered = _Entered()


class Mesh(AbstractMesh):
    """Devices in an array with named axes.

    Args:
        devices: an array of devices.
        axis_names: one name per axis.
        axis_types: who decides how arrays lie along each axis.
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None):
        self.devices = np.asarray(devices, object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if self.devices.ndim != len(names):
            raise ValueError(
                f"Mesh: {len(names)} axis names {names} for devices of shape {self.devices.shape}"
            )
        super().__init__(self.devices.shape, names, axis_types)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices."""
        return np.vectorize(lambda device: device.id, otypes=[int])(self.devices)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return list(self.devices.flat)

    def _key(self) -> tuple:
        return *super()._key(), tuple(self.devices.flat)

    def __enter__(self) -> Mesh:
        _entered.meshes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _entered.meshes.pop()


_NO_MESH = Mesh(np.empty((), object), ())


class NamedSharding(Sharding):
    """How an array lies over a mesh.

    Args:
        mesh: the devices.
        spec: which axis of the array is split over which axis of the mesh.
        memory_kind: which of the devices' memories.
    """

    def __init__(
        self, mesh: Any, spec: Any, *, memory_kind: str | None = None, _logical_device_ids: Any = None
    ):
        names = [name for part in spec for name in (part if isinstance(part, tuple) else (part,))]
        unknown = [n for n in names if isinstance(n, str) and n not in mesh.axis_names]
        if unknown:
            raise ValueError(f"NamedSharding: {spec} names the axes {unknown}, which are not in {mesh}")
        super().__init__()
        self.mesh, self.spec = mesh, spec
        self.memory_kind = memory_kind

    @property
    def device_set(self) -> frozenset[Any]:
        """The devices that hold a part of the array."""
        return (
            frozenset(self.mesh.devices.flat)
            if isinstance(self.mesh, Mesh) and self.mesh.size
            else frozenset()
        )

    addressable_devices = device_set

    @property
    def num_devices(self) -> int:
        """How many devices hold a part of the array."""
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return all(p is None or self._parts(p) == 1 for p in self.spec)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read the whole array."""
        return True

    def _parts(self, names: Any) -> int:
        if names is None or isinstance(names, _Unconstrained):
            return 1
        return math.prod(self.mesh.shape[n] for n in (names if isinstance(names, tuple) else (names,)))

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one device's part."""
        parts = [*map(self._parts, self.spec), *[1] * (len(global_shape) - len(self.spec))]
        return tuple(n // p for n, p in zip(global_shape, parts, strict=True))

    def with_spec(self, spec: Any) -> NamedSharding:
        """The sharding over the same mesh by another specification."""
        return NamedSharding(self.mesh, spec, memory_kind=self.memory_kind)

    def update(self, **changes: Any) -> NamedSharding:
        """A sharding with other parts."""
        return NamedSharding(
            changes.get("mesh", self.mesh),
            changes.get("spec", self.spec),
            memory_kind=changes.get("memory_kind", self.memory_kind),
        )

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether arrays of `ndim` axes lie in the same way under both shardings."""
        return self == other or (self.num_devices == 1 and self.device_set == other.device_set)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and (self.mesh, self.spec, self.memory_kind) == (
            other.mesh,
            other.spec,
            other.memory_kind,
        )

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec, self.memory_kind))

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r})"


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[Any], axis_types: Any = None, *, devices: Any = None
) -> Mesh:
    """A mesh of the first devices.

    Args:
        axis_shapes: the lengths of the axes.
        axis_names: their names.
        axis_types: their types.
        devices: the devices; all of the default platform when left out.
    """
    found = list(client.devices() if devices is None else devices)
    count = math.prod(axis_shapes)
    if count > len(found):
        raise ValueError(
            f"make_mesh: a mesh of shape {tuple(axis_shapes)} needs {count} devices, there are {len(found)}"
        )
    return Mesh(np.asarray(found[:count], object).reshape(axis_shapes), axis_names, axis_types)


def get_mesh() -> Mesh:
    """The mesh of the innermost `with` block or `set_mesh`; one without axes if there is none."""
    return _entered.meshes[-1] if _entered.meshes else _NO_MESH


def get_abstract_mesh() -> AbstractMesh:
    """`get_mesh` without the devices."""
    mesh = get_mesh()
    return mesh.abstract_mesh if isinstance(mesh, Mesh) else mesh


class set_mesh(contextlib.AbstractContextManager):
    """Makes a mesh the current one, from here on or in a `with` block."""

    def __init__(self, mesh: Any):
        self._mesh = mesh
        _entered.meshes.append(mesh)

    def __enter__(self) -> Any:
        return self._mesh

    def __exit__(self, *error: object) -> None:
        _entered.meshes.pop()


@contextlib.contextmanager
def use_abstract_mesh(mesh: AbstractMesh):
    """A context in which `mesh` is the current one."""
    with set_mesh(mesh):
        yield


use_mesh = set_mesh
