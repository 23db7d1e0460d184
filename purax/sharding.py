"""How arrays lie over devices, as `jax.sharding`: meshes with named axes, partition specifications, shardings."""

# ruff: noqa: F401
from purax.transforms.sharding_constraint import with_sharding_constraint as reshard
from purax.xla.door import EngineSharding as Sharding
from purax.xla.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    PartitionSpec,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_mesh,
)
from purax.xla.sharding import NamedSharding, SingleDeviceSharding
