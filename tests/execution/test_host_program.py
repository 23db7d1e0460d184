"""Programs as straight-line NumPy programs: what has such a form, and that it computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.execution.host_program import host_program, host_values


def closed(function, *args):
    return px.make_jaxpr(function)(*args)


def test_it_computes_what_the_equations_do():
    def function(x, n):
        return jnp.where(x > n, x.astype(jnp.int32), 2 * n), x, 3.0, jnp.sum(x[1:] * 0.5)

    x, n = jnp.arange(4.0), jnp.asarray(1)
    program = closed(function, x, n)
    runs = [host_program(program) for _ in range(5)]
    assert runs[0] is not runs[-1] and runs[-2] is runs[-1]  # which is written out
    for run in (runs[0], runs[-1]):
        for y, expected in zip(run(*host_values([x, n])), px.jit(function)(x, n), strict=True):
            assert type(y) is np.ndarray and y.dtype == expected.dtype
            np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: px.jit(jnp.sin)(x),
        lambda x: jnp.linalg.qr(x.reshape(2, 2))[0],
        lambda x: jnp.sum(jnp.ones((1000, 1000)) * x[0]),
        lambda x: (px.debug.print("{}", x), x)[1],
    ],
    ids=["a program inside", "several results", "large", "effects"],
)
def test_what_has_no_such_form(function):
    assert host_program(closed(function, jnp.ones(4))) is None


def test_values_that_are_not_at_hand():
    assert host_values([jnp.ones(2), px.device_put(jnp.ones(2), px.devices()[0])]) is None
    assert host_values([np.ones(2)]) is None
    values = []
    px.make_jaxpr(lambda x: values.append(host_values([jnp.ones(2)])))(1.0)
    assert values == [None]


@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("reverse", [False, True])
def test_loops_are_those_that_are_compiled(length, reverse):
    xs = {"a": jnp.arange(length * 2, dtype=jnp.int32).reshape(length, 2), "b": jnp.arange(length)}

    def loop(start, xs):
        def step(carry, x):
            total, count = carry
            total = total * 3 + x["a"]
            return (total, count + 1), (total - x["b"], count, {"same": x["b"]})

        return px.lax.scan(step, (start, 0), xs, reverse=reverse)

    start = jnp.asarray([1, -2], jnp.int32)
    for one, other in zip(
        px.tree.leaves(loop(start, xs)), px.tree.leaves(px.jit(loop)(start, xs)), strict=True
    ):
        assert one.aval is other.aval
        np.testing.assert_array_equal(one, other)


def test_warnings_of_numpy_stay_inside():
    with np.errstate(all="raise"):
        y = px.lax.fori_loop(0, 3, lambda i, x: x * 1e30, jnp.asarray(1.0))
        z = px.lax.while_loop(lambda x: x < 5, lambda x: x + 1 / jnp.zeros(()), jnp.asarray(1.0))
    assert float(y) == np.inf == float(z)


def test_bad_values_are_still_found():
    with px.debug_nans(True), pytest.raises(FloatingPointError):
        px.lax.fori_loop(0, 3, lambda i, x: x - jnp.inf + jnp.inf, jnp.asarray(1.0))
