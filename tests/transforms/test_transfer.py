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
    with pytest.raises(px.errors.TracerArrayConversionError):
        px.jit(lambda x: px.device_get(x))(1.0)


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
