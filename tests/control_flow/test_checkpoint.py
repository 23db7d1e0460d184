"""`checkpoint`: the same values and derivatives, less kept in between, as the policy says."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals
from purax.lowering.jaxpr_to_stablehlo import lower_jaxpr

POLICIES = px.checkpoint_policies
x = np.linspace(0.1, 1.0, 4).astype(np.float32)
w = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)


def f(w, x):
    y = checkpoint_name(jnp.sin(x @ w), "first")
    z = checkpoint_name(jnp.tanh(y @ w), "second")
    return jnp.sum(z * y)


CHOICES = {
    "default": {},
    "nothing": dict(policy=POLICIES.nothing_saveable),
    "everything": dict(policy=POLICIES.everything_saveable),
    "dots": dict(policy=POLICIES.dots_saveable),
    "dots without batch": dict(policy=POLICIES.dots_with_no_batch_dims_saveable),
    "one name": dict(policy=POLICIES.save_only_these_names("first")),
    "but one name": dict(policy=POLICIES.save_any_names_but_these("first")),
    "all but a name": dict(policy=POLICIES.save_anything_except_these_names("first")),
    "either": dict(
        policy=POLICIES.save_from_both_policies(
            POLICIES.dots_saveable, POLICIES.save_only_these_names("second")
        )
    ),
    "offload": dict(
        policy=POLICIES.save_and_offload_only_these_names(
            names_which_can_be_saved=["first"],
            names_which_can_be_offloaded=["second"],
            offload_src="device",
            offload_dst="pinned_host",
        )
    ),
    "without barrier": dict(prevent_cse=False),
    "by a function": dict(policy=lambda primitive, *avals, **params: primitive.name == "sin"),
}


@pytest.mark.parametrize("name", CHOICES)
def test_values_and_derivatives_stay_the_same(name):
    g = px.checkpoint(f, **CHOICES[name])
    np.testing.assert_allclose(g(w, x), f(w, x), rtol=1e-6)
    expected = px.grad(f, argnums=(0, 1))(w, x)
    for derivative in (
        px.grad(g, argnums=(0, 1)),
        px.jit(px.grad(g, argnums=(0, 1))),
        px.grad(px.jit(g), argnums=(0, 1)),
    ):
        for given, wanted in zip(derivative(w, x), expected, strict=True):
            np.testing.assert_allclose(given, wanted, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(
        px.jvp(lambda v: g(w, v), (x,), (x,))[1], px.jvp(lambda v: f(w, v), (x,), (x,))[1], rtol=1e-5
    )
    second = [px.grad(lambda v: px.grad(h, 1)(w, v).sum())(x) for h in (f, g)]  # noqa: B023
    np.testing.assert_allclose(*second, rtol=1e-4, atol=1e-5)
    batched = px.vmap(px.grad(g, 1), in_axes=(None, 0))(w, np.stack([x, x * 2]))
    np.testing.assert_allclose(batched[0], expected[1], rtol=2e-5, atol=1e-6)


# How many values are kept between the passes: of w, x, and what the policy allows of the intermediate ones.
KEPT = {
    "default": {"argument": 2, "output": 0},
    "nothing": {"argument": 2, "output": 0},
    "dots": {"argument": 2, "output": 2},
    "one name": {"argument": 2, "output": 1},
    "but one name": {"argument": 2, "output": 1},
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name):
    kept = [where for _, where in saved_residuals(px.checkpoint(f, **CHOICES[name]), w, x)]
    counts = {kind: sum(kind in where for where in kept) for kind in ("argument", "output")}
    assert counts == KEPT[name], kept


def test_everything_is_kept_without_checkpoint():
    plain = len(saved_residuals(f, w, x))
    assert plain > 4 >= len(saved_residuals(px.checkpoint(f), w, x)) + 2
    assert len(saved_residuals(px.checkpoint(f, policy=POLICIES.everything_saveable), w, x)) >= plain


def test_policies_look_into_inner_functions():
    inner = px.jit(lambda w, x: jnp.sin(x @ w))
    g = px.checkpoint(lambda w, x: jnp.sum(inner(w, inner(w, x))), policy=POLICIES.dots_saveable)
    kept = [where for _, where in saved_residuals(g, w, x)]
    assert sum("dot_general" in where for where in kept) == 2, kept
    expected = px.grad(lambda w: jnp.sum(jnp.sin(jnp.sin(x @ w) @ w)))(w)
    np.testing.assert_allclose(px.grad(g)(w, x), expected, rtol=2e-5, atol=1e-6)


def test_print_saved_residuals(capsys):
    print_saved_residuals(px.checkpoint(f, policy=POLICIES.save_only_these_names("first")), w, x)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert any(re.fullmatch(r"f32\[4,4\] from the argument w", line) for line in lines)
    assert any(re.match(rf"f32\[4\] output of name from {re.escape(__file__)}:\d+", line) for line in lines)


def layer(h, weights):
    for _ in range(4):
        h = jnp.tanh(h @ weights)
    return h


def unrolled(body):
    def loss(weights, h):
        for _ in range(10):
            h = body(h, weights)
        return (h**2).sum()

    return loss


def scanned(body):
    return lambda weights, h: (
        px.lax.scan(lambda c, _: (body(c, weights), None), h, None, length=10)[0] ** 2
    ).sum()


@pytest.mark.parametrize("deep", [unrolled, scanned], ids=["unrolled", "scan"])
def test_memory_of_a_deep_chain(deep):
    """Of the four values per layer one is kept; each is as large as h."""
    weights, h = jnp.ones((64, 64)) / 64, jnp.ones((256, 64))

    def memory(body):
        compiled = px.jit(px.grad(deep(body))).lower(weights, h).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    plain, saving = memory(layer), memory(px.checkpoint(layer))
    assert plain > 38 * h.nbytes and saving < 0.5 * plain, (plain, saving)


def test_the_second_computation_is_not_merged_with_the_first():
    twice = px.checkpoint(lambda v: jnp.sum(jnp.exp(jnp.exp(v))))
    closed = px.make_jaxpr(px.value_and_grad(twice))(
        jnp.asarray(x, "float64")
    )  # its exp is XLA's, to be counted
    for platform, kept_apart_by in (("cpu", "func.call"), ("cuda", "optimization_barrier")):
        text = lower_jaxpr(closed, platform=platform).text()
        assert text.count("stablehlo.exponential") >= 4 and kept_apart_by in text
    free = px.make_jaxpr(px.value_and_grad(px.checkpoint(lambda v: jnp.sum(jnp.exp(v)), prevent_cse=False)))(
        x
    )
    text = lower_jaxpr(free, platform="cuda").text()
    assert "optimization_barrier" not in text and "func.call" not in text


def test_static_arguments():
    g = px.checkpoint(lambda v, n, flag: v**n if flag else v, static_argnums=(1, 2))
    assert float(px.grad(g)(2.0, 3, True)) == 12.0
    by_name = px.checkpoint(lambda v, n: v**n, static_argnames="n")
    assert float(px.grad(by_name)(2.0, n=3)) == 12.0
    negative = px.checkpoint(lambda v, n: v**n, static_argnums=-1)
    assert float(px.grad(negative)(2.0, 3)) == 12.0


def test_as_a_decorator_with_options_trees_and_constants():
    @px.checkpoint(policy=POLICIES.dots_saveable)
    def g(p, v):
        return {"y": jnp.sin(v @ p["w"]), "one": 1.0}

    result = g({"w": w}, x)
    assert isinstance(result["one"], px.Array)
    gradient = px.grad(lambda p: g(p, x)["y"].sum())({"w": w})
    np.testing.assert_allclose(gradient["w"], px.grad(lambda u: jnp.sin(x @ u).sum())(w), rtol=1e-5)
    captured = jnp.asarray(w)
    np.testing.assert_allclose(
        px.grad(px.checkpoint(lambda v: jnp.sin(v @ captured).sum()))(x),
        px.grad(lambda v: jnp.sin(v @ captured).sum())(x),
        rtol=1e-6,
    )


def test_values_captured_from_outside_are_differentiated():
    def loss(u):
        return px.checkpoint(lambda v: jnp.sin(v * u).sum())(x)

    np.testing.assert_allclose(px.grad(loss)(2.0), (np.cos(x * 2) * x).sum(), rtol=1e-5)
    np.testing.assert_allclose(px.jit(px.grad(loss))(2.0), (np.cos(x * 2) * x).sum(), rtol=1e-5)


def test_nested_checkpoints():
    inner = px.checkpoint(lambda v: jnp.sin(jnp.sin(v)))
    outer = px.checkpoint(lambda v: inner(inner(v)).sum())
    plain = lambda v: jnp.sin(jnp.sin(jnp.sin(jnp.sin(v)))).sum()  # noqa: E731
    np.testing.assert_allclose(px.jit(px.grad(outer))(x), px.grad(plain)(x), rtol=1e-6)
    assert len(saved_residuals(outer, x)) == 1


def test_names_do_nothing_by_themselves():
    assert checkpoint_name({"a": 1.0, "b": [2]}, "n")["b"][0] == 2
    assert float(px.grad(lambda v: checkpoint_name(v * 3, "n"))(1.0)) == 3.0
    assert px.vmap(lambda v: checkpoint_name(v, "n"))(x).shape == (4,)


def test_policies_compare_by_value():
    assert POLICIES.save_only_these_names("a", "b") == POLICIES.save_only_these_names("b", "a")
    assert POLICIES.save_only_these_names("a") != POLICIES.save_any_names_but_these("a")


def test_no_function():
    with pytest.raises(TypeError, match="checkpoint needs a function"):
        px.checkpoint(3)
