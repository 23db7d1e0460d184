"""Compiled functions as bytes, buffers that callbacks write, functions that say how they are cut up, stored trees."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.experimental import serialize_executable, topologies
from purax.experimental.buffer_callback import Buffer, ExecutionStage, buffer_callback
from purax.experimental.compilation_cache import compilation_cache
from purax.experimental.custom_partitioning import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)

LOAD = """
import pickle, sys, numpy as np
from purax.experimental.serialize_executable import deserialize_and_load
with open(sys.argv[1], "rb") as file:
    parts = pickle.load(file)
f = deserialize_and_load(*parts)
print(f(np.arange(3, dtype=np.float32), y=5)["d"].tolist())
"""


def function(x, y):
    return {"a": x + jnp.arange(3.0), "b": y, "c": 3.0, "d": jnp.linalg.cholesky(jnp.eye(3) * (x[0] + y))[0]}


def test_a_compiled_function_is_loaded_again_here_and_in_another_process(tmp_path):
    compiled = px.jit(function).lower(jnp.ones(3), y=2).compile()
    parts = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(*parts)
    x = jnp.ones(3)
    assert px.tree.all(px.tree.map(lambda a, b: bool((a == b).all()), loaded(x, y=5), compiled(x, y=5)))
    assert px.tree.structure(loaded.out_info) == px.tree.structure(compiled.out_info)
    assert loaded.in_avals == compiled.in_avals and loaded.as_text()
    with pytest.raises(TypeError, match=r"takes f32\[3\] as x, got f32\[4\]"):
        loaded(jnp.ones(4), y=1)
    file = tmp_path / "compiled"
    import pickle

    file.write_bytes(pickle.dumps(parts))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[float(np.sqrt(np.float32(5))), 0.0, 0.0]}\n"


def test_donation_and_what_cannot_be_serialized():
    compiled = px.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(300)).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    x = px.jit(lambda x: x * 2)(jnp.ones(300))
    assert float(loaded(x)[0]) == 3 and x.is_deleted() and loaded.donate_argnums == (0,)
    calls = px.jit(lambda x: px.pure_callback(np.sin, px.ShapeDtypeStruct.like(x), x)).lower(jnp.ones(3))
    with pytest.raises(NotImplementedError, match="calls Python"):
        serialize_executable.serialize(calls.compile())
    import pickle

    with pytest.raises(ValueError, match="not the bytes"):
        serialize_executable.deserialize_and_load(pickle.dumps({}), None, None)


def test_stages_say_types_donation_and_formats():
    lowered = px.jit(lambda x, y: x + y, donate_argnums=1).lower(jnp.ones(3), jnp.ones(3))
    assert lowered.donate_argnums == (1,) and [info.donated for info in lowered.args_info[0]] == [False, True]
    compiled = lowered.compile()
    assert compiled.in_avals == lowered.in_avals
    assert compiled.input_formats[0][0].layout.major_to_minor == (0,)
    assert compiled.output_formats.sharding == compiled.output_shardings
    assert jnp.ones((2, 3)).format.layout.major_to_minor == (0, 1)
    assert not hasattr(jnp.ones(2), "__cuda_array_interface__")  # but for arrays on a GPU
    _, pull_back = px.vjp(jnp.sin, jnp.ones(2))
    assert [eqn.primitive.name for eqn in pull_back.jaxpr.eqns] == ["mul"]
    closed = px.make_jaxpr(lambda x: x + 1)(1.0)
    assert closed.invars == closed.jaxpr.invars and closed.debug_info.func_name == "<lambda>"
    named = closed.jaxpr.replace(debug_info=closed.debug_info._replace(func_src_info="f at x.py:3"))
    assert named.name == "f"


def test_topologies_and_the_cache_folder():
    topology = topologies.get_attached_topology()
    assert topology.devices == px.devices()
    count = len(topology.devices)
    assert topologies.make_mesh(topology, (count,), ("x",)).shape == {"x": count}
    with pytest.raises(NotImplementedError, match="v4:2x2x1"):
        topologies.get_topology_desc("v4:2x2x1", platform="tpu")
    before = px.config.compilation_cache_dir
    try:
        with tempfile.TemporaryDirectory() as folder:
            compilation_cache.set_cache_dir(folder)
            assert px.config.compilation_cache_dir == folder
            compilation_cache.reset_cache()
    finally:
        px.config.update("compilation_cache_dir", before)


def test_callbacks_write_their_results():
    def add(context, out, x, y):
        assert context.stage is ExecutionStage.EXECUTE
        assert isinstance(out, Buffer) and out.writeable and not x.writeable
        np.asarray(out)[...] = np.asarray(x) + np.asarray(y)

    f = buffer_callback(add, px.ShapeDtypeStruct((3,), jnp.float32), vmap_method="broadcast_all")
    x, y = jnp.ones(3), jnp.arange(3.0)
    for run in (f, px.jit(f)):
        assert run(x, y).tolist() == [1, 2, 3]
    assert px.vmap(f, (0, None))(jnp.ones((2, 3)), y).tolist() == [[1, 2, 3], [1, 2, 3]]

    def increment(context, out, x):
        np.asarray(out["a"])[...] += 1

    types = {"a": px.ShapeDtypeStruct((3,), jnp.float32)}
    g = buffer_callback(increment, types, input_output_aliases={0: 0}, has_side_effect=True)
    assert px.jit(g)(y)["a"].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="which differ"):
        g(jnp.ones(4))


def test_a_partitioned_function_runs_on_parts():
    devices = px.devices()
    mesh = px.make_mesh((len(devices),), ("x",))
    place = px.NamedSharding(mesh, px.P("x", None))
    seen = []

    def partition(mesh, args, out):
        def lowered(x):
            seen.append(x.shape)
            return jnp.cumsum(x, 1)

        assert out.sharding == place
        return mesh, lowered, place, (args[0].sharding,)

    f = custom_partitioning(lambda x: jnp.cumsum(x, 1))
    f.def_partition(
        partition, infer_sharding_from_operands=lambda m, a, r: a[0].sharding, sharding_rule="i j -> i j"
    )
    whole = np.arange(4.0 * 2 * len(devices), dtype=np.float32).reshape(2 * len(devices), 4)
    found = f(px.device_put(whole, place))
    np.testing.assert_array_equal(found, np.cumsum(whole, 1))
    assert found.sharding == place and seen[-1] == (2, 4)
    np.testing.assert_array_equal(px.jit(f)(whole), np.cumsum(whole, 1))
    np.testing.assert_array_equal(px.grad(lambda x: f(x).sum())(jnp.ones((2, 4))), [[4, 3, 2, 1]] * 2)


BAD_RULES = {
    "Factor names have to start with a letter": lambda: ArrayMapping("1"),
    "at least two factors": lambda: CompoundFactor("a"),
    "must be a str or CompoundFactor": lambda: ArrayMapping(3),  # type: ignore[arg-type]
    "must specify its size": lambda: SdyShardingRule(
        (ArrayMapping(CompoundFactor("a", "b")),), (ArrayMapping("a"),)
    ),
    "do not specify its size": lambda: SdyShardingRule((ArrayMapping("a"),), (ArrayMapping("a"),), a=2),
    "is not used by any array": lambda: SdyShardingRule(
        (ArrayMapping("a"),), (ArrayMapping("a"),), reduction_factors=("z",)
    ),
    "there must be one '->'": lambda: custom_partitioning(jnp.sin).def_partition(None, sharding_rule="i j"),
}


@pytest.mark.parametrize("message", BAD_RULES)
def test_rules_that_make_no_sense(message):
    with pytest.raises(ValueError, match=message):
        BAD_RULES[message]()


def test_trees_in_folders(tmp_path):
    pytest.importorskip("tensorstore")
    from purax.experimental import pytree_serialization as trees

    folder, place = tmp_path / "tree", px.sharding.SingleDeviceSharding(px.devices()[0])
    tree = {"a": jnp.arange(4), "b": [jnp.ones(2), None]}
    trees.save(tree, folder)
    assert trees.load_pytreedef(folder)["a"] == px.ShapeDtypeStruct((4,), jnp.int32)
    assert px.tree.map(lambda x: x.tolist(), trees.load(folder, place)) == {
        "a": [0, 1, 2, 3],
        "b": [[1, 1], None],
    }
    assert trees.load(folder, place, mask={"a": False, "b": True})["a"] is None
    with pytest.raises(RuntimeError, match="is there already"):
        trees.save(tree, folder, overwrite=False)
    saving = trees.nonblocking_save({"a": jnp.zeros(2)}, folder)
    assert saving.result() is None and saving.pytree["a"].shape == (2,)
    assert trees.nonblocking_load(folder, place).result()["a"].tolist() == [0, 0]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").write_text("keep")
    with pytest.raises(RuntimeError, match="other files, which are not deleted"):
        trees.save(tree, tmp_path / "other")
