"""Values over several devices: cutting an array into shards, putting it together again, and looking at the parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.sharding.shardings import NamedSharding
from purax.xla import client, execute, jaxlib_api


def put(value: np.ndarray, sharding: NamedSharding, aval: ShapedArray) -> Any:
    """A value that this process has as a whole, as a buffer cut up as `sharding` says.

    Processes each put the parts of their own devices.
    """
    parts = sharding.addressable_devices_indices_map(aval.shape)
    if sharding.is_fully_replicated:
        return join(
            [np.ascontiguousarray(value).reshape(aval.shape)] * len(parts), list(parts), sharding, aval
        )
    shape = sharding.shard_shape(aval.shape)
    pieces: dict[Any, np.ndarray] = {}
    arrays = []
    for index in parts.values():
        key = tuple([s.start for s in index])
        if key not in pieces:
            pieces[key] = np.ascontiguousarray(value[index]).reshape(shape)
        arrays.append(pieces[key])
    return join(arrays, list(parts), sharding, aval)


def join(parts: Sequence[Any], devices: Sequence[Any], sharding: NamedSharding, aval: ShapedArray) -> Any:
    """One buffer of its parts: NumPy arrays, or buffers on `devices` already."""
    client.check_not_abandoned(devices[0] if devices else sharding.mesh.flat[0])
    try:
        return jaxlib_api.put_many(aval, sharding, list(parts), list(devices), False)
    except jaxlib_api.EngineError as error:
        raise execute.engine_failure(error) from None


def to_numpy(buffer: Any) -> np.ndarray:
    """The value of a buffer over several devices; waits for it."""
    sharding = buffer._sharding
    if sharding.is_fully_replicated:
        return execute.to_numpy(buffer._fully_replicated_shard())
    if not sharding.is_fully_addressable:
        raise RuntimeError(
            f"an array of shape {tuple(buffer.aval.shape)} lies on devices of other processes too, so its value is not "
            "here. Read `x.addressable_shards`, or gather it: "
            "purax.experimental.multihost_utils.process_allgather(x)."
        )
    shape = tuple(buffer.aval.shape)
    result = np.empty(shape, buffer.aval.dtype)
    shards = {shard._sharding._device: shard for shard in buffer._arrays}
    for device, index in sharding.devices_indices_map(shape).items():
        result[index] = execute.to_numpy(shards[device])
    result.flags.writeable = False
    return result


class Shard:
    """The part of an array that one device holds.

    Attributes:
        device: the device.
        index: which part of the array it is, a tuple of slices.
        replica_id: 0 for the first device that holds this part, 1 for the second, …
        data: the part as an array, or None if the device belongs to another process.
    """

    __slots__ = ("_global_shape", "_sharding", "data", "device")

    def __init__(self, device: Any, sharding: Any, global_shape: tuple[int, ...], data: Any = None):
        self.device = device
        self._sharding = sharding
        self._global_shape = tuple(global_shape)
        self.data = data

    @property
    def index(self) -> tuple[slice, ...]:
        """Which part of the array it is."""
        return self._sharding.devices_indices_map(self._global_shape)[self.device]

    @property
    def replica_id(self) -> int:
        """How many devices before this one hold the same part."""
        places = self._sharding.devices_indices_map(self._global_shape)
        own, count = _key(places[self.device]), 0
        for device, index in places.items():
            if device == self.device:
                break
            count += _key(index) == own
        return count

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def shards_of(sharding: Any, shape: tuple[int, ...], data: dict[Any, Any]) -> list[Shard]:
    """The shards of an array in order of the devices; `data` has the parts that are here."""
    return [
        Shard(device, sharding, shape, data.get(device)) for device in sharding.devices_indices_map(shape)
    ]


def _key(index: tuple[slice, ...]) -> tuple[Any, ...]:
    return tuple((s.start, s.stop) for s in index)
