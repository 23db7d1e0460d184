"""Programs as data: how they print, and that they can be taken apart, put together and run."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr, inner_jaxprs, jaxpr_as_fun


def test_printed_form():
    text = str(px.make_jaxpr(lambda x, y: (jnp.sin(x) * y + 1, y))(jnp.ones(3), 2.0))
    assert text == (
        "{ lambda ; a:f32[3] b:f32[]. let\n"
        "    c:f32[3] = sin a\n"
        "    d:f32[3] = mul c b\n"
        "    e:f32[3] = add d 1.0:f32[]\n"
        "  in (e, b) }"
    )


PRINTED_LIKE_JAX = {
    "no equations": lambda m: lambda x: x,
    "one line": lambda m: lambda x: m.numpy.sin(x),
    "two equations": lambda m: lambda x: m.numpy.sin(m.numpy.cos(x)),
    "too long for a line": lambda m: lambda x: m.numpy.sin(m.numpy.cos(m.numpy.tanh(m.numpy.exp(x)))),
    "several results": lambda m: lambda x: (x, m.numpy.sin(x), 2.0),
    "nested jit": lambda m: m.jit(lambda x: m.jit(m.numpy.sin)(x)),
    "cond": lambda m: lambda x: m.lax.cond(x > 0, m.numpy.sin, m.numpy.cos, x),
    "while": lambda m: lambda x: m.lax.while_loop(lambda v: v < 3.0, lambda v: v * 2.0, x),
}


@pytest.mark.parametrize("name", PRINTED_LIKE_JAX)
def test_programs_print_as_those_of_jax(name):
    jax = pytest.importorskip("jax")
    function = PRINTED_LIKE_JAX[name]
    assert str(px.make_jaxpr(function(px))(1.0)) == str(jax.make_jaxpr(function(jax))(1.0))


def test_captured_arrays_print_before_the_semicolon():
    captured = jnp.arange(3.0)
    text = str(px.make_jaxpr(lambda x: x + captured)(jnp.ones(3)))
    assert text == "{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }"


def test_names_of_many_variables():
    def f(x):
        for _ in range(30):
            x = jnp.sin(x)
        return x

    text = str(px.make_jaxpr(f)(1.0))
    assert " z:f32[] = sin y" in text and " ba:f32[] = sin z" in text and "in (be,) }" in text


def test_parts_of_a_program():
    closed = px.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(3))
    assert [aval.str_short() for aval in closed.in_avals] == ["f32[3]"]
    assert [aval.str_short() for aval in closed.out_avals] == ["f32[3]"]
    assert closed.effects == frozenset() and closed.literals == closed.consts == []
    assert (
        closed.jaxpr.replace(eqns=closed.eqns[:1], outvars=closed.eqns[0].outvars).out_avals
        == closed.out_avals
    )
    assert repr(closed.eqns[0]) == "b:f32[3] = sin a"
    with pytest.raises(ValueError, match="1 constants for 0"):
        ClosedJaxpr(closed.jaxpr, [1.0])


def test_programs_run_as_functions_and_can_be_transformed():
    closed = px.make_jaxpr(lambda x, y: (x * y, jnp.sin(x)))(2.0, 3.0)
    run = jaxpr_as_fun(closed)
    assert float(run(2.0, 3.0)[0]) == 6.0
    assert float(px.grad(lambda x: run(x, 3.0)[0])(2.0)) == 3.0
    assert px.vmap(lambda x: run(x, 3.0)[0])(jnp.arange(3.0)).tolist() == [0.0, 3.0, 6.0]
    np.testing.assert_allclose(
        px.jit(lambda x: eval_jaxpr(closed.jaxpr, (), x, 3.0)[1])(2.0), np.sin(2.0), rtol=1e-6
    )


def test_inner_programs_are_found():
    eqn = px.make_jaxpr(lambda x: px.lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0).eqns[-1]
    assert [inner.eqns[0].primitive.name for inner in inner_jaxprs(eqn.params)] == ["cos", "sin"]
    eqn = px.make_jaxpr(px.jit(jnp.sin))(1.0).eqns[0]
    assert len(list(inner_jaxprs(eqn.params))) == 1
