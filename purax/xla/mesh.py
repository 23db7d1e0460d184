"""Meshes of devices with named axes, and the specifications that say which axis of an array is cut along which of them.

A `Mesh` is compared by its devices, their order and the names of its axes. `AbstractMesh` is its shape alone.
"""

from __future__ import annotations

import contextlib
import enum
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core import source
from purax.xla import client, door


class AxisType(enum.Enum):
    """Who decides how arrays lie along an axis of a mesh: the compiler (`Auto`), types (`Explicit`), or the program.

    purax gives `Explicit` axes to the compiler too; where the user asks for a sharding it is what the result has.
    """

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
                entry = tuple(entry)
                entry = entry[0] if len(entry) == 1 else entry or None
            entries.append(entry)
        return super().__new__(cls, entries)

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()) -> None:
        super().__init__()

    unreduced = reduced = frozenset()

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> Any:
        return PartitionSpec, tuple(self)

    def __add__(self, other: Any) -> PartitionSpec:  # type: ignore[override]
        return PartitionSpec(*tuple(self), *tuple(other))

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and tuple.__eq__(self, tuple(other))

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return PartitionSpec(*found) if isinstance(index, slice) else found

    @property
    def names(self) -> tuple[tuple[Any, ...], ...]:
        """For each entry the names of its axes, as a tuple."""
        return tuple(
            () if e is None or e is PartitionSpec.UNCONSTRAINED else e if isinstance(e, tuple) else (e,)
            for e in self
        )

    @property
    def all_names(self) -> tuple[Any, ...]:
        """The names of all axes, in order."""
        return tuple(name for names in self.names for name in names)


class _AxesByType:
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


class AbstractMesh(_AxesByType):
    """The shape of a mesh: names and sizes of its axes, without devices.

    >>> AbstractMesh((4, 2), ("x", "y")).shape["y"]
    2
    """

    def __init__(self, axis_sizes: Any, axis_names: Any = None, axis_types: Any = None):
        if axis_names is None:  # pairs of names and sizes
            pairs = [(name, size) for name, size in axis_sizes]
            axis_names, axis_sizes = [n for n, _ in pairs], [s for _, s in pairs]
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.axis_sizes = tuple(int(size) for size in axis_sizes)
        self.axis_types = _axis_types(axis_types, len(self.axis_names))
        self.shape = OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))
        self.size = math.prod(self.axis_sizes)
        self.shape_tuple = tuple(self.shape.items())

    @property
    def empty(self) -> bool:
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> AbstractMesh:
        """The mesh with other types of some axes."""
        types = [name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)]
        return AbstractMesh(self.axis_sizes, self.axis_names, tuple(types))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and (self.shape_tuple, self.axis_types) == (
            other.shape_tuple,
            other.axis_types,
        )

    def __hash__(self) -> int:
        return hash((self.shape_tuple, self.axis_types))

    def __repr__(self) -> str:
        return f"AbstractMesh({', '.join(f'{n!r}: {s}' for n, s in self.shape_tuple)})"


def _axis_types(axis_types: Any, count: int) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * count
    if isinstance(axis_types, AxisType):
        return (axis_types,) * count
    types = tuple(axis_types)
    if len(types) != count or not all(isinstance(kind, AxisType) for kind in types):
        raise ValueError(f"axis_types must have one AxisType for each of {count} axes, got {axis_types!r}")
    return types


