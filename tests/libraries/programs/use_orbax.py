"""Orbax: trees, arrays over eight devices, checkpoints that are kept and found, training states."""

import os
import tempfile
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

folder = Path(tempfile.mkdtemp())


def same(a, b):
    equal = jax.tree.map(
        lambda x, y: x.dtype == y.dtype and np.array_equal(np.asarray(x), np.asarray(y)), a, b
    )
    return jax.tree.all(equal)


tree = {
    "w": jnp.arange(6.0).reshape(2, 3),
    "b": [jnp.ones(3, jnp.bfloat16), np.arange(3)],
    "key": jax.random.key(3),
}
with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(folder / "tree", tree)
    checkpointer.wait_until_finished()
    restored = checkpointer.restore(folder / "tree", tree)
    assert same(restored["b"], tree["b"]) and same(restored["w"], tree["w"])
    assert np.array_equal(jax.random.key_data(restored["key"]), jax.random.key_data(tree["key"]))

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
sharded = {"a": jax.device_put(jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, P("x", "y")))}
with ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler()) as checkpointer:
    checkpointer.save(folder / "sharded", args=ocp.args.StandardSave(sharded))
    checkpointer.wait_until_finished()
    for spec in (P("x", "y"), P("y"), P(None, ("x", "y")), P()):
        place = NamedSharding(mesh, spec)
        like = {"a": jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=place)}
        restored = checkpointer.restore(folder / "sharded", args=ocp.args.StandardRestore(like))
        assert same(restored, sharded) and restored["a"].sharding == place
        assert restored["a"].addressable_shards[0].data.shape == place.shard_shape((8, 8))

options = ocp.CheckpointManagerOptions(
    max_to_keep=2, best_fn=lambda metrics: metrics["loss"], best_mode="min"
)
with ocp.CheckpointManager(folder / "managed", options=options) as manager:
    for step in range(4):
        saved = ocp.args.Composite(
            state=ocp.args.StandardSave({"w": jnp.full(3, step)}), note=ocp.args.JsonSave({"s": step})
        )
        manager.save(step, args=saved, metrics={"loss": float(abs(step - 1))})
    manager.wait_until_finished()
    assert manager.best_step() == 1 and 1 in manager.all_steps()
    wanted = ocp.args.Composite(state=ocp.args.StandardRestore(), note=ocp.args.JsonRestore())
    found = manager.restore(1, args=wanted)
    assert found.note == {"s": 1} and np.array_equal(found.state["w"], [1, 1, 1])
print("done")
