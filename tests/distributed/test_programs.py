"""Programs over meshes that span processes: two processes with two devices each, against the same on one."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.distributed.groups import run_group

SCRIPT = """
px.distributed.initialize()
from purax.experimental import multihost_utils as utils

me = px.process_index()
result = {
    "place": [me, px.process_count(), len(px.devices()), len(px.local_devices())],
    "own": [d.process_index for d in px.local_devices()],
    "others": [d.process_index for d in px.local_devices(1 - me)],
    "is_initialized": px.distributed.is_initialized(),
    "again": fails(px.distributed.initialize),
}
mesh = px.make_mesh((2, 2), ("a", "b"))
line = px.make_mesh((4,), ("d",))
rows, whole = NamedSharding(line, P("d")), NamedSharding(line, P())
value = np.arange(24, dtype=np.float32).reshape(8, 3)

x = px.device_put(value, rows)
parts = x.addressable_shards
result["shards"] = [[s.device.process_index, s.index[0].start, np.asarray(s.data).tolist()] for s in parts]
result["unreadable"] = fails(np.asarray, x)
result["sum"] = np.asarray(jnp.sum(x * 2, axis=0)).tolist()
gradient = px.jit(px.grad(lambda w, x: jnp.mean(jnp.sin(x @ w))), out_shardings=whole)
result["grad"] = np.asarray(gradient(np.ones(3, np.float32), x)).tolist()
total = px.shard_map(lambda x: px.lax.psum(x, "d"), mesh=line, in_specs=P("d"), out_specs=P())
result["psum"] = np.asarray(px.jit(total)(x)).tolist()
ring = [(i, (i + 1) % 4) for i in range(4)]
shift = px.shard_map(lambda x: px.lax.ppermute(x, "d", ring), mesh=line, in_specs=P("d"), out_specs=P("d"))
result["shifted"] = utils.process_allgather(px.jit(shift)(x)).tolist()
square = np.arange(16, dtype=np.float32).reshape(4, 4)
square = px.device_put(square, NamedSharding(mesh, P("a", "b")))
result["product"] = utils.process_allgather(px.jit(lambda m: m @ m.T)(square)).tolist()
result["reshard"] = utils.process_allgather(px.device_put(square, NamedSharding(mesh, P("b", None)))).tolist()
local = px.make_array_from_process_local_data(rows, np.full((4, 2), me, np.float32))
result["local"] = [list(local.shape), utils.process_allgather(local).tolist()]
called = px.make_array_from_callback((8, 3), rows, lambda index: value[index])
result["callback"] = utils.process_allgather(called).tolist()
# Many programs in flight at once, and results read at the end.
y = x
for _ in range(20):
    y = px.jit(lambda y: y + jnp.mean(y))(y)
result["chain"] = float(jnp.sum(y))

result["gathered"] = utils.process_allgather({"i": np.int64(2**40 + me), "v": np.arange(2.0) + me}).__repr__()
result["tiled"] = utils.process_allgather(np.arange(2) + 10 * me, tiled=True).tolist()
odd = np.array([np.nan, -0.0, 1e-320, me], np.float64)
result["broadcast"] = [v.hex() for v in utils.broadcast_one_to_all(odd, is_source=me == 1).tolist()]
result["two sources"] = fails(lambda: utils.broadcast_one_to_all(1, is_source=True))
result["shapes"] = fails(utils.process_allgather, np.zeros(2 + me))
utils.assert_equal({"seed": 3}, "seeds")
result["unequal"] = fails(utils.assert_equal, {"seed": me}, "seeds differ")
utils.sync_global_devices("here")
result["points"] = fails(utils.sync_global_devices, f"point {me}")
made = utils.host_local_array_to_global_array({"x": np.full((2, 2), me, np.float32)}, mesh, P("a", None))
back = utils.global_array_to_host_local_array(made, mesh, P("a", None))
result["host local"] = [list(made["x"].shape), np.asarray(back["x"]).tolist(), len(back["x"].devices())]

result["wrong mesh"] = fails(px.make_mesh, (3, 2), ("a", "b"))
result["not divisible"] = fails(px.device_put, np.ones((6, 5)), rows)

