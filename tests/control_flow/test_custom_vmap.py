"""`custom_vmap` and `sequential_vmap`: the vectorization rule is used, also under derivatives and jit."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.custom_batching import custom_vmap, sequential_vmap

HERE = re.escape(__file__)


def make():
    """x · y, of which a batch is 10 times as large, so that one sees the rule at work."""
    seen = []

    @custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        seen.append((axis_size, in_batched))
        return 10 * x * y, any(in_batched)

    return f, seen


def test_the_rule_is_used():
    f, seen = make()
    assert float(f(2.0, 3.0)) == 6.0 and float(px.jit(f)(2.0, 3.0)) == 6.0
    assert px.vmap(f)(jnp.ones(3), jnp.ones(3)).tolist() == [10.0] * 3
    assert px.vmap(f, in_axes=(0, None))(jnp.ones(2), 3.0).tolist() == [30.0] * 2
    assert seen == [(3, [True, True]), (2, [True, False])]
    assert px.jit(px.vmap(f))(jnp.ones(3), jnp.ones(3)).tolist() == [10.0] * 3
    assert px.vmap(px.jit(f))(jnp.ones(3), jnp.ones(3)).tolist() == [10.0] * 3
    assert px.vmap(f, in_axes=(1, None), out_axes=1)(jnp.ones((2, 3)), 1.0).shape == (2, 3)


def test_derivatives():
    f, _ = make()
    assert float(px.grad(f)(2.0, 3.0)) == 3.0
    assert float(px.jvp(f, (2.0, 3.0), (1.0, 0.0))[1]) == 3.0
    assert px.grad(lambda x: px.vmap(f)(x, x * 0 + 3).sum())(jnp.ones(2)).tolist() == [30.0] * 2, (
        "that of the rule"
    )
    assert (
        px.jvp(px.vmap(f), (jnp.ones(2), jnp.ones(2)), (jnp.ones(2), jnp.zeros(2)))[1].tolist() == [10.0] * 2
    )
    batched = px.vmap(lambda x, y: px.jvp(f, (x, y), (1.0, 0.0))[1])(jnp.ones(2), jnp.full(2, 3.0))
    assert batched.tolist() == [30.0] * 2, "the derivative has the derivative of the rule as its rule"


def test_sequential_vmap_is_a_loop():
    shapes = []

    @sequential_vmap
    def f(x, y):
        shapes.append(x.shape)
        return {"a": x.sum() * y, "b": (x,)}

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    result = px.vmap(f, in_axes=(0, None))(x, 2.0)
    np.testing.assert_allclose(result["a"], x.sum(1) * 2)
    np.testing.assert_allclose(result["b"][0], x)
    assert set(shapes) == {(3,)}
    np.testing.assert_allclose(px.jit(px.vmap(f))(x, jnp.ones(2))["a"], x.sum(1))
    nested = px.vmap(px.vmap(f, in_axes=(0, None)), in_axes=(0, None))(np.stack([x, x]), 1.0)
    assert nested["a"].shape == (2, 2)


WRONG = {
    "no pair": (lambda size, batched, x: x, TypeError, "must return a pair"),
    "flags of another structure": (
        lambda size, batched, x: (x, [True]),
        ValueError,
        "say for each result whether it is batched",
    ),
    "no batch axis": (lambda size, batched, x: (x.sum(), True), ValueError, r"batched result of shape \(\)"),
    "another size": (
        lambda size, batched, x: (x[:1], True),
        ValueError,
        r"shape \(1,\); its first axis must have the size 3",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_are_named(name):
    rule, kind, message = WRONG[name]
    f = custom_vmap(lambda x: x)
    f.def_vmap(rule)
    with pytest.raises(kind, match=message) as error:
        px.vmap(f)(jnp.ones(3))
    assert re.search(rf"at {HERE}:\d+", str(error.value))


def test_without_a_rule():
    with pytest.raises(AttributeError, match="without a rule"):
        custom_vmap(lambda x: x)(1.0)


def test_captured_values_that_are_batched_are_refused():
    def outer(y):
        f = custom_vmap(lambda x: x * y)
        f.def_vmap(lambda size, batched, x: (x, batched[0]))
        return px.jit(f)(2.0)

    with pytest.raises(NotImplementedError, match="pass it as an argument"):
        px.vmap(outer)(jnp.ones(3))
    with pytest.raises(NotImplementedError, match="pass it as an argument"):
        px.jvp(outer, (1.0,), (1.0,))


def test_a_value_and_its_tangent_may_be_batched_apart():
    def plain(x):
        return jnp.sin(x).sum() * x

    looped, x = px.custom_batching.sequential_vmap(plain), jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(px.jacfwd(looped)(x[1]), px.jacfwd(plain)(x[1]), rtol=1e-6)
    along = lambda f: px.vmap(lambda x: px.jvp(f, (x,), (jnp.ones(3),))[1])  # noqa: E731
    np.testing.assert_allclose(along(looped)(x), along(plain)(x), rtol=1e-6)