class Mesh(_AxesByType, contextlib.ContextDecorator):
    """Devices arranged in a box whose axes have names.

    Arguments:
        devices: an array of devices, or nested lists of them.
        axis_names: a name for each axis.
        axis_types: an `AxisType` for each axis; see there.

    `with mesh:` makes it the mesh that bare `PartitionSpec`s refer to.

    >>> import purax as px
    >>> Mesh(px.devices()[:1], ("data",)).shape["data"]
    1
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None):
        array = np.array(devices, dtype=object)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if array.ndim != len(self.axis_names):
            raise ValueError(
                f"a Mesh of an array of devices with {array.ndim} axes (shape {array.shape}) needs as many names, got "
                f"{len(self.axis_names)}: {self.axis_names!r}"
            )
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"the names of a Mesh's axes must differ, got {self.axis_names!r}")
        for device in array.flat:
            if not isinstance(device, door.Device):
                raise TypeError(f"a Mesh is made of devices, as from purax.devices(); got {device!r}")
        flat = tuple(array.flat)
        if len(set(flat)) != len(flat):
            raise ValueError("a Mesh must not contain a device twice")
        array.flags.writeable = False
        self.devices = array
        self.axis_types = _axis_types(axis_types, array.ndim)
        self.axis_sizes = array.shape
        self.shape = OrderedDict(zip(self.axis_names, array.shape, strict=True))
        self.size = array.size
        self.flat = flat
        self._key = (flat, array.shape, self.axis_names, self.axis_types)
        self._hash = hash(self._key)
        self.device_list = door.DeviceList(flat) if flat else None
        self._entered: list[Any] = []
        self.shardings: dict[PartitionSpec, Any] = {}  # those in use, by their specs

    @property
    def empty(self) -> bool:
        return self.size == 0

    @property
    def device_ids(self) -> np.ndarray:
        return np.array([d.id for d in self.flat], int).reshape(self.devices.shape)

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(self.shape.items())

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    @property
    def is_multi_process(self) -> bool:
        return len({d.process_index for d in self.flat}) > 1

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return [d for d in self.flat if d.process_index == d.client.process_index()]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        ids = [(d.platform, d.id) for d in self.flat]
        return _restore_mesh, (ids, self.devices.shape, self.axis_names, self.axis_types)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        types = f", axis_types=({', '.join(map(repr, self.axis_types))},)" if self.axis_types else ""
        return f"Mesh({sizes}{types})"

    def __enter__(self) -> Mesh:
        override = config.override(mesh=self)
        override.__enter__()
        self._entered.append(override)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._entered.pop().__exit__(*exception)


def _restore_mesh(ids: Any, shape: Any, names: Any, types: Any) -> Mesh:
    known = {(d.platform, d.id): d for d in client.devices()}
    return Mesh(np.array([known[key] for key in ids], object).reshape(shape), names, types)


_EMPTY = AbstractMesh((), ())


def current_mesh() -> Mesh | None:
    """The innermost mesh of a `with mesh:` or `set_mesh`, or None."""
    return config.mesh


def get_mesh() -> Any:
    """The mesh that bare `PartitionSpec`s refer to here; an empty one if there is none."""
    return config.mesh or _EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """The shape of `get_mesh()`."""
    return get_mesh().abstract_mesh


class set_mesh(contextlib.AbstractContextManager):  # noqa: N801
    """Makes `mesh` the one that bare `PartitionSpec`s refer to: from now on, or in a `with` block."""

    def __init__(self, mesh: Mesh | None):
        self._override = config.override(mesh=mesh)
        self._override.__enter__()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: Any) -> None:
        self._override.__exit__(*exception)


@contextlib.contextmanager
def use_mesh(mesh: Mesh) -> Iterator[Mesh]:
    """Makes `mesh` the one that bare `PartitionSpec`s refer to, in a `with` block."""
    with mesh:
        yield mesh


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Any],
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of the given shape.

    Args:
        axis_shapes: the size of each axis.
        axis_names: the name of each axis.
        axis_types: the `AxisType` of each axis.
        devices: the devices; all of the default platform unless given. Of more devices than needed, the first are used.

    Returns:
        The mesh; devices that are neighbours in it are neighbours in `devices`.

    >>> make_mesh((1, 1), ("x", "y"))
    Mesh('x': 1, 'y': 1, axis_types=(Auto, Auto,))
    """
    shape = tuple(int(size) for size in axis_shapes)
    if len(shape) != len(axis_names):
        raise ValueError(
            f"make_mesh: axis_shapes {shape} and axis_names {tuple(axis_names)} must have the same length"
        )
    given = list(client.devices() if devices is None else devices)
    needed = math.prod(shape)
    if needed > len(given):
        raise source.with_location(
            ValueError(
                f"make_mesh: a mesh of shape {shape} needs {needed} devices, there are {len(given)}. "
                f"{more_devices(needed)}"
            )
        )
    return Mesh(np.array(given[:needed], object).reshape(shape), axis_names, axis_types)


def more_devices(needed: int) -> str:
    """How to get more devices, for error messages."""
    return (
        f"For {needed} CPU devices, set purax.config.update('num_cpu_devices', {needed}) before the first "
        f"operation, or XLA_FLAGS=--xla_force_host_platform_device_count={needed} in the environment."
    )
