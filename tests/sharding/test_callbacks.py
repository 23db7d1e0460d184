"""Callbacks in programs on parts: each device calls Python with its own part, in `shard_map` and in `pmap`."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.experimental import checkify, io_callback
from purax.sharding import PartitionSpec as P

X = np.arange(16, dtype=np.float32).reshape(8, 2)


class Log:
    """What callbacks, from several threads, were called with."""

    def __init__(self):
        self.rows = []
        self._lock = threading.Lock()

    def note(self, *values):
        with self._lock:
            self.rows.append(tuple(np.asarray(v).ravel().tolist() for v in values))


def shape_of(x):
    return px.ShapeDtypeStruct(x.shape, x.dtype)


def over_devices(function, how):
    if how == "pmap":
        return px.pmap(function, axis_name="i")
    mesh = px.make_mesh((8,), ("i",))
    mapped = px.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    return px.jit(mapped) if how == "compiled shard_map" else mapped


HOW = ["pmap", "shard_map", "compiled shard_map"]
PARTS = [(row.tolist(), [i]) for i, row in enumerate(X)]


@pytest.mark.parametrize("how", HOW)
def test_pure_callback(how):
    sine = lambda x: px.pure_callback(lambda v: np.sin(v), shape_of(x), x + 1)  # noqa: E731
    np.testing.assert_allclose(over_devices(sine, how)(X), np.sin(X + 1), rtol=1e-6)


@pytest.mark.parametrize("how", HOW)
def test_pure_callback_of_a_sum_over_devices(how):
    def function(x):
        total = px.lax.psum(x, "i")
        return px.pure_callback(lambda v, w: v + w, shape_of(x), total, x)

    np.testing.assert_array_equal(over_devices(function, how)(X), X + X.sum(0))


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("how", HOW)
def test_io_callback(how, ordered):
    log = Log()

    def twice(v):
        log.note(v)
        return np.asarray(v) * 2

    def function(x):
        y = io_callback(twice, shape_of(x), x, ordered=ordered)
        return io_callback(twice, shape_of(x), y + 1, ordered=ordered)

    np.testing.assert_array_equal(over_devices(function, how)(X), 4 * X + 2)
    px.effects_barrier()
    first, second = [(row.tolist(),) for row in X], [((2 * row + 1).tolist(),) for row in X]
    assert sorted(log.rows) == sorted(first + second)
    if ordered:  # on each device
        assert all(log.rows.index(a) < log.rows.index(b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("how", HOW)
def test_debug_callback(how, ordered):
    log = Log()

    def function(x):
        px.debug.callback(log.note, x, px.lax.axis_index("i"), ordered=ordered)
        return x * 2

    np.testing.assert_array_equal(over_devices(function, how)(X), 2 * X)
    px.effects_barrier()
    assert sorted(log.rows) == PARTS


@pytest.mark.parametrize("ordered", [False, True])
def test_debug_callback_under_differentiation(ordered):
    log = Log()

    def function(x):
        px.debug.callback(log.note, x, px.lax.axis_index("i"), ordered=ordered)
        return jnp.sin(x)

    mapped = over_devices(function, "compiled shard_map")
    gradient = px.jit(px.grad(lambda x: mapped(x).sum()))(X)
    np.testing.assert_allclose(gradient, np.cos(X), rtol=1e-6)
    px.effects_barrier()
    assert sorted(log.rows) == PARTS


def test_order_before_inside_and_after():
    """Ordered effects of the devices come after those before the map, and before those after it."""
    log = Log()
    inside = over_devices(lambda x: (px.debug.callback(log.note, x, ordered=True), x * 2)[1], "shard_map")

    @px.jit
    def program(x):
        px.debug.callback(log.note, x.sum(), ordered=True)
        y = inside(x)
        px.debug.callback(log.note, y.sum(), ordered=True)
        return y

    program(X)
    px.effects_barrier()
    assert log.rows[0] == ([120.0],) and log.rows[-1] == ([240.0],)
    assert sorted(log.rows[1:-1]) == [(row.tolist(),) for row in X]


@pytest.mark.parametrize("how", HOW)
def test_debug_print(how, capfd):
    def function(x):
        px.debug.print("part {i}: {s}", i=px.lax.axis_index("i"), s=x.sum())
        return x

    over_devices(function, how)(X)
    px.effects_barrier()
    lines = sorted(capfd.readouterr().out.splitlines())
    assert lines == [f"part {i}: {row.sum()}" for i, row in enumerate(X)]


def test_programs_with_callbacks_that_communicate_take_turns():
    """Many of them, started one after the other without waiting, do not wait for each other."""
    log = Log()

    def function(x):
        px.debug.callback(log.note, px.lax.psum(x, "i").sum())
        return px.lax.psum(x, "i") - x

    mapped = over_devices(function, "compiled shard_map")
    y = jnp.asarray(X)
    for _ in range(20):
        y = mapped(X) + 0 * y
    np.testing.assert_array_equal(y, X.sum(0) - X)
    px.effects_barrier()
    assert log.rows == [([120.0],)] * 160


def test_a_callback_that_fails():
    def refuse(v):
        if np.asarray(v).max() > 12:
            raise LookupError("mine")
        return v

    failing = lambda x: px.pure_callback(refuse, shape_of(x), x)  # noqa: E731
    for how in HOW:
        with pytest.raises(LookupError, match="mine"):
            np.asarray(over_devices(failing, how)(X))


@pytest.mark.parametrize("how", HOW)
def test_checks(how):
    """`checkify` finds the error of the first device that has one."""

    def function(x):
        checkify.check(jnp.all(x < 11), "{v} on device {i}", v=x.max(), i=px.lax.axis_index("i"))
        return x * 2

    checked = checkify.checkify(over_devices(function, how))
    error, y = checked(X)
    assert error.get().startswith("11.0 on device 5")
    np.testing.assert_array_equal(y, 2 * X)
    error, _ = px.jit(checked)(X / 2)
    assert error.get() is None
