"""How arrays lie over devices, as `jax.sharding`: meshes with named axes, partition specifications, shardings."""

# ruff: noqa: F401
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
