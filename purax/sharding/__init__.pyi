# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""How arrays are sharded over devices, as `jax.sharding`: meshes with named axes, partition specifications, shardings."""

from purax.core.manual_axes import ManualAxisType as ManualAxisType
from purax.core.specs import AbstractDevice as AbstractDevice
from purax.core.specs import AbstractMesh as AbstractMesh
from purax.core.specs import AxisType as AxisType
from purax.core.specs import PartitionSpec as PartitionSpec
from purax.sharding.constraints import reshard as reshard
from purax.sharding.explicit import auto_axes as auto_axes
from purax.sharding.explicit import explicit_axes as explicit_axes
from purax.sharding.mesh import Mesh as Mesh
from purax.sharding.mesh import get_abstract_mesh as get_abstract_mesh
from purax.sharding.mesh import get_mesh as get_mesh
from purax.sharding.mesh import set_mesh as set_mesh
from purax.sharding.mesh import use_abstract_mesh as use_abstract_mesh
from purax.sharding.mesh import use_mesh as use_mesh
from purax.sharding.shardings import NamedSharding as NamedSharding
from purax.sharding.shardings import SingleDeviceSharding as SingleDeviceSharding
from purax.sharding.shardings import make_single_device_sharding as make_single_device_sharding
from purax.xla.jaxlib_api import EngineSharding as Sharding

__all__ = ['AbstractDevice', 'AbstractMesh', 'AxisType', 'ManualAxisType', 'Mesh', 'NamedSharding', 'PartitionSpec', 'Sharding', 'SingleDeviceSharding', 'auto_axes', 'explicit_axes', 'get_abstract_mesh', 'get_mesh', 'make_single_device_sharding', 'reshard', 'set_mesh', 'use_abstract_mesh', 'use_mesh']
