"""Jaxpr to StableHLO: each function once, donated arguments paired, errors that name the user's line."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.avals import ShapedArray
from purax.core.primitive import Primitive
from purax.lowering.jaxpr_to_stablehlo import lower_jaxpr, lower_primitive, pair_donated


def text_of(f, *args):
    return lower_jaxpr(px.make_jaxpr(f)(*args), platform="cpu").text()


def test_main_takes_constants_and_arguments():
    captured = jnp.arange(3.0)
    closed = px.make_jaxpr(lambda x: x * captured)(jnp.ones(3))
    text = lower_jaxpr(closed, platform="cpu").text("f")
    assert "module @f" in text and text.count("%arg1: tensor<3xf32>") == 1


def test_equal_functions_are_emitted_once_and_different_ones_apart():
    twice = px.jit(lambda x: x * 2)
    also_twice = px.jit(lambda y: y * 2)
    thrice = px.jit(lambda x: x * 3)
    text = text_of(lambda x: twice(x) + also_twice(x) + thrice(x), 1.0)
    assert text.count("func.func private") == 2 and text.count("func.call") == 3


def test_a_nested_function_is_emitted_once_for_the_whole_module():
    inner = px.jit(jnp.sin)
    middle = px.jit(lambda x: inner(x) * 2)
    text = text_of(lambda x: inner(x) + middle(x), 1.0)
    assert text.count("func.func private") == 2


def test_calls_are_kept_calls_on_cpu_only():
    inner = px.jit(lambda x: x + 1)
    closed = px.make_jaxpr(lambda x: inner(inner(x)))(1.0)
    assert lower_jaxpr(closed, platform="cpu").text().count('inlineable = "false"') == 2
    assert "inlineable" not in lower_jaxpr(closed, platform="cuda").text()


def test_a_function_that_is_called_once_is_fused_with_its_caller():
    """A non-inlined call would compute all results, be they used or not: here the value besides its derivative."""
    function = px.jit(px.grad(px.jit(lambda x: jnp.sum(jnp.tanh(x)))))
    assert "inlineable" not in function.lower(jnp.ones(4)).as_text()
    assert "reduce" not in function.lower(jnp.ones(4)).compile().as_text()


def test_donated_arguments_are_paired_with_results_of_their_type():
    vector, matrix = ShapedArray((3,), "float32"), ShapedArray((3, 3), "float32")
    assert pair_donated([vector, matrix, vector], [matrix, vector, vector], [True, True, True]) == {
        0: 1,
        1: 0,
        2: 2,
    }
    assert pair_donated([vector, vector], [vector], [True, True]) == {0: 0}
    assert pair_donated([vector, vector], [vector], [False, True]) == {1: 0}
    closed = px.make_jaxpr(lambda x, y: (y, x + 1))(jnp.ones(3), jnp.ones((3, 3)))
    text = lower_jaxpr(closed, platform="cpu", donated=[True, True]).text()
    assert re.search(r"%arg0: tensor<3xf32> \{tf.aliasing_output = 1", text)
    assert re.search(r"%arg1: tensor<3x3xf32> \{tf.aliasing_output = 0", text)


class NotLowered(Primitive):
    name = "not_lowered"

    def infer(self, x):
        return x


not_lowered_p = NotLowered()


def test_a_missing_rule_names_the_primitive_and_the_line():
    with pytest.raises(px.errors.MissingRuleError, match=rf"not_lowered[\s\S]*{re.escape(__file__)}:\d+"):
        px.jit(lambda x: not_lowered_p.bind(x) + 1)(1.0)


def test_one_primitive_as_a_module():
    from purax.primitives.elementwise.elementwise import add_p

    aval = ShapedArray((3,), "float32")
    assert "stablehlo.add" in lower_primitive(add_p, [aval, aval], {}, "cpu").text()


def test_scopes_are_locations():
    def f(x):
        with px.named_scope('with "quotes"'):
            return jnp.sin(x)

    assert 'loc("with \\"quotes\\"/sin")' in text_of(f, 1.0)
    assert px.jit(f)(0.0).tolist() == 0.0


def test_scopes_of_programs_inside_programs_are_kept_once():
    @px.jit
    def inner(x):
        with px.named_scope("inner"):
            return jnp.where(x > 0, jnp.sin(x), jnp.cos(x))

    def outer(x):
        with px.named_scope("outer"):
            y = px.checkpoint(lambda x: px.nn.relu(inner(x)))(x)
            return px.lax.cond(y[0] > 0, lambda y: y * 2, jnp.sin, y).sum()

    x = jnp.arange(3.0)
    np.testing.assert_allclose(px.jit(outer)(x), outer(x), rtol=1e-6)
    np.testing.assert_allclose(px.jit(px.grad(outer))(x), px.grad(outer)(x), rtol=1e-6)
    text = px.jit(outer).lower(x).as_text(debug_info=True)
    assert "outer/inner" in text or "inner/" in text
