"""How an array lies over devices.

A sharding is what the engine wants to know of the place of a buffer. There is one `SingleDeviceSharding` per
device, so that equal places are the same object and comparing them costs nothing.
"""

from typing import Any

from purax.xla import door

_instances: dict[Any, "SingleDeviceSharding"] = {}
_REPLICATED = door.HloSharding.replicate()


class SingleDeviceSharding(door.EngineSingleDeviceSharding):
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

    def __new__(cls, device: Any, memory_kind: str | None = None) -> "SingleDeviceSharding":
        key = device if memory_kind is None else (device, memory_kind)
        instance = _instances.get(key)
        if instance is None:
            instance = super().__new__(cls)
            instance.__init__(device, memory_kind)
            instance = _instances.setdefault(key, instance)
        return instance

    def __init__(self, device: Any, memory_kind: str | None = None) -> None:
        if "_device_set" in self.__dict__:
            return
        if not isinstance(device, door.Device):
            raise TypeError(f"SingleDeviceSharding needs a device, as from devices(), not {device!r}")
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

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of one device's part."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Any, tuple[slice, ...]]:
        """Which part of an array of `global_shape` each device holds."""
        return {self._device: (slice(None),) * len(global_shape)}

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
        raise TypeError("a SingleDeviceSharding names a device of this process and cannot be pickled")

    def __repr__(self) -> str:
        default = self._device.default_memory().kind
        memory = "" if self.memory_kind in (None, default) else f", memory_kind={self.memory_kind!r}"
        return f"SingleDeviceSharding(device={self._device}{memory})"


def single_device_sharding(device: Any) -> SingleDeviceSharding:
    """The sharding of arrays on `device`: `SingleDeviceSharding(device)`, faster."""
    return _instances.get(device) or SingleDeviceSharding(device)
