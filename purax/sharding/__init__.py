"""How arrays are sharded over devices, as `jax.sharding`: meshes with named axes, partition specifications, shardings.

The runtime needs `mesh` and `shardings` before there is anything to compute with, so public names are looked up when
they are first used.
"""

import importlib as _importlib
from typing import Any as _Any

from purax.errors import shown as _shown

_FUNCTIONS = {
    "AbstractDevice": "purax.core.specs",
    "AbstractMesh": "purax.core.specs",
    "AxisType": "purax.core.specs",
    "ManualAxisType": "purax.core.manual_axes",
    "Mesh": "purax.sharding.mesh",
    "NamedSharding": "purax.sharding.shardings",
    "PartitionSpec": "purax.core.specs",
    "Sharding": "purax.xla.jaxlib_api:EngineSharding",
    "SingleDeviceSharding": "purax.sharding.shardings",
    "auto_axes": "purax.sharding.explicit",
    "explicit_axes": "purax.sharding.explicit",
    "get_abstract_mesh": "purax.sharding.mesh",
    "get_mesh": "purax.sharding.mesh",
    "make_single_device_sharding": "purax.sharding.shardings",
    "reshard": "purax.sharding.constraints",
    "set_mesh": "purax.sharding.mesh",
    "use_abstract_mesh": "purax.sharding.mesh",
    "use_mesh": "purax.sharding.mesh",
}

__all__ = list(_FUNCTIONS)


def __getattr__(name: str) -> _Any:
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'purax.sharding' has no attribute {_shown(name)}")
    path, _, own_name = _FUNCTIONS[name].partition(":")
    globals()[name] = value = getattr(_importlib.import_module(path), own_name or name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS})
