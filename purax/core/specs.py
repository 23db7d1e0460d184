"""How arrays lie over meshes of devices, in words: the names and sizes of a mesh's axes, and which axis of an array is
cut along which of them. Nothing here knows a device.

An `AbstractSharding` is what a type says of the place of an array (`ShapedArray.layout`); it is interned, and names
axes of type `Explicit` only.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections import OrderedDict
from typing import Any

from purax.core.limits import finite, shallow
from purax.errors import shown


class AxisType(enum.Enum):
    """Who decides how arrays lie along an axis of a mesh: the compiler (`Auto`), types (`Explicit`), or the program."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class PartitionSpec(tuple):
    """For each axis of an array the axis of a mesh that it is cut along: a name, a tuple of names, or None.

    Axes of the array that have no entry are not cut.

    >>> PartitionSpec("x", None, ("y", "z"))
    PartitionSpec('x', None, ('y', 'z'))
    """

    UNCONSTRAINED = type("Unconstrained", (), {"__repr__": lambda self: "UNCONSTRAINED"})()

    def __new__(
        cls, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
    ) -> PartitionSpec:
        if unreduced or reduced:
            raise NotImplementedError(
                "PartitionSpec: unreduced and reduced axes are not supported; sum with `psum` inside a shard_map"
            )
        entries = []
        for entry in partitions:
            if isinstance(entry, (tuple, list)):
                entry = shallow(tuple(entry))
                entry = entry[0] if len(entry) == 1 else entry or None
            entries.append(entry)
        return super().__new__(cls, entries)

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> None:
        super().__init__()

    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> Any:
        return PartitionSpec, tuple(self)

    def __add__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*tuple(self), *tuple(other))

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and tuple.__eq__(self, tuple(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return PartitionSpec(*found) if isinstance(index, slice) else found

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries."""
        return tuple(self)

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> PartitionSpec:
        """The same with other entries.

        >>> PartitionSpec("x").update(partitions=("y", None))
        PartitionSpec('y', None)
        """
        entries = self if partitions is None else finite(partitions)
        return PartitionSpec(*entries, unreduced=unreduced or (), reduced=reduced or ())

    @property
    def names(self) -> tuple[tuple[Any, ...], ...]:
        """For each entry the names of its axes, as a tuple."""
        return tuple(map(names_of, self))

    @property
    def all_names(self) -> tuple[Any, ...]:
        """The names of all axes, in order."""
        return tuple(name for names in self.names for name in names)


def names_of(entry: Any) -> tuple[Any, ...]:
    """The names of the axes in one entry of a spec."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


class AxesByType:
    """The axes of a mesh by their `AxisType`."""

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]

    def _axes(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t == kind)

    def _are_all(self, kind: AxisType) -> bool:
        return bool(self.axis_names) and len(self._axes(kind)) == len(self.axis_names)

    auto_axes = property(lambda self: self._axes(AxisType.Auto))
    explicit_axes = property(lambda self: self._axes(AxisType.Explicit))
    manual_axes = property(lambda self: self._axes(AxisType.Manual))
    are_all_axes_auto = property(lambda self: self._are_all(AxisType.Auto))
    are_all_axes_explicit = property(lambda self: self._are_all(AxisType.Explicit))
    are_all_axes_manual = property(lambda self: self._are_all(AxisType.Manual))


@dataclasses.dataclass(frozen=True)
class AbstractDevice:
    """The kind of the devices of an `AbstractMesh`.

    >>> AbstractDevice(device_kind="TPU v6 lite", num_cores=1, platform="tpu").platform
    'tpu'
    """

    device_kind: str
    num_cores: int | None
    platform: str


class AbstractMesh(AxesByType):
    """The shape of a mesh: names, sizes and types of its axes, without devices.

    >>> AbstractMesh((4, 2), ("x", "y")).shape["y"]
    2
    """

    def __init__(
        self,
        axis_sizes: Any,
        axis_names: Any = None,
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        if axis_names is None:  # pairs of names and sizes
            pairs = [(name, size) for name, size in finite(axis_sizes)]
            axis_names, axis_sizes = [n for n, _ in pairs], [s for _, s in pairs]
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else shallow(tuple(finite(axis_names)))
        self.axis_sizes = tuple(int(size) for size in finite(axis_sizes))
        self.axis_types = as_axis_types(axis_types, len(self.axis_names))
        self.shape = OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))
        self.size = math.prod(self.axis_sizes)
        self.shape_tuple = tuple(self.shape.items())
        self.abstract_device = abstract_device

    @property
    def empty(self) -> bool:
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> AbstractMesh:
        """The mesh with other types of some axes."""
        types = [name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)]
        return AbstractMesh(
            self.axis_sizes, self.axis_names, tuple(types), abstract_device=self.abstract_device
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and (self.shape_tuple, self.axis_types) == (
            other.shape_tuple,
            other.axis_types,
        )

    def __hash__(self) -> int:
        return hash((self.shape_tuple, self.axis_types))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple)
        types = f", axis_types=({', '.join(map(repr, self.axis_types))},)" if self.explicit_axes else ""
        return f"AbstractMesh({sizes}{types})"


