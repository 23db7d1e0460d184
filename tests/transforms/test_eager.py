"""Eager operations: small arrays on the host, large ones on the device, and no difference between the two."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.config import config
from purax.transforms import eager
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
    y = x + 1
    assert y._host is None and y._buffer is not None
    assert float(y[0]) == 2.0


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
    environment = {"PURAX_NUM_CPU_DEVICES": "2", "PURAX_PLATFORMS": "cpu", "PYTHONPATH": ":".join(sys.path)}
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
