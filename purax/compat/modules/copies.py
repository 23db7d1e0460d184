"""Arrays with one part, or a copy, for each device, as old programs make them for `pmap`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.api.transfer import device_put
from purax.numpy import broadcast_to, stack
from purax.sharding.mesh import Mesh, PartitionSpec
from purax.sharding.shardings import NamedSharding
from purax.tree_util import tree_map

__all__ = ["device_put_replicated", "device_put_sharded"]


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Arrays with a new first axis, of which each device has one part, as `pmap` takes them.

    Args:
        shards: a tree of arrays for each device.
        devices: the devices.
    """
    if len(shards) != len(devices):
        raise ValueError(f"device_put_sharded: {len(shards)} shards for {len(devices)} devices")
    return tree_map(lambda *parts: device_put(stack(parts), _over(devices)), *shards)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """Arrays with a new first axis, along which each device has a copy, as `pmap` takes them.

    Args:
        x: a tree of arrays.
        devices: the devices.
    """
    count = len(devices)
    return tree_map(lambda y: device_put(broadcast_to(y, (count, *np.shape(y))), _over(devices)), x)


def _over(devices: Sequence[Any]) -> NamedSharding:
    return NamedSharding(Mesh(np.array(devices, object), ("devices",)), PartitionSpec("devices"))
