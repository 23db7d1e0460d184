"""Moving values between host and devices, on trees."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

DEVICE = px.devices()[0]


def test_device_put_takes_trees_and_commits():
    tree = {"a": np.arange(3.0), "b": [1, jnp.ones(2)], "c": None}
    put = px.device_put(tree, DEVICE)
    assert put["a"].dtype == jnp.float32 and put["c"] is None
    assert put["a"].committed and put["a"].devices() == {DEVICE} and put["b"][1].committed
    free = px.device_put(tree)
    assert not free["a"].committed and free["b"][0].weak_type
    assert px.device_put(1.0, "cpu").devices() == {DEVICE}


def test_device_put_takes_a_prefix_of_devices():
    put = px.device_put({"a": [1.0, 2.0], "b": 3.0}, {"a": DEVICE, "b": None})
    assert put["a"][0].committed and put["a"][1].committed and not put["b"].committed


def test_device_put_copies_the_users_memory():
    mine = np.ones(3, np.float32)
    put = px.device_put(mine, DEVICE)
    mine[:] = 9.0
    assert put.tolist() == [1.0] * 3


def test_device_put_inside_transformations():
    f = lambda x: px.device_put(x * 2, DEVICE)  # noqa: E731
    assert float(px.jit(f)(3.0)) == 6.0
    assert float(px.grad(f)(3.0)) == 2.0
    assert px.vmap(f)(jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    assert float(px.jit(lambda x: px.device_put(2.0) * x)(3.0)) == 6.0


def test_device_get():
    got = px.device_get({"a": jnp.arange(3), "b": [px.jit(lambda: jnp.ones(2))(), 3, np.ones(1)]})
    assert isinstance(got["a"], np.ndarray) and got["a"].tolist() == [0, 1, 2]
    assert isinstance(got["b"][0], np.ndarray) and got["b"][1] == 3
    assert float(px.jit(lambda x: px.device_get(x) * 2)(1.0)) == 2.0
    assert float(px.grad(lambda x: px.device_get({"x": x})["x"] * 2)(1.0)) == 2.0


def test_waiting_returns_the_tree():
    tree = {"a": px.jit(lambda: jnp.ones((300, 300)) @ jnp.ones((300, 300)))(), "b": 3}
    assert px.block_until_ready(tree) is tree and tree["a"].is_ready()
    assert px.copy_to_host_async(tree)["a"] is tree["a"]


def test_live_arrays():
    x = jnp.ones(12_345) + 1
    assert any(y is x for y in px.live_arrays())
    assert any(y is x for y in px.live_arrays("cpu"))
    x.delete()
    assert not any(y is x for y in px.live_arrays())
    del x
    gc.collect()


def test_typeof():
    assert str(px.typeof(jnp.ones((2, 3)))) == "ShapedArray(float32[2,3])"
    assert px.typeof(2.0).weak_type and px.typeof(np.float64(2)).dtype == jnp.float32
    seen = []
    px.jit(lambda x: seen.append(px.typeof(x)) or x)(jnp.ones(3))
    assert seen == [px.typeof(jnp.ones(3))]
    with pytest.raises(TypeError, match="not an array or a number"):
        px.typeof("text")


# --- what `device_put` is told besides the device


def test_may_alias_says_whether_memory_is_shared():
    x = px.block_until_ready(px.jit(lambda: jnp.arange(1000.0))())
    device = px.devices()[0]
    address = x.unsafe_buffer_pointer()
    assert px.device_put(x, device, may_alias=False).unsafe_buffer_pointer() != address
    assert px.device_put(x, device, may_alias=True).unsafe_buffer_pointer() == address
    assert px.device_put(x, may_alias=False).unsafe_buffer_pointer() != address
    y = np.arange(3.0, dtype=np.float32)
    shared, own = px.device_put(y, may_alias=True), px.device_put(y, may_alias=False)
    y[0] = 7
    assert float(shared[0]) == 7 and float(own[0]) == 0


def test_what_is_donated_and_moved_is_gone():
    device, other = px.devices()[:2]
    x = px.device_put(jnp.arange(4.0), device)
    same = px.device_put(x, device, donate=True)
    assert not x.is_deleted() and same.tolist() == [0, 1, 2, 3]
    moved = px.device_put({"a": x, "b": same}, other, donate={"a": True, "b": False})
    assert x.is_deleted() and not same.is_deleted()
    assert moved["a"].tolist() == moved["b"].tolist() == same.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="donate and may_alias are both true"):
        px.device_put(same, other, donate=True, may_alias=True)


def test_cotangents_go_back_to_the_source():
    device, other = px.devices()[:2]
    x = px.device_put(jnp.arange(4.0), device)
    g = px.grad(lambda x: px.device_put(x, other, src=device).sum())(x)
    assert g.devices() == {device}
    with pytest.raises(TypeError, match="src must be a sharding"):
        px.device_put(x, other, src=3)


def test_a_device_in_a_program_says_where_it_runs():
    first, second = px.devices()[:2]
    x = jnp.arange(4.0)
    f = px.jit(lambda x: px.device_put(x, second) * 2)
    for _ in range(3):
        y = f(x)
        assert y.devices() == {second} and y.tolist() == [0, 2, 4, 6]
    assert f(px.device_put(x, second)).devices() == {second}
    assert px.jit(lambda x: px.jit(f)(x) + 1)(x).devices() == {second}
    assert px.jit(px.grad(lambda x: f(x).sum()))(x).tolist() == [2, 2, 2, 2]
    with pytest.raises(ValueError, match=r"runs on cpu:0, where its arguments are.*\n.*test_transfer.py"):
        f(px.device_put(x, first))
    with pytest.raises(ValueError, match="a value in it cannot be put on"):
        px.jit(lambda x: px.device_put(x, first) + px.device_put(x, second))(x)
    assert px.jit(lambda x: px.device_put(x, first) * 2)(x).tolist() == [0, 2, 4, 6]


def test_a_sharding_in_a_program_is_a_constraint():
    mesh = px.sharding.Mesh(np.array(px.devices()), ("i",))
    rows = px.sharding.NamedSharding(mesh, px.sharding.PartitionSpec("i"))
    y = px.jit(lambda x: px.device_put(x, rows) * 2)(jnp.arange(8.0))
    assert y.sharding.is_equivalent_to(rows, 1) and y.tolist() == list(range(0, 16, 2))


def test_an_array_whose_memory_was_deleted_is_not_moved():
    x = px.block_until_ready(px.jit(lambda: jnp.arange(8.0))())
    px.device_put(x, px.devices()[0]).delete()
    with pytest.raises(RuntimeError, match="deleted"):
        px.device_put(x, px.devices()[1])
