"""Eager operations: small arrays on the host, large ones on the device, and no difference between the two."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.config import config
from purax.execution import eager
from purax.xla import compiler

OPERATIONS = {
    "x + y": lambda x, y: x + y,
    "x / y": lambda x, y: x / y,
    "x ** 2": lambda x, y: x**2,
    "sin": lambda x, y: jnp.sin(x),
    "where": lambda x, y: jnp.where(x > y, x, y),
    "sum": lambda x, y: x.sum(0),
    "matmul": lambda x, y: x @ y.T,
    "reshape": lambda x, y: x.reshape(-1),
    "x[1]": lambda x, y: x[1],
    "x.at[0].set": lambda x, y: x.at[0].set(y[1]),
    "sort": lambda x, y: jnp.sort(x),
    "argmax": lambda x, y: jnp.argmax(x, 1),
    "astype": lambda x, y: x.astype(jnp.float16),
    "concatenate": lambda x, y: jnp.concatenate([x, y]),
    "comparison": lambda x, y: x == y,
}


@pytest.fixture
def operands():
    generator = np.random.default_rng(0)
    return tuple(jnp.asarray(generator.uniform(0.5, 2, (3, 4)).astype(np.float32)) for _ in range(2))


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_host_and_device_agree_in_type_and_value(operation, operands):
    on_host = operation(*operands)
    eager.clear_plans()
    try:
        with config.override(host_size_limit=-1):
            on_device = operation(*operands)
            always_on_host = [OPERATIONS[name] for name in ("reshape", "x[1]", "sort")]
            assert on_device._host is None or operation in always_on_host
    finally:
        eager.clear_plans()
    assert on_host.aval is on_device.aval
    np.testing.assert_allclose(np.asarray(on_host, np.float32), np.asarray(on_device, np.float32), rtol=2e-6)


def test_first_use_of_operations_on_small_arrays_compiles_nothing(operands):
    before = compiler.stats.compiles + compiler.stats.disk_hits
    for operation in OPERATIONS.values():
        operation(*operands)
    px.grad(lambda x: jnp.tanh(x @ operands[1].T).sum())(operands[0])
    px.vmap(jnp.dot)(*operands)
    px.lax.scan(lambda c, x: (c + x.sum(), c), 0.0, operands[0])
    px.lax.cond(True, jnp.sin, jnp.cos, operands[0])
    assert compiler.stats.compiles + compiler.stats.disk_hits == before


def test_large_work_runs_on_the_device():
    x = jnp.ones(config.host_size_limit + 1)
    y = jnp.sqrt(x)
    assert y._host is None and y._buffer is not None
    assert float(y[0]) == 1.0


LARGE = config.host_size_limit + 17
STREAMED = {
    "x + y": lambda x, y: x + y,
    "x - 1": lambda x, y: x - 1,
    "2 * x": lambda x, y: 2 * x,
    "x / y": lambda x, y: x / y,
    "-x": lambda x, y: -x,
    "abs": lambda x, y: abs(x),
    "x > y": lambda x, y: x > y,
    "x == y": lambda x, y: x == y,
    "(x > y) & (x > 0)": lambda x, y: (x > y) & (x > 0),
    "where": lambda x, y: jnp.where(x > y, x, y),
    "maximum": lambda x, y: jnp.maximum(x, y),
    "clip": lambda x, y: jnp.clip(x, 1, 2),
    "clip by arrays": lambda x, y: jnp.clip(x, y, 1),
    "max": lambda x, y: x[5:-9].max(),  # compiled, XLA's maximum of many elements forgets NaN
    "max of columns": lambda x, y: x[5:-9].reshape(7, -1).max(0),
    "argmax": lambda x, y: jnp.argmax(x),
    "argmin of rows": lambda x, y: jnp.argmin(x[5:-9].reshape(7, -1), 1),
    "to int32": lambda x, y: x.astype(jnp.int32),
    "to int8": lambda x, y: x.astype(jnp.int8),
    "to bool": lambda x, y: x.astype(bool),
    "to float16": lambda x, y: x.astype(jnp.float16),
    "concatenate": lambda x, y: jnp.concatenate([x, y]),
    "concatenate rows": lambda x, y: jnp.concatenate([x.reshape(3, -1), y.reshape(3, -1)], 1),
    "stack": lambda x, y: jnp.stack([x, y], 1),
    "set": lambda x, y: x.at[1:-1:2].set(y[3]),
    "transposed": lambda x, y: x.reshape(3, -1).T + y.reshape(-1, 3),
    "row": lambda x, y: x.reshape(3, -1) + y[: LARGE // 3],
    "column": lambda x, y: jnp.where(x.reshape(3, -1) > 0, x[:3, None], y.reshape(3, -1)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_large_arrays_are_the_same_by_numpy_and_by_the_engine(dtype):
    """Bit by bit: what NumPy does with large arrays is rounded once, or not at all."""
    generator = np.random.default_rng(0)
    values = [generator.uniform(-3, 3, LARGE // 3 * 3) for _ in range(2)]
    specials = ([np.nan, np.inf, 3e9, 5, -0.0], [1, np.nan, np.inf, 5, 0.0])
    if dtype.startswith("float"):
        for value, special in zip(values, specials, strict=True):
            value[:5] = value[-5:] = special
    x, y = (jnp.asarray((np.abs(v) if dtype == "uint8" else v).astype(dtype), dtype) for v in values)
    by_numpy = [operation(x, y) for operation in STREAMED.values()]
    compiled = px.jit(lambda x, y: [operation(x, y) for operation in STREAMED.values()])(x, y)
    for name, mine, expected in zip(STREAMED, by_numpy, compiled, strict=True):
        assert mine.aval is expected.aval, name
        mine, expected = np.asarray(mine), np.asarray(expected)
        np.testing.assert_array_equal(mine, expected, err_msg=name)
        if mine.dtype.kind == "f" and name not in ("maximum", "clip by arrays"):
            numbers = ~np.isnan(mine)  # equal zeros may be either in a maximum
            np.testing.assert_array_equal(np.signbit(mine[numbers]), np.signbit(expected[numbers]), name)


def test_the_maximum_of_many_elements_remembers_nan():
    for size in (3000, LARGE):
        x = jnp.ones(size).at[size // 2].set(jnp.nan)
        assert np.isnan(x.max()) and np.isnan(x.min()) and int(x.argmax()) == size // 2


def test_large_results_of_numpy_are_used_in_place_by_programs():
    x = jnp.ones(LARGE)
    for y in (x + x, x.astype(jnp.int32), jnp.concatenate([x, x]), jnp.stack([x, x]), jnp.clip(x, 0.0, 1.0)):
        host = y._host
        assert host is not None
        px.jit(lambda y: y + 1)(y)
        assert y._host is host, "XLA did not have to copy it"
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(y)[0] = 5


def test_work_of_numpy_leaves_large_arrays_free_to_be_donated():
    double = px.jit(lambda x: x * 2, donate_argnums=0)
    x = px.jit(lambda: jnp.ones(LARGE))()
    assert float((x + 1).max()) == 2.0
    where = x.unsafe_buffer_pointer() if hasattr(x, "unsafe_buffer_pointer") else None
    y = double(x)
    assert x.is_deleted() and float(y.max()) == 2.0
    assert where is None or y.unsafe_buffer_pointer() == where


@pytest.mark.parametrize("threads, factor", [(1, 64), (2, 64), (3, 24), (4, 16), (16, 9), (128, 8)])
def test_the_more_threads_the_fewer_elements_are_left_to_numpy(threads, factor, monkeypatch):
    monkeypatch.setattr(eager, "_cores", threads)
    assert eager.streaming_limit() == factor * config.host_size_limit
    with config.override(host_size_limit=-1):
        assert eager.streaming_limit() == -1


def test_numpy_warnings_do_not_show_and_the_users_settings_stay():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(float(jnp.ones(2)[0] / jnp.zeros(2)[0]))
        assert np.isnan(float(jnp.log(jnp.float32(-1.0))))
    with np.errstate(divide="raise"):
        jnp.ones(2) / jnp.zeros(2)
        assert np.geterr()["divide"] == "raise"


def test_arrays_do_not_change_when_the_users_numpy_arrays_do():
    mine = np.ones(4, np.float32)
    results = [jnp.asarray(mine), jnp.reshape(mine, (2, 2)), jnp.asarray(mine) + mine, px.device_put(mine)]
    mine[:] = 7.0
    assert all(float(jnp.max(x)) <= 2.0 for x in results)


def test_results_cannot_be_written_to_through_numpy():
    for x in (jnp.ones(3) + 1, px.jit(lambda: jnp.ones(3) * 2)()):
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(x)[0] = 5.0


def test_operands_on_different_devices_are_refused_and_unplaced_ones_follow():
    program = """
