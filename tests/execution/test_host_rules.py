"""Rules as straight-line NumPy programs: they give what the rules give, bit for bit, in the types that these give."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.execution import host_rules, host_transforms
from purax.interpreters.jvp import JVPTrace, JVPTracer
from purax.interpreters.linearize import HostStep, LinearizeTrace, LinearizeTracer
from purax.interpreters.vmap import BatchTrace, BatchTracer

X = np.array([0.3, -1.2, 0.0, 2.5], np.float32)
W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def loss(x):
    y = jnp.tanh(x @ W) * x + jnp.where(x > 0, x**3, -x) / (1 + jnp.exp(-x))
    return jnp.sum(y[1:] * jnp.cumsum(y)[:-1]) + jnp.max(y) + x[jnp.argmax(x)] - px.nn.logsumexp(y)


def classify(x):
    logits = px.nn.log_softmax(jnp.stack([x, x * x, jnp.sin(x)]))
    return -jnp.mean(jnp.take_along_axis(logits, jnp.array([[1], [0], [-1]]), axis=1))


def constant(x):
    return jnp.sum(jnp.floor(x)) + 0 * x[0]


def weak(x):
    return jnp.sum(x) * 2.0


FUNCTIONS = {"loss": loss, "classify": classify, "constant": constant, "weak": weak}
TRANSFORMED = {
    "grad": lambda f: px.grad(f),
    "value_and_grad": lambda f: px.value_and_grad(f),
    "jvp": lambda f: lambda x: px.jvp(f, (x,), (x + 1,)),
    "grad of grad": lambda f: px.grad(lambda x: jnp.sum(px.grad(f)(x) ** 2)),
    "vmap of grad": lambda f: lambda x: px.vmap(px.grad(f))(jnp.stack([x, x + 1])),
    "vmap": lambda f: lambda x: px.vmap(lambda x, a: f(x * a), (1, None), 0)(jnp.stack([x, -x], 1), x),
    "hessian": lambda f: px.hessian(f),
    "jacfwd": lambda f: px.jacfwd(f),
    "pullback": lambda f: lambda x: px.vmap(px.vjp(f, x)[1])(jnp.ones(3)),
    "pushforward": lambda f: lambda x: px.jit(px.linearize(f, x)[1])(x),
}


@pytest.fixture(params=["installed", "python"])
def patience(request, monkeypatch):
    """Sets after how many uses a rule is recorded, with no rules recorded before; with the parts in C and without."""
    if request.param == "python":
        monkeypatch.setattr(HostStep, "run_backwards", staticmethod(host_transforms.run_on_host_backwards))
        for trace, rule, result, arguments in (
            (JVPTrace, "jvp_rule", "jvp_result", ("jvp", JVPTracer, "primal", "tangent")),
            (
                LinearizeTrace,
                "linearize_rule",
                "linearize_result",
                ("linearize", LinearizeTracer, "primal", "tangent"),
            ),
            (BatchTrace, "batch_rule", "batch_result", ("batch", BatchTracer, "value", "axis")),
        ):
            make, finish = getattr(host_transforms, rule), getattr(host_transforms, result)
            monkeypatch.setattr(trace, "host_rules", host_rules.PythonHostRules(*arguments, make, finish))

    def change(count):
        host_rules.rules.clear()
        monkeypatch.setattr(host_rules, "PATIENCE", count)

    yield change
    host_rules.rules.clear()


@pytest.mark.parametrize("transform", TRANSFORMED)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_the_rules(name, transform, patience):
    function, x = TRANSFORMED[transform](FUNCTIONS[name]), jnp.asarray(X)
    patience(10**9)
    expected = px.tree.leaves(function(x))
    patience(0)
    for _ in range(2):
        for actual, wanted in zip(px.tree.leaves(function(x)), expected, strict=True):
            assert actual.aval is wanted.aval
            np.testing.assert_array_equal(np.asarray(actual), np.asarray(wanted))
    assert any(type(rule) is not int for rule in host_rules.rules.values())


def test_a_rule_is_recorded_when_it_was_used_often(patience):
    patience(3)
    gradient = px.grad(lambda x: jnp.sum(jnp.sin(x)))
    for _ in range(3):
        gradient(jnp.asarray(X))
    assert set(map(type, host_rules.rules.values())) == {int}
    gradient(jnp.asarray(X))
    assert int not in map(type, host_rules.rules.values())


def test_settings_are_part_of_what_a_rule_is_found_by(patience):
    patience(0)
    x = jnp.array([0.0, 1.0])
    gradient = px.grad(lambda x: jnp.sum(jnp.where(x > 0, x / jnp.where(x > 0, x, 0 * x), 0.0)))
    assert np.isnan(np.asarray(gradient(x))).any()
    with px.config.override(safe_gradients=True):
        assert not np.isnan(np.asarray(gradient(x))).any()
    assert np.isnan(np.asarray(gradient(x))).any()
    with px.debug_nans(True), pytest.raises(FloatingPointError):
        gradient(x)


def test_a_pullback_is_used_under_other_settings_than_it_was_made(patience):
    patience(0)
    x = jnp.array([0.0, 1.0])
    _, pullback = px.vjp(lambda x: jnp.where(x > 0, jnp.log(x), 0.0), x)
    assert np.isnan(np.asarray(pullback(jnp.ones(2))[0])).any()
    with px.config.override(safe_gradients=True):
        np.testing.assert_array_equal(pullback(jnp.ones(2))[0], [0.0, 1.0])


def test_large_arrays_and_other_sizes_are_left_to_the_rules(patience):
    patience(0)
    size = px.config.host_size_limit + 1
    np.testing.assert_allclose(px.grad(lambda x: jnp.sum(jnp.sin(x)))(jnp.ones(size)), np.cos(1.0), 1e-6)
    with px.config.override(host_size_limit=2):
        assert not host_rules.rules
        np.testing.assert_allclose(px.grad(lambda x: jnp.sum(jnp.sin(x)))(jnp.asarray(X)), np.cos(X), 1e-6)
        assert not any(type(rule) is not int and rule is not None for rule in host_rules.rules.values())


def test_a_value_with_a_zero_tangent_is_a_plain_array():
    kinds = []

    def function(x):
        kinds.append(type(x > 0))
        kinds.append(type(px.lax.stop_gradient(x) * 2))
        return jnp.sum(x)

    px.grad(function)(jnp.asarray(X))
    px.jvp(function, (jnp.asarray(X),), (jnp.asarray(X),))
    assert kinds == [type(jnp.asarray(X))] * 4