# Programs that do not agree; the group can go on after each.
def first(x): return jnp.sum(x)
def second(x): return jnp.sum(x) + 1
result["other function"] = fails(px.jit(first if me == 0 else second), x)
longer = px.make_array_from_callback((8 + 4 * me, 3), rows, lambda i: np.zeros((2 + me, 3), np.float32))
result["other shapes"] = fails(px.jit(second), longer)
result["other constant"] = fails(px.jit(lambda x: jnp.sum(x) * (2.0 + me)), x)
turned = NamedSharding(Mesh(px.devices()[:: 1 - 2 * me], ("d",)), P("d"))
result["other mesh"] = fails(px.jit(first), px.device_put(value, turned))
result["goes on"] = float(px.jit(lambda x: jnp.sum(x) * 3)(x))
px.distributed.shutdown()
result["after"] = px.distributed.is_initialized()
print("RESULT", json.dumps(result))
"""


@pytest.fixture(scope="module")
def results():
    ended = run_group(SCRIPT, 2, PURAX_NUM_CPU_DEVICES="2")
    for process in ended:
        assert process.code == 0, process.errors
    return [json.loads(process.output.partition("RESULT ")[2]) for process in ended]


VALUE = np.arange(24, dtype=np.float32).reshape(8, 3)
SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4)


def test_every_process_knows_its_place(results):
    assert [r["place"] for r in results] == [[0, 2, 4, 2], [1, 2, 4, 2]]
    assert [r["own"] for r in results] == [[0, 0], [1, 1]]
    assert [r["others"] for r in results] == [[1, 1], [0, 0]]
    assert all(r["is_initialized"] and not r["after"] for r in results)
    assert all("in a group already" in r["again"] for r in results)


def test_each_process_holds_the_parts_of_its_devices(results):
    for me, r in enumerate(results):
        assert [shard[:2] for shard in r["shards"]] == [[me, 4 * me], [me, 4 * me + 2]]
        np.testing.assert_array_equal(np.concatenate([s[2] for s in r["shards"]]), VALUE[4 * me : 4 * me + 4])
        assert "process_allgather" in r["unreadable"]


EXPECTED = {
    "sum": (VALUE * 2).sum(0),
    "grad": (np.cos(VALUE @ np.ones(3))[:, None] * VALUE).mean(0),
    "psum": VALUE.reshape(4, 2, 3).sum(0),
    "shifted": np.roll(VALUE, 2, axis=0),
    "product": SQUARE @ SQUARE.T,
    "reshard": SQUARE,
    "callback": VALUE,
    "chain": 24 * 11.5 * 2**20,
    "tiled": [0, 1, 10, 11],
    "goes on": VALUE.sum() * 3,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_values(results, name):
    for r in results:
        np.testing.assert_allclose(r[name], EXPECTED[name], rtol=2e-6, atol=1e-6)


def test_values_of_processes_reach_the_others_exactly(results):
    for me, r in enumerate(results):
        assert r["local"] == [[8, 2], [[0, 0]] * 4 + [[1, 1]] * 4]
        assert str(2**40) in r["gathered"] and str(2**40 + 1) in r["gathered"]
        assert r["broadcast"] == ["nan", "-0x0.0p+0", (1e-320).hex(), "0x1.0000000000000p+0"]
        assert r["host local"] == [[4, 2], [[me, me]] * 2, 2]


FAULTS = {
    "two sources": "exactly one process; it is on processes 0 and 1",
    "shapes": "process 0: .*float64[2].*process 1: .*float64[3]",
    "unequal": "AssertionError: seeds differ: the processes have .*process 0: .*seed.* = 0 .*process 1: .*= 1",
    "points": "process 0: 'point 0'; process 1: 'point 1'",
    "wrong mesh": "shape (3, 2) needs 6 devices, there are 4",
    "not divisible": "shape (6, 5) has size 6, which does not divide into 4 equal parts along mesh axis 'd'",
    "other function": "ProgramMismatchError: .*different programs together: process 0: .*first; process 1: .*second",
    "other shapes": "ProgramMismatchError: .*second with different arguments: .*0: .*<8x3xf32>.*1: .*<12x3xf32>",
    "other constant": "ProgramMismatchError: .*lambda.* does not come out the same on process 0; process 1",
    "other mesh": "ProgramMismatchError: .*first.* does not come out the same",
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_errors_on_every_process(results, name):
    pattern = ".*".join(map(re.escape, FAULTS[name].split(".*")))
    for r in results:
        assert re.search(pattern, r[name], re.DOTALL), r[name]


def test_processes_that_left_a_group_form_the_next_at_the_same_address():
    script = """
    from purax.experimental import multihost_utils
    for k in range(3):
        px.distributed.initialize(initialization_timeout=20)
        multihost_utils.sync_global_devices(f"group {k}")
        px.distributed.shutdown()
    """
    for ended in run_group(script, 2):
        assert ended.code == 0, ended.errors