import purax as px, purax.numpy as jnp, pytest
first, second = px.devices()
small, large = jnp.ones(3) + 1, px.jit(lambda: jnp.ones(30_000) * 2)()
there = px.device_put(jnp.ones(3), second)
assert (small + there).devices() == {second}
assert px.jit(lambda a, b: a + b)(small, there).devices() == {second}
twice = px.jit(lambda x: x * 2)
twice(jnp.ones(3))
assert twice(small).devices() == {first} and twice(small).tolist() == [4.0] * 3, "the array stayed at home"
assert px.jit(lambda a, b: (a, a + b))(small, there)[0].devices() == {second}, "forwarded results lie there too"
assert (large + px.device_put(1.0, second)).devices() == {second} and large.devices() == {first}
with pytest.raises(ValueError, match="committed to different devices"):
    px.device_put(1.0, first) + there
with pytest.raises(ValueError, match="committed to different devices"):
    px.jit(lambda a, b: a)(px.device_put(1.0, first), there)
with px.default_device(second):
    assert (jnp.ones(3) + 1).devices() == {second}
    assert px.jit(lambda x: x + 1)(1.0).devices() == {second}
assert px.jit(lambda x: (x, x + 1), device=second)(small)[0].devices() == {second}
"""
    settings = {"PURAX_NUM_CPU_DEVICES": "2", "PURAX_PLATFORMS": "cpu", "PYTHONPATH": ":".join(sys.path)}
    environment = {**os.environ, **settings}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_results_do_not_depend_on_how_far_a_computation_is():
    """NumPy and XLA round differently: which of them works with a small array is not a matter of timing."""
    slow = px.jit(
        lambda a: (jnp.linalg.matrix_power(a, 40) * 0 + jnp.arange(500.0)[:, None] / 7)[:, :3].ravel()
    )
    a = jnp.full((500, 500), 1e-3)
    for function in (jnp.sum, jnp.exp, jnp.var, lambda x: jnp.dot(x, x), jnp.tanh, px.nn.softmax):
        expected = np.asarray(function(slow(a).block_until_ready()))
        np.testing.assert_array_equal(np.asarray(function(slow(a))), expected)


def test_a_changed_limit_holds_for_what_was_planned_before():
    x = jnp.ones(3)
    assert [(x + x)._host is None for _ in range(3)] == [False] * 3
    with config.override(host_size_limit=0):
        assert (x + x)._host is None
    assert (x + x)._host is not None
