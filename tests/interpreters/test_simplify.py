"""Smaller programs with the same meaning."""

from __future__ import annotations

import numpy as np

import purax as px
import purax.numpy as jnp
from purax.core.jaxpr import eval_jaxpr
from purax.core.jaxpr_check import check_jaxpr
from purax.interpreters.simplify import hoist_constants, remove_dead_code, tidy, used_inputs


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def test_dead_code_goes_and_what_is_needed_stays():
    jaxpr = px.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(x) * y, jnp.exp(y)))(1.0, 2.0).jaxpr
    assert remove_dead_code(jaxpr) is jaxpr
    cut = remove_dead_code(jaxpr, [False, True, False])
    check_jaxpr(cut)
    assert names(cut) == ["cos", "mul"] and len(cut.invars) == 2
    assert names(remove_dead_code(jaxpr, [True, False, False])) == ["sin"]
    assert names(remove_dead_code(jaxpr, [False] * 3)) == []


def test_used_inputs():
    jaxpr = px.make_jaxpr(lambda x, y, z: (x * 2, z))(1.0, 2.0, 3.0).jaxpr
    assert used_inputs(jaxpr) == [True, False, True]


def test_constants_become_the_first_arguments():
    captured = jnp.arange(3.0)
    closed = px.make_jaxpr(lambda x: x + captured)(jnp.ones(3))
    hoisted = hoist_constants(closed)
    check_jaxpr(hoisted)
    assert not hoisted.consts and len(hoisted.jaxpr.invars) == 2
    assert hoist_constants(closed) is hoisted and hoist_constants(hoisted) is hoisted
    (result,) = eval_jaxpr(hoisted.jaxpr, (), captured, jnp.ones(3))
    assert result.tolist() == [1.0, 2.0, 3.0]


def test_products_with_one_go_but_others_stay():
    jaxpr = px.make_jaxpr(lambda x: (x * 1.0, (x * jnp.ones(3)) * 2.0, x * 3.0, 1.0 * x.sum()))(
        jnp.ones(3)
    ).jaxpr
    tidied = tidy(jaxpr)
    check_jaxpr(tidied)
    assert names(tidied) == ["mul", "mul", "reduce_sum"]
    x = jnp.arange(3.0)
    for given, wanted in zip(eval_jaxpr(tidied, (), x), eval_jaxpr(jaxpr, (), x), strict=True):
        np.testing.assert_array_equal(given, wanted)


def test_a_product_with_one_that_repeats_a_scalar_stays():
    jaxpr = px.make_jaxpr(lambda x: x * jnp.ones(3))(2.0).jaxpr
    (result,) = eval_jaxpr(tidy(jaxpr), (), 2.0)
    assert result.shape == (3,)
