"""Programs of fresh functions that were met before: the same object for the same program, and never for another."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.execution import known_programs
from purax.execution.known_programs import known


@pytest.fixture(autouse=True)
def nothing_known():
    known_programs._programs.clear()


def program(function, *args):
    return known(px.make_jaxpr(function)(*args))


def test_a_fresh_function_gives_the_program_that_is_known():
    made = [program(lambda x: jnp.sin(x) * 2.0 + x[::2].sum(), jnp.ones(4)) for _ in range(3)]
    assert made[0] is made[1] is made[2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        (2.0, 3.0),
        (np.float32(0), np.float32(-0.0)),
        (np.int32(1), np.int16(1)),
    ],
    ids=str,
)
def test_programs_differ_in_what_is_written_into_them(one, other):
    make = lambda number: program(lambda x: (x + 1, number), jnp.ones(4))  # noqa: E731
    assert make(one) is not make(other)
    assert make(one) is make(one)


def test_programs_differ_in_types_parameters_wiring_and_lines():
    x = jnp.ones((2, 2))
    different = [
        program(lambda x: x.sum(0), x),
        program(lambda x: x.sum(0), x.astype(jnp.int32)),
        program(lambda x: x.sum(1), x),
        *(program(f, x, x) for f in (lambda a, b: a - b, lambda a, b: b - a)),
    ]
    assert len({id(each) for each in different}) == len(different)
    with px.config.override(numpy_rank_promotion="raise"):
        assert program(lambda x: x.sum(0), x) not in different


def test_what_a_loop_captures_may_change():
    xs = jnp.arange(3.0)

    def check(factor):
        carry, _ = px.lax.scan(lambda c, x: (c + x * factor, c), 0.0, xs)
        assert float(carry) == 3 * float(factor)
        assert float(px.lax.fori_loop(0, 3, lambda i, x: x * factor, 1.0)) == float(factor) ** 3
        assert float(px.lax.while_loop(lambda x: x < 10 * factor, lambda x: x + factor, 0.0)) == 10 * float(
            factor
        )
        slope = px.grad(lambda a: px.lax.scan(lambda c, x: (c * a + x * factor, None), 0.0, xs)[0])(2.0)
        assert float(slope) == float(factor)

    for factor in (2.0, 3.0, jnp.asarray(4.0), jnp.asarray(5.0), np.float32(6)):
        check(factor)


def test_loops_give_the_same_each_time_and_under_transformations():
    xs = jnp.linspace(0.1, 1.0, 6)

    def loop(start, xs):
        return px.lax.scan(lambda c, x: (jnp.sin(c) * x + c, c * 2), start, xs)

    compiled = px.jit(px.grad(lambda start: loop(start, xs)[0]))(0.5)
    for _ in range(6):
        np.testing.assert_allclose(px.grad(lambda start: loop(start, xs)[0])(0.5), compiled, 1e-6)
        np.testing.assert_allclose(
            px.vmap(lambda start: loop(start, xs)[0])(jnp.ones(3)), loop(1.0, xs)[0] * jnp.ones(3), 1e-6
        )


def test_functions_of_the_user_are_not_kept():
    def run():
        double = px.custom_jvp(lambda x: x * 2)
        double.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
        px.lax.scan(lambda c, x: (double(c), x), 1.0, jnp.ones(3))
        return weakref.ref(double)

    gone = run()
    gc.collect()
    assert gone() is None


def test_settings_of_the_host_forget_programs():
    px.lax.fori_loop(0, 3, lambda i, x: x * 2, 1.0)
    assert known_programs._programs
    with px.config.override(host_size_limit=2):
        assert not known_programs._programs
