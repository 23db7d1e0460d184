"""How arrays lie over devices, as `jax.sharding`: meshes with named axes, partition specifications, shardings."""

from purax.core.manual_axes import ManualAxisType
from purax.core.specs import AbstractDevice, AbstractMesh, AxisType, PartitionSpec
from purax.transforms.explicit_sharding import auto_axes, explicit_axes
from purax.transforms.sharding_constraint import reshard
from purax.xla.door import EngineSharding as Sharding
from purax.xla.mesh import (
    Mesh,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
    use_mesh,
)
from purax.xla.sharding import NamedSharding, SingleDeviceSharding

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding", "PartitionSpec",
    "Sharding", "SingleDeviceSharding", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
    "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh", "use_mesh",
]  # fmt: skip


def make_single_device_sharding(device: object, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of arrays that lie on one device.

    Args:
        device: the device.
        memory_kind: which of its memories; the default one when left out.
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)
