"""Arrays over several devices, made of parts that are there or that a function makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.execution.device_put import put
from purax.interpreters.arguments import to_array
from purax.sharding import shards
from purax.sharding.shardings import NamedSharding
from purax.tree_util import tree_map
from purax.xla.array import DeviceArray, PlacedArray


def make_array_from_callback(
    shape: Sequence[int], sharding: Any, data_callback: Callable, dtype: Any = None
) -> DeviceArray:
    """An array whose parts a function makes, each process those of its own devices.

    Args:
        shape: of the whole array.
        sharding: how it is sharded over devices.
        data_callback: gets the index of a part, a tuple of slices, and returns the part.
        dtype: of the array; that of the parts unless given.

    Returns:
        The array.

    >>> import purax as px, numpy as np
    >>> from purax.sharding import Mesh, NamedSharding, PartitionSpec
    >>> rows = NamedSharding(Mesh(px.devices()[:1], ("data",)), PartitionSpec("data"))
    >>> make_array_from_callback((3,), rows, lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    shape = tuple(finite(shape))
    if not isinstance(sharding, NamedSharding):
        return put(_part(data_callback((slice(None),) * len(shape)), dtype), sharding)
    wanted = sharding.shard_shape(shape)
    made: dict[Any, np.ndarray] = {}
    devices, parts = [], []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        key = tuple((s.start, s.stop) for s in index)
        if key not in made:
            made[key] = _part(data_callback(index), dtype)
            if made[key].shape != wanted:
                raise located(
                    ValueError,
                    f"make_array_from_callback: data_callback returned a part of shape {made[key].shape} for "
                    f"{index}, but the parts of an array of shape {shape} have shape {wanted}",
                )
        devices.append(device)
        parts.append(made[key])
    aval = ShapedArray(shape, parts[0].dtype, sharding=sharding)
    return PlacedArray(aval, shards.join(parts, devices, sharding, aval), sharding, True)


def _part(value: Any, dtype: Any) -> np.ndarray:
    value = np.asarray(value if isinstance(value, np.ndarray) else to_array(value))
    wanted = dtypes.as_dtype(dtype) if dtype is not None else dtypes.canonicalize_dtype(value.dtype)
    return np.ascontiguousarray(value, wanted).reshape(value.shape)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> DeviceArray:
    """An array made of parts that lie on their devices already; nothing is copied.

    Args:
        shape: of the whole array.
        sharding: how it is sharded over devices.
        arrays: the parts on the devices of this process, in any order.
        dtype: of the array, needed where this process has no part.
    """
    shape = tuple(finite(shape))
    arrays = list(finite(arrays))
    for x in arrays:
        if not isinstance(x, Array):
            raise located(
                TypeError,
                f"make_array_from_single_device_arrays: arrays must be arrays on devices, got {shown(x)}",
            )
    by_device = {next(iter(x.devices())): x for x in arrays}
    if not isinstance(sharding, NamedSharding):
        return put(next(iter(by_device.values())), sharding)
    wanted = sharding.shard_shape(shape)
    own = [d for d in sharding.mesh.flat if d in sharding.addressable_devices]
    missing = [d for d in own if d not in by_device]
    if missing or len(by_device) != len(own):
        raise located(
            ValueError,
            f"make_array_from_single_device_arrays: {sharding} has {len(own)} devices of this process, got "
            f"arrays on {len(by_device)}; there is none on {', '.join(map(str, missing)) or 'no device of it'}",
        )
    for device in own:
        if by_device[device].shape != wanted:
            raise located(
                ValueError,
                f"make_array_from_single_device_arrays: the part on {device} has shape "
                f"{by_device[device].shape}, but the parts of an array of shape {shape} under "
                f"{sharding.spec} have shape {wanted}",
            )
    aval = ShapedArray(shape, by_device[own[0]].dtype if own else dtypes.as_dtype(dtype), sharding=sharding)
    buffers = [by_device[d].buffer_on(d) for d in own]
    return PlacedArray(aval, shards.join(buffers, own, sharding, aval), sharding, True)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """An array, or a tree of them, of which each process has the part of its own devices.

    Args:
        sharding: how the whole arrays are sharded over devices.
        local_data: this process's part, NumPy arrays.
        global_shape: of the whole arrays; by default an axis that is cut over processes has the parts of all of them.

    >>> import purax as px, numpy as np
    >>> from purax.sharding import Mesh, NamedSharding, PartitionSpec
    >>> rows = NamedSharding(Mesh(px.devices()[:1], ("data",)), PartitionSpec("data"))
    >>> make_array_from_process_local_data(rows, np.arange(3.0))
    Array([0., 1., 2.], dtype=float32)
    """
    return tree_map(lambda x: _from_local(sharding, np.asarray(x), global_shape), local_data)


def _from_local(sharding: Any, local: np.ndarray, global_shape: Any) -> DeviceArray:
    if not isinstance(sharding, NamedSharding) or sharding.is_fully_addressable:
        return put(to_array(local), sharding)
    shape = list(global_shape) if global_shape is not None else list(local.shape)
    parts = sharding.parts(local.ndim)
    probe = sharding.addressable_devices_indices_map(parts)
    mine = [sorted({index[axis].start or 0 for index in probe.values()}) for axis in range(local.ndim)]
    if global_shape is None:
        shape = [n * p // max(len(m), 1) for n, p, m in zip(local.shape, parts, mine, strict=True)]
    first = [m[0] * n // p for m, n, p in zip(mine, shape, parts, strict=True)]

    def part(index):
        ranges = [s.indices(n) for s, n in zip(index, shape, strict=True)]
        return local[tuple(slice(low - f, high - f) for (low, high, _), f in zip(ranges, first, strict=True))]

    return make_array_from_callback(tuple(shape), sharding, part)
