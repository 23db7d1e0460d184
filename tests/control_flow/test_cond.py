"""`cond` and `switch`: equal to jax's under every transformation; errors name what differs."""

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import compiler
from tests.control_flow.peers import TRANSFORMED, agree, pairs

X = np.array([0.5, -1.0, 2.0], np.float32)

PROGRAMS = {
    "cond on a value": lambda n: lambda x: n.lax.cond(n.jnp.sum(x) > 0, n.jnp.sin, lambda y: 3 * y, x),
    "cond taken": lambda n: lambda x: n.lax.cond(True, lambda y: y * y, lambda y: y, x),
    "cond not taken": lambda n: lambda x: n.lax.cond(False, lambda y: y * y, n.jnp.exp, x),
    "captured values": lambda n: lambda x: n.lax.cond(x[0] > 0, lambda: x * x[1], lambda: n.jnp.tanh(x)),
    "nested": lambda n: lambda x: n.lax.cond(
        x[0] > 0, lambda y: n.lax.cond(y[1] > 0, n.jnp.sin, n.jnp.cos, y), lambda y: y, x
    ),
    "trees": lambda n: lambda x: n.lax.cond(
        x[2] > 0, lambda t: {"a": t["b"] * 2, "b": t["a"]}, lambda t: t, {"a": x, "b": n.jnp.sin(x)}
    ),
    "switch": lambda n: lambda x: n.lax.switch(
        n.jnp.argmax(x), [n.jnp.sin, lambda y: y**2, lambda y: y * x[0]], x
    ),
    "switch out of range": lambda n: lambda x: n.lax.switch(7, [n.jnp.sin, n.jnp.cos], x),
    "matrix product in a branch": lambda n: lambda x: n.lax.cond(
        x[0] > 0, lambda y: n.jnp.outer(y, y) @ y, lambda y: y, x
    ),
}


@pytest.mark.parametrize(("what", "how"), pairs(PROGRAMS, ("cond on a value", "captured values")))
def test_agrees_with_jax(what, how):
    agree(lambda n: TRANSFORMED[how](n, PROGRAMS[what](n)), X)


def test_batched_predicate_runs_branches_element_by_element():
    f = lambda p, x: px.lax.cond(p, jnp.sin, lambda y: y * 10, x)  # noqa: E731
    predicates, xs = jnp.array([True, False, True]), jnp.array([1.0, 2.0, 3.0])
    expected = np.where([True, False, True], np.sin([1, 2, 3]), [10, 20, 30])
    np.testing.assert_allclose(px.vmap(f)(predicates, xs), expected, rtol=1e-6)
    np.testing.assert_allclose(px.jit(px.vmap(f))(predicates, xs), expected, rtol=1e-6)


def test_a_costly_branch_that_no_element_takes_is_skipped():
    def f(p, x):
        return px.lax.cond(p, lambda y: px.lax.while_loop(lambda v: v != v, lambda v: v, y), lambda y: y, x)

    program = str(px.make_jaxpr(px.vmap(f))(jnp.array([False, False]), jnp.array([1.0, 2.0])))
    assert program.count("cond[") >= 1


def test_fresh_lambdas_compile_nothing_in_eager_code():
    before = compiler.stats.compiles
    for i in range(5):
        result = px.lax.cond(i % 2 == 0, lambda x: x + 1, lambda x: x - 1, 3.0)
        assert float(result) == (4.0 if i % 2 == 0 else 2.0)
    assert compiler.stats.compiles == before


def test_python_numbers_take_the_dtype_of_the_other_branch():
    assert px.lax.cond(False, lambda: jnp.float32(1), lambda: 2).dtype == jnp.float32


def test_old_call_forms():
    assert float(px.lax.cond(True, 2.0, lambda x: x + 1, 5.0, lambda x: x)) == 3.0
    assert float(px.lax.cond(False, lambda x: x, lambda x: -x, operand=4.0)) == -4.0


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: px.lax.cond(jnp.ones(2) > 0, lambda: 1, lambda: 2), TypeError, ["scalar", "(2,)", "where"]),
        (lambda: px.lax.cond(True, lambda: 1.0, lambda: (1.0, 2.0)), TypeError, ["structure"]),
        (lambda: px.lax.cond(True, lambda: jnp.ones(2), lambda: jnp.ones(3)), TypeError, ["f32[3]", "f32[2]"]),
        (
            lambda: px.lax.cond(True, lambda: {"w": jnp.ones(2)}, lambda: {"w": jnp.arange(2)}),
            TypeError,
            ["['w']", "f32[2]", "i32[2]"],
        ),
        (lambda: px.lax.cond(True, 3, lambda: 1), TypeError, ["functions"]),
        (lambda: px.lax.switch(1.5, [lambda: 1]), TypeError, ["integer", "f32[]"]),
        (lambda: px.lax.switch(0, []), ValueError, ["at least one branch"]),
    ],
)
def test_bad_input(call, kind, words):
    with pytest.raises(kind) as found:
        call()
    for word in words:
        assert word in str(found.value)
    if kind is TypeError:
        assert "test_cond.py" in str(found.value)