def as_axis_types(axis_types: Any, count: int) -> tuple[AxisType, ...]:
    """An `AxisType` for each of `count` axes, as a user gave them: one for all, one for each, or None."""
    if axis_types is None:
        return (AxisType.Auto,) * count
    if isinstance(axis_types, AxisType):
        return (axis_types,) * count
    types = tuple(finite(axis_types))
    if len(types) != count or not all(isinstance(kind, AxisType) for kind in types):
        raise ValueError(
            f"axis_types must have one AxisType for each of {count} axes, got {shown(axis_types)}"
        )
    return types


class AbstractSharding:
    """How an array is sharded over the shape of a mesh: what its type says of its place.

    Arguments:
        mesh: the shape of the mesh.
        spec: for each axis of the array, the axes of the mesh that it is cut along.

    Returns:
        The one instance for these arguments.

    >>> mesh = AbstractMesh((4, 2), ("x", "y"), AxisType.Explicit)
    >>> AbstractSharding(mesh, PartitionSpec("x", None)) is AbstractSharding(mesh, PartitionSpec("x", None))
    True
    """

    __slots__ = ("mesh", "spec")
    mesh: AbstractMesh
    spec: PartitionSpec
    memory_kind = None

    def __new__(cls, mesh: AbstractMesh, spec: PartitionSpec) -> AbstractSharding:
        key = (mesh, tuple(spec))
        found = _shardings.get(key)
        if found is None:
            found = object.__new__(cls)
            found.mesh, found.spec = mesh, PartitionSpec(*spec)
            found = _shardings.setdefault(key, found)
        return found

    @property
    def is_fully_replicated(self) -> bool:
        """Whether no axis is cut."""
        return all(axis is None for axis in self.spec)

    def as_type(self, ndim: int) -> AbstractSharding | None:
        """What a type of `ndim` axes says of arrays that lie so: the axes that are `Explicit`; None if none is."""
        return layout_of(self.mesh, self.spec, ndim)

    def update(self, **changes: Any) -> AbstractSharding:
        """The sharding with another mesh or spec."""
        given: dict[str, Any] = {"mesh": self.mesh, "spec": self.spec} | changes
        return AbstractSharding(**given)

    def __reduce__(self) -> Any:
        return AbstractSharding, (self.mesh, self.spec)

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r})"


_shardings: dict[tuple[AbstractMesh, tuple[Any, ...]], AbstractSharding] = {}


def layout_of(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> AbstractSharding | None:
    """The `Explicit` part of a spec for arrays of `ndim` axes; None if the mesh has no such axes."""
    explicit = mesh.explicit_axes
    if not explicit:
        return None
    entries = [tuple(n for n in names if n in explicit) for names in spec.names[:ndim]]
    return AbstractSharding(mesh, PartitionSpec(*entries, *(None,) * (ndim - len(entries))))
