"""Meshes of devices with named axes, and the specifications that say which axis of an array is cut along which of them.

A `Mesh` is compared by its devices, their order and the names and types of its axes. `AbstractMesh` is its shape alone.
"""

from __future__ import annotations

import contextlib
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core.limits import finite, shallow
from purax.core.source import located
from purax.core.specs import AbstractMesh, AxesByType, PartitionSpec, as_axis_types
from purax.errors import shown
from purax.scopes import Scope, scoped
from purax.xla import client, jaxlib_api


class Mesh(AxesByType, Scope, contextlib.ContextDecorator):
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
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else shallow(tuple(finite(axis_names)))
        if array.ndim != len(self.axis_names):
            raise ValueError(
                f"a Mesh of an array of devices with {array.ndim} axes (shape {array.shape}) needs as many names, got "
                f"{len(self.axis_names)}: {shown(self.axis_names)}"
            )
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"the names of a Mesh's axes must differ, got {shown(self.axis_names)}")
        for device in array.flat:
            if not isinstance(device, jaxlib_api.Device):
                raise TypeError(f"a Mesh is made of devices, as from purax.devices(); got {shown(device)}")
        flat = tuple(array.flat)
        if len(set(flat)) != len(flat):
            raise ValueError("a Mesh must not contain a device twice")
        array.flags.writeable = False
        self.devices = array
        self.axis_types = as_axis_types(axis_types, array.ndim)
        self.axis_sizes = array.shape
        self.shape = OrderedDict(zip(self.axis_names, array.shape, strict=True))
        self.size = array.size
        self.flat = flat
        self._key = (flat, array.shape, self.axis_names, self.axis_types)
        self._hash = hash(self._key)
        self.frame = self._key[:3]  # all but the types of the axes, which a program may change on its way
        self.abstract_mesh = AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)
        self.device_list: Any = jaxlib_api.DeviceList(flat) if flat else None
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
    def is_multi_process(self) -> bool:
        return len({d.process_index for d in self.flat}) > 1

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return [d for d in self.flat if d.process_index == d.client.process_index()]

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that is made of the devices of this process, which must be a box of it."""
        is_local = np.array([d.process_index == d.client.process_index() for d in self.flat], bool)
        is_local = is_local.reshape(self.devices.shape)
        if is_local.all():
            return self
        if not is_local.any():
            raise ValueError("no device of this process is in the mesh, so that it has no local_mesh")
        box = tuple(slice(places.min(), places.max() + 1) for places in np.nonzero(is_local))
        if not is_local[box].all():
            raise ValueError("the devices of this process are not a box of the mesh, so that it has no local_mesh")
        return self.update(devices=self.devices[box])

    @property
    def is_scalar(self) -> bool:
        """Whether the mesh has no axes: one device, and no name."""
        return not self.axis_names and self.size == 1

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The mesh with other devices, names or types of its axes; what is None stays.

        >>> import purax as px
        >>> Mesh(px.devices()[:1], ("data",)).update(axis_names=("model",)).axis_names
        ('model',)
        """
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

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

    def enter(self, entered: list[Any]) -> Mesh:
        override = config.override(mesh=self)
        entered.append(override)
        self._entered.append(override)
        override.__enter__()
        return self

    def leave(self, entered: list[Any]) -> None:
        if not entered:
            entered.append(self._entered[-1])
        entered[0].close()
        if entered[0] in self._entered:
            self._entered.remove(entered[0])


def _restore_mesh(ids: Any, shape: Any, names: Any, types: Any) -> Mesh:
    return Mesh(np.array([client.device_of(*key) for key in ids], object).reshape(shape), names, types)


_EMPTY = AbstractMesh((), ())


def current_mesh() -> Mesh | AbstractMesh | None:
    """The innermost mesh of a `with mesh:`, `set_mesh` or `use_abstract_mesh`, or None."""
    return config.mesh


def get_mesh() -> Any:
    """The mesh that bare `PartitionSpec`s refer to here; an empty one if there is none."""
    return config.mesh or _EMPTY


@scoped
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[AbstractMesh]:
    """Makes the shape `mesh` the one that bare `PartitionSpec`s refer to, in a `with` block.

    If it is the shape of the mesh in use, up to the types of its axes, that one's devices stay in use.

    >>> with use_abstract_mesh(AbstractMesh((4, 2), ("x", "y"))):
    ...     get_abstract_mesh()
    AbstractMesh('x': 4, 'y': 2)
    """
    inner: Any = mesh
    outer = config.mesh
    if isinstance(outer, Mesh) and outer.shape_tuple == mesh.shape_tuple:
        inner = Mesh(outer.devices, outer.axis_names, mesh.axis_types)
    with config.override(mesh=inner):
        yield mesh


def get_abstract_mesh() -> AbstractMesh:
    """The shape of `get_mesh()`."""
    return get_mesh().abstract_mesh


class set_mesh(Scope):  # noqa: N801
    """Makes `mesh` the one that bare `PartitionSpec`s refer to: from now on, or in a `with` block."""

    def __init__(self, mesh: Mesh | None):
        self._override = config.override(mesh=mesh)
        self._override.__enter__()

    def enter(self, _: list[Any]) -> None:
        return None

    def leave(self, _: list[Any]) -> None:
        self._override.close()


@scoped
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
    shape = tuple(int(size) for size in finite(axis_shapes))
    if len(shape) != len(axis_names):
        raise ValueError(
            f"make_mesh: axis_shapes {shape} and axis_names {tuple(axis_names)} must have the same length"
        )
    given = list(client.devices() if devices is None else devices)
    needed = math.prod(shape)
    if needed > len(given):
        raise located(
            ValueError,
            f"make_mesh: a mesh of shape {shape} needs {needed} devices, there are {len(given)}. "
            f"{more_devices(needed)}",
        )
    return Mesh(np.array(given[:needed], object).reshape(shape), axis_names, axis_types)


def more_devices(needed: int) -> str:
    """How to get more devices, for error messages."""
    return (
        f"For {needed} CPU devices, set purax.config.update('num_cpu_devices', {needed}) before the first "
        f"operation, or XLA_FLAGS=--xla_force_host_platform_device_count={needed} in the environment."
    )
