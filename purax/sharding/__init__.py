"""How arrays are sharded over devices, as `jax.sharding`: meshes with named axes, partition specifications, shardings.

A `Mesh` (`mesh`) names the axes of a box of devices, a `NamedSharding` (`shardings`) says how an array is sharded
over it, and `execution.placement` decides where a program runs: computation follows data. `execution.mesh_programs`
compiles a program for all devices of a mesh; Shardy partitions it as the shardings of the arguments and
`sharding_constraint`s say. The one mapping core is the primitive `shard_map`, a program on parts; `pmap` is a
`shard_map` over a mesh with one axis, compiled. Inside, collectives are lowered to XLA's, and `ShapedArray.vma` says
along which axes a value varies. A cotangent that varies where its value does not is summed over these axes
(`interpreters.transpose.as_constant_as`): that is all that derivatives need to know of devices. On the CPU, programs
that communicate run in turn (`xla.execute`), since two at once can wait for each other forever.

Over a mesh with axes of type `Explicit`, types say how arrays are sharded: `ShapedArray.layout`, an
`AbstractSharding`. After `infer`, the rule `lay_out` of a primitive gives the sharding of its result
(`primitives.layouts` has what the rules share); lowering puts each value where its type says. Shardings never change
values, so a rule that does not know raises. Two operations are the way out, `reshard` and `free`, which takes the
sharding from a type: `out_sharding=` is `reshard(f(free(x)))`, and so is `auto_axes`. Transposes are computed without
shardings and then resharded as the operands, because a sum that is unambiguous forwards need not be so backwards
(`constraints`).

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
