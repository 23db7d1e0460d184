"""Devices in the shape of a mesh, for `purax.sharding.Mesh`.

Devices that are neighbours in the order of their numbers stay neighbours along the last axes, which are those that
communicate most; processes, or slices of machines, are kept apart along the outer factors of a hybrid mesh.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.limits import finite
from purax.xla import client

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]


# Functions that arrange the devices of a kind into a mesh, by the kind: (shape, devices) -> an array of them, or None.
device_kind_handler_dict: dict[str, Any] = {}


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices in an array of a given shape.

    Args:
        mesh_shape: the size of each axis, from the one that communicates least to the one that communicates most.
        devices: the devices; all of the default platform unless given.
        contiguous_submeshes: accepted: the devices of a process are always neighbours.
        allow_split_physical_axes: accepted, without effect.

    Returns:
        An array of devices.

    >>> import purax as px
    >>> from purax.experimental import mesh_utils
    >>> devices = mesh_utils.create_device_mesh((1, 1), px.devices()[:1])
    >>> px.sharding.Mesh(devices, ("data", "model")).axis_sizes
    (1, 1)
    """
    shape = tuple(int(size) for size in finite(mesh_shape))
    given = list(client.devices() if devices is None else finite(devices))
    if math.prod(shape) != len(given):
        raise ValueError(
            f"create_device_mesh: the number of devices, {len(given)}, must equal the product of mesh_shape {shape}, "
            f"{math.prod(shape)}. Give the devices to use: devices=purax.devices()[:{math.prod(shape)}]."
        )
    handler = device_kind_handler_dict.get(getattr(given[0], "device_kind", "")) if given else None
    arranged = None if handler is None else handler(shape, given)
    return _shaped(given, shape) if arranged is None else arranged


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Devices in an array for two networks: a fast one within groups of devices and a slow one between them.

    Args:
        mesh_shape: the factor of each axis within a group.
        dcn_mesh_shape: the factor of each axis over groups.
        devices: the devices; all of the default platform unless given.
        process_is_granule: whether a group is a process; otherwise it is a slice (`device.slice_index`).
        should_sort_granules_by_key: whether groups come in the order of their numbers.
        allow_split_physical_axes: accepted, without effect.

    Returns:
        An array of devices of shape `mesh_shape * dcn_mesh_shape`.

    >>> import purax as px
    >>> from purax.experimental import mesh_utils
    >>> mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1), px.devices()[:1], process_is_granule=True).shape
    (1, 1)
    """
    inner, outer = tuple(map(int, finite(mesh_shape))), tuple(map(int, finite(dcn_mesh_shape)))
    if len(inner) != len(outer):
        raise ValueError(
            f"create_hybrid_device_mesh: mesh_shape {inner} and dcn_mesh_shape {outer} must have the same length"
        )
    attribute = "process_index" if process_is_granule else "slice_index"
    groups: dict[Any, list[Any]] = {}
    for device in client.devices() if devices is None else finite(devices):
        if not hasattr(device, attribute):
            raise ValueError(
                f"create_hybrid_device_mesh: {device} has no {attribute}; with process_is_granule=True, processes "
                "are the groups"
            )
        groups.setdefault(getattr(device, attribute), []).append(device)
    keys = sorted(groups) if should_sort_granules_by_key else list(groups)
    if len(keys) != math.prod(outer):
        raise ValueError(
            f"create_hybrid_device_mesh: the number of groups of devices, {len(keys)} (by {attribute}), must equal the "
            f"product of dcn_mesh_shape {outer}, {math.prod(outer)}"
        )
    meshes = [create_device_mesh(inner, groups[key]) for key in keys]
    blocks = np.empty(outer + inner, object)
    for position, mesh in zip(np.ndindex(*outer), meshes, strict=True):
        blocks[position] = mesh
    rank = len(inner)
    order = [axis for n in range(rank) for axis in (n, rank + n)]
    return blocks.transpose(order).reshape([a * b for a, b in zip(outer, inner, strict=True)])


def _shaped(devices: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(devices), object)
    array[:] = devices
    return array.reshape(shape)
