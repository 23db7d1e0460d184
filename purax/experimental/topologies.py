"""The devices of a machine as a description, for which meshes can be made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.core.source import located
from purax.errors import shown
from purax.experimental import mesh_utils
from purax.sharding.mesh import Mesh
from purax.xla import client
from purax.xla.jaxlib_api import Device

__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """The devices of a machine.

    Args:
        devices: in the order of their numbers.
    """

    def __init__(self, devices: list[Any]):
        self.devices = devices


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices that are there.

    Args:
        platform: "cpu", "cuda", …; the default one when left out.

    >>> from purax.experimental import topologies
    >>> len(topologies.get_attached_topology("cpu").devices) > 0
    True
    """
    return TopologyDescription(list(client.devices(platform)))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """The devices of a machine that is not there, which XLA knows by a plugin of its platform only.

    Args:
        topology_name: of the machine, such as "v4:2x2x1".
        platform: "tpu", …
        kwargs: what the plugin takes.
    """
    where = platform or client.default_backend()
    raise located(
        NotImplementedError,
        f"topology {shown(topology_name)} ({kwargs or 'no options'}) is not implemented for {where}: no plugin "
        "here describes devices that are not attached. Use get_attached_topology(), or a mesh of shapes alone: "
        "purax.sharding.AbstractMesh",
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh over the devices of a description.

    Args:
        topo: the description.
        mesh_shape: the size of each axis.
        axis_names: their names.
        contiguous_submeshes: whether the devices of a process lie together.
    """
    devices = mesh_utils.create_device_mesh(
        mesh_shape, topo.devices, contiguous_submeshes=contiguous_submeshes
    )
    return Mesh(devices, axis_names)
