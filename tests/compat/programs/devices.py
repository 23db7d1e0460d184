"""Programs over eight devices, among them those of the documents that introduce JAX."""

import jax
import numpy as np
from jax import numpy as jnp
from jax import pmap, vmap
from jax.experimental import mesh_utils
from jax.experimental.pjit import pjit
from jax.experimental.shard_map import shard_map
from jax.interpreters import pxla
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

print(jax.device_count())
x = jnp.arange(8)
y = jnp.arange(8)
print(repr(vmap(jnp.add)(x, y)))
print(repr(pmap(jnp.add)(x, y)))
one, eight = vmap(jnp.add)(x, y), pmap(jnp.add)(x, y)
print(isinstance(one.sharding, SingleDeviceSharding), len(one.sharding.device_set))
print(isinstance(eight.sharding, SingleDeviceSharding), len(eight.sharding.device_set))
print([(shard.device.id, shard.data.shape) for shard in eight.addressable_shards][:3])

weights = jax.device_put_replicated(jnp.ones(3), jax.devices())
batches = jax.device_put_sharded([jnp.full(3, i) for i in range(8)], jax.devices())
step = pmap(lambda w, b: w - 0.1 * jax.lax.pmean(w * b, axis_name="i"), axis_name="i")
print(step(weights, batches)[0], step(weights, batches).shape)

mesh = Mesh(mesh_utils.create_device_mesh((4, 2)), ("x", "y"))
summed = shard_map(lambda a: jax.lax.psum(a, "x"), mesh, in_specs=P("x"), out_specs=P(), check_rep=False)
print(summed(jnp.arange(8.0)))
doubled = shard_map(lambda a: a * 2, mesh=mesh, in_specs=P("x"), out_specs=P("x"), auto=frozenset({"y"}))
print(doubled(jnp.arange(8.0)))
with mesh:
    rows = pjit(lambda a: a @ a.T, in_shardings=P("x"), out_shardings=P("x", "y"))(
        np.eye(8, dtype=np.float32)
    )
    print(rows.sharding.shard_shape(rows.shape), float(rows.sum()))
    print(pxla.thread_resources.env.physical_mesh.shape["x"])
    total = jax.smap(lambda a: jax.lax.psum(a, "y"), in_axes=1, out_axes=None, axis_name="y")
    print(jax.jit(total)(jnp.arange(8.0).reshape(2, 4))[:, :2])
print(pxla.thread_resources.env.physical_mesh.empty)

a = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, jax.P("x")))
compiled = jax.jit(lambda a: a.sum()).lower(a).compile()
print(compiled(a), compiled.output_shardings.is_fully_replicated, jax.typeof(a).shape)
jax.shard_map(
    lambda part: print(sorted(jax.typeof(part).vma)) or part, mesh=mesh, in_specs=P("x"), out_specs=P("x")
)(a)
jax.debug.visualize_array_sharding(a)

# Meshes made of others, and what older code asks of arrays, shapes and specs.
line = jax.make_mesh((1,), ("x",))
print(line.update(axis_names=("y",)).axis_names, line.local_mesh == line, line.is_scalar)
print(one.platform(), one.clone(), one.sharding.has_addressable_devices)
print(pxla.array_mapping_to_axis_resources({"x": 0, "y": 2, "z": 2}))
print(jax.core.is_constant_shape((2, 3)), jax.core.is_constant_dim(jax.export.symbolic_shape("n")[0]))
print("P" in dir(jax), "set_mesh" in dir(jax))
