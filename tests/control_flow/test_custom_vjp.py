"""`custom_vjp`, `custom_gradient`, `closure_convert`: the backward rule is used in every order and transformation."""

from __future__ import annotations

import functools
import re

import jax
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from tests.control_flow.test_custom_jvp import CONTEXTS

HERE = re.escape(__file__)


def make(scale=1.0):
    """sin(x) · y with `scale` times its derivative, so that one sees the rule at work."""

    @px.custom_vjp
    def f(x, y):
        return jnp.sin(x) * y

    def forward(x, y):
        return f(x, y), {"x": x, "y": y}

    def backward(saved, g):
        return scale * g * jnp.cos(saved["x"]) * saved["y"], scale * g * jnp.sin(saved["x"])

    f.defvjp(forward, backward)
    return f


@pytest.mark.parametrize("context", CONTEXTS)
def test_the_rule_is_used_everywhere(context):
    f = CONTEXTS[context](make(10.0))
    x, y = jnp.float32(0.5), jnp.float32(2.0)
    expected = 10 * np.cos(0.5) * 2
    np.testing.assert_allclose(f(x, y), np.sin(0.5) * 2, rtol=1e-6)
    for derivative in (px.grad(f), px.jacrev(f), px.jit(px.grad(f)), px.grad(px.jit(f))):
        np.testing.assert_allclose(derivative(x, y), expected, rtol=1e-6)
    np.testing.assert_allclose(px.grad(f, argnums=1)(x, y), 10 * np.sin(0.5), rtol=1e-6)
    batched = px.vmap(px.grad(f, argnums=(0, 1)), in_axes=(0, None))(jnp.stack([x, x + 1]), y)
    np.testing.assert_allclose(batched[0], [expected, 10 * np.cos(1.5) * 2], rtol=1e-6)
    np.testing.assert_allclose(batched[1], [10 * np.sin(0.5), 10 * np.sin(1.5)], rtol=1e-6)


@pytest.mark.parametrize("context", CONTEXTS)
def test_higher_derivatives_in_reverse(context):
    f = CONTEXTS[context](make())
    x, y = jnp.float32(0.5), jnp.float32(2.0)
    for expected in (np.sin(0.5) * 2, np.cos(0.5) * 2, -np.sin(0.5) * 2, -np.cos(0.5) * 2):
        np.testing.assert_allclose(f(x, y), expected, rtol=1e-5)
        f = px.grad(f)


@pytest.mark.parametrize(
    "run",
    [
        lambda f: px.jvp(f, (1.0, 2.0), (1.0, 1.0)),
        lambda f: px.jacfwd(f)(1.0, 2.0),
        lambda f: px.hessian(f)(1.0, 2.0),
        lambda f: px.linearize(f, 1.0, 2.0)[1](1.0, 1.0),
        lambda f: px.jit(px.jacfwd(f))(1.0, 2.0),
    ],
)
def test_forward_differentiation_is_refused(run):
    with pytest.raises(TypeError, match=rf"cannot go through `f`.*reverse differentiation only[\s\S]*{HERE}"):
        run(make())


def test_clipping_gradients():
    clip = px.custom_vjp(lambda x: x)
    clip.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1.0, 1.0),))
    assert float(px.grad(lambda x: 10 * clip(x))(2.0)) == 1.0
    assert px.grad(lambda x: (clip(x) * jnp.array([0.5, -3.0])).sum())(jnp.ones(2)).tolist() == [0.5, -1.0]


def test_arguments_shared_by_a_batch_collect_all_cotangents():
    f = make(1.0)
    gradient = px.grad(lambda y: px.vmap(f, in_axes=(0, None))(jnp.arange(3.0), y).sum())(jnp.float32(2.0))
    np.testing.assert_allclose(gradient, np.sin(np.arange(3)).sum(), rtol=1e-6)


def test_trees_none_and_integers():
    @px.custom_vjp
    def f(tree, n, unused):
        return {"y": tree["a"] * n, "m": n + 1}

    f.defvjp(
        lambda tree, n, unused: (f(tree, n, unused), n),
        lambda n, g: ({"a": g["y"] * n * 100, "b": None}, None, None),
    )
    arguments = ({"a": jnp.ones(2), "b": jnp.ones(3)}, 3, 1.5)
    for run in (lambda g: g, px.jit):
        gradient = run(px.grad(lambda t, n, u: f(t, n, u)["y"].sum(), argnums=(0, 2)))(*arguments)
        assert gradient[0]["a"].tolist() == [300.0, 300.0] and gradient[0]["b"].tolist() == [0.0] * 3
        assert float(gradient[1]) == 0.0


def test_nondiff_arguments():
    @functools.partial(px.custom_vjp, nondiff_argnums=(0, 2))
    def apply(function, x, power):
        return function(x) ** power

    apply.defvjp(
        lambda function, x, power: (apply(function, x, power), x),
        lambda function, power, x, g: (g * power * 100,),
    )
    for run in (lambda f: f, px.jit):
        assert float(run(px.grad(lambda x: apply(jnp.sin, x, 3)))(0.5)) == 300.0
    by_name = px.custom_vjp(lambda x, n: x**n, nondiff_argnames=["n"])
    by_name.defvjp(lambda x, n: (by_name(x, n), None), lambda n, _, g: (g * n,))
    assert float(px.grad(lambda x: by_name(x, n=4))(2.0)) == 4.0


def test_symbolic_zeros():
    seen = []

    @px.custom_vjp
    def f(x, y):
        return x * y, x + y

    def forward(x, y):
        seen.append((x.perturbed, y.perturbed))
        saved = (y.value,) if x.perturbed else ()  # what is saved may depend on what is differentiated
        return f(x.value, y.value), (saved, x.value)

    def backward(residuals, cotangents):
        saved, x = residuals
        seen.append([type(c).__name__ == "SymbolicZero" for c in cotangents])
        return cotangents[0] * saved[0] if saved else None, cotangents[0] * x

    f.defvjp(forward, backward, symbolic_zeros=True)
    assert float(px.grad(lambda x: f(x, 3.0)[0])(2.0)) == 3.0
    assert float(px.grad(lambda y: f(2.0, y)[0])(3.0)) == 2.0
    assert seen == [(True, False), [False, True], (False, True), [False, True]]
    both = px.jit(lambda x, y: (px.grad(lambda a: f(a, y)[0])(x), px.grad(lambda b: f(x, b)[0])(y)))
    assert [float(v) for v in both(2.0, 3.0)] == [3.0, 2.0]
    compiled = px.jit(lambda x, y: f(x, y)[0])
    first, second = px.vjp(lambda a: compiled(a, 3.0), 2.0)[1], px.vjp(lambda b: compiled(2.0, b), 3.0)[1]
    assert float(first(1.0)[0]) == 3.0 and float(second(1.0)[0]) == 2.0
    assert px.vmap(px.grad(lambda x, y: f(x, y)[0]))(jnp.full(2, 2.0), jnp.full(2, 3.0)).tolist() == [
        3.0,
        3.0,
    ]


def test_methods_keywords_and_defaults():
    class Layer:
        scale = 4.0

        @functools.partial(px.custom_vjp, nondiff_argnums=(0,))
        def apply(self, x, y=2.0):
            return x * y

        apply.defvjp(lambda self, x, y: (x * y, None), lambda self, _, g: (g * self.scale, None))

    assert float(px.grad(Layer().apply)(3.0)) == 4.0
    assert float(px.grad(lambda x: Layer().apply(y=3.0, x=x))(3.0)) == 4.0


def with_rules(forward, backward):
    f = px.custom_vjp(lambda x, t: {"r": x * t["a"]})
    f.defvjp(forward, backward)
    f.fun.__name__ = "mine"
    return f


def good_forward(x, t):
    return {"r": x * t["a"]}, (x, t["a"])


WRONG = {
    "forward: no pair": (lambda x, t: {"r": x}, lambda s, g: None, TypeError, "must return a pair"),
    "too few": (
        good_forward,
        lambda s, g: (g["r"],),
        TypeError,
        "each of the 2 differentiated arguments, got a tuple of 1",
    ),
    "no tuple": (good_forward, lambda s, g: g["r"], TypeError, "must return a tuple"),
    "another structure": (
        good_forward,
        lambda s, g: (g["r"], [g["r"]]),
        TypeError,
        "for argument 1, which has structure",
    ),
    "another shape": (
        good_forward,
        lambda s, g: (jnp.ones(3), None),
        ValueError,
        r"f32\[3\] for argument 0, whose cotangent has type f32\[\]",
    ),
    "another shape in a tree": (
        good_forward,
        lambda s, g: (g["r"], {"a": jnp.ones(2)}),
        ValueError,
        r"for argument 1\['a'\]",
    ),
    "another dtype": (
        good_forward,
        lambda s, g: (g["r"].astype(jnp.int32), None),
        ValueError,
        r"i32\[\] for argument 0",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("run", [lambda g: g, px.jit], ids=["eager", "jit"])
def test_wrong_rules_are_named(name, run):
    forward, backward, kind, message = WRONG[name]
    f = with_rules(forward, backward)
    with pytest.raises(kind, match=message) as error:
        run(px.grad(lambda x: f(x, {"a": 2.0})["r"]))(1.0)
    assert "`mine`" in str(error.value) and re.search(rf"at {HERE}:\d+", str(error.value)), str(error.value)


def test_a_forward_rule_with_another_result_is_named_where_that_is_known():
    f = with_rules(lambda x, t: ((x, x), x), lambda s, g: (g[0], None))
    with pytest.raises(TypeError, match="structure that the function returns"):
        px.grad(px.jit(lambda x: f(x, {"a": 2.0})["r"]))(1.0)


def test_without_rules():
    with pytest.raises(AttributeError, match="without rules; define them with"):
        px.custom_vjp(lambda x: x)(1.0)


def test_captured_values_cannot_be_differentiated():
    def h(y):
        f = px.custom_vjp(lambda x: x * y)
        f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
        return px.jit(f)(2.0)

    with pytest.raises(TypeError, match="captured"):
        px.grad(h)(3.0)
    assert float(px.jit(h)(3.0)) == 6.0


# --- custom_gradient and closure_convert


def test_custom_gradient():
    @px.custom_gradient
    def f(x, y):
        return x * y, lambda g: (g * 10, g * x)

    for run in (lambda g: g, px.jit):
        assert [float(g) for g in run(px.grad(f, argnums=(0, 1)))(2.0, 3.0)] == [10.0, 2.0]
    assert px.vmap(px.grad(f, argnums=1))(jnp.arange(3.0), jnp.ones(3)).tolist() == [0.0, 1.0, 2.0]
    assert float(px.grad(lambda x: px.lax.scan(lambda c, v: (f(c, v), c), x, jnp.ones(2))[0])(2.0)) == 100.0
    single = px.custom_gradient(lambda x: (x**2, lambda g: g * x))
    assert float(px.grad(single)(3.0)) == 3.0
    assert float(px.grad(px.grad(single))(3.0)) == 1.0, (
        "the backward function is differentiated with what it captured"
    )


def test_closure_convert():
    def solve(f, x, y):
        converted, captured = px.closure_convert(f, x)
        return _solve(converted, x, y, *captured)

    @functools.partial(px.custom_vjp, nondiff_argnums=(0,))
    def _solve(f, x, y, *captured):
        return f(x, *captured) * y

    def forward(f, x, y, *captured):
        return _solve(f, x, y, *captured), (x, y, captured)

    def backward(f, saved, g):
        x, y, captured = saved
        _, pullback = px.vjp(lambda v, *c: f(v, *c) * y, x, *captured)
        x_bar, *rest = pullback(g)
        return x_bar, None, *rest

    _solve.defvjp(forward, backward)
    gradient = px.grad(lambda w: solve(lambda x: jnp.sin(x * w), 0.5, 2.0))
    for derivative in (gradient, px.jit(gradient)):
        np.testing.assert_allclose(derivative(3.0), 2 * 0.5 * np.cos(1.5), rtol=1e-6)
    plain, captured = px.closure_convert(lambda x: x * 2, 1.0)
    assert captured == [] and float(plain(3.0)) == 6.0
    with pytest.raises(TypeError, match="arguments of structure"):
        plain({"a": 1.0})


def test_none_in_cotangents_stands_for_zeros_of_a_subtree_and_for_none_in_arguments():
    @px.custom_vjp
    def f(x, y):
        return x["a"]

    f.defvjp(lambda x, y: (x["a"], None), lambda _, ct: ({"a": 3 * ct, "b": None, "c": None}, None))
    tree = {"a": 1.0, "b": None, "c": (1.0, 2.0)}
    gradient = px.grad(f)(tree, (1.0, None))
    assert gradient["a"] == 3 and gradient["b"] is None and gradient["c"] == (0, 0)
    f.defvjp(lambda x, y: (x["a"], None), lambda _, ct: ({"a": ct, "b": None, "c": ct}, None))
    with pytest.raises(TypeError, match="structured like the arguments"):
        px.grad(f)(tree, (1.0, None))


def test_what_a_forward_rule_sees_is_a_leaf():
    leaf = px.custom_derivatives.CustomVJPPrimal(2.0, True)
    assert px.tree.leaves([leaf]) == [leaf]


def rules_on_zeros(lib):
    """Functions whose rules return something even if no cotangent arrives; `use` sends none to its first argument."""
    jnp = lib.numpy

    @lib.custom_vjp
    def f(x):
        return jnp.sin(x)

    @lib.custom_vjp
    def use(y, x):
        return y + x

    f.defvjp(lambda x: (f(x), None), lambda _, g: (g * 0 + 7.0,))
    use.defvjp(lambda y, x: (use(y, x), None), lambda _, g: (None, g))
    step = lambda c, _: (use(f(c), c), None)  # noqa: E731
    return [
        lambda x: use(f(x), x),
        lambda x: use(jnp.sin(f(x)), x),
        lambda x: (f(x), x * 2)[1],
        lambda x: (jnp.sin(f(x)), x * 2)[1],
        lambda x: lib.lax.stop_gradient(f(x)) + x * 2,
        lambda x: lib.jit(lambda x: (f(x), x))(x)[1],
        lambda x: lib.lax.scan(step, x, None, length=3)[0],
        lambda x: lib.lax.scan(lambda c, _: (c * 2, f(c)), x, None, length=3)[0],
        lambda x: lib.lax.cond(x > 0, lambda x: use(f(x), x), lambda x: x, x),
    ]


def test_a_rule_runs_where_its_result_is_used_even_if_no_cotangent_arrives():
    for i, (ours, theirs) in enumerate(zip(rules_on_zeros(px), rules_on_zeros(jax), strict=True)):
        expected = float(jax.grad(theirs)(1.0))
        assert float(px.grad(ours)(1.0)) == expected, i
        assert float(px.jit(px.grad(ours))(1.0)) == expected, i


def with_rule(apply):
    """A custom_jvp function 2 g(x), where g(x) = sin x has the reverse derivative 3 cos x, and `apply` uses g."""

    @px.custom_vjp
    def g(x):
        return jnp.sin(x)

    g.defvjp(lambda x: (jnp.sin(x), x), lambda x, cotangent: (3 * cotangent * jnp.cos(x),))

    @px.custom_jvp
    def f(x):
        return 2 * g(x)

    f.defjvp(lambda primals, tangents: tuple(2 * v for v in apply(g, primals, tangents)))
    return f


APPLIED = {
    "jvp": lambda g, p, t: px.jvp(g, p, t),
    "jvp of jit": lambda g, p, t: px.jvp(px.jit(g), p, t),
    "jvp of vmap": lambda g, p, t: px.jvp(lambda x: px.vmap(g)(x[None])[0], p, t),
    "jvp of checkpoint": lambda g, p, t: px.jvp(px.checkpoint(g), p, t),
    "jvp of scan": lambda g, p, t: px.jvp(
        lambda x: px.lax.scan(lambda c, _: (c + g(x), None), 0 * x, None, length=1)[0], p, t
    ),
    "jit of jvp": lambda g, p, t: px.jit(lambda p, t: px.jvp(lambda x: 1.0 * g(x), p, t))(p, t),
}
DERIVED = {
    "grad": lambda f: px.grad(lambda x: f(x).sum()),
    "jit of grad": lambda f: px.jit(px.grad(lambda x: f(x).sum())),
    "grad of jit": lambda f: px.grad(lambda x: px.jit(f)(x).sum()),
    "grad of vmap": lambda f: px.grad(lambda x: px.vmap(f)(x).sum()),
    "vmap of grad": lambda f: px.vmap(px.grad(f)),
    "vmap with a name": lambda f: px.grad(lambda x: px.vmap(f, axis_name="i")(x).sum()),
    "jacrev": lambda f: lambda x: px.jacrev(f)(x).sum(0),
    "grad of checkpoint": lambda f: px.grad(lambda x: px.checkpoint(f)(x).sum()),
    "grad of scan": lambda f: px.grad(lambda x: px.lax.scan(lambda c, v: (c, f(v)), 0.0, x)[1].sum()),
}


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("applied", APPLIED)
def test_a_rule_pushes_tangents_through_a_reverse_rule(applied, derived):
    x = jnp.arange(3.0)
    found = DERIVED[derived](with_rule(APPLIED[applied]))(x)
    np.testing.assert_allclose(found, 6 * np.cos(x), rtol=1e-5)


@pytest.mark.parametrize("applied", APPLIED)
def test_forward_differentiation_still_raises(applied):
    f = with_rule(APPLIED[applied])
    for run in (lambda f: f, px.jit):
        with pytest.raises(TypeError, match="reverse differentiation only"):
            run(lambda x: px.jvp(f, (x,), (x,)))(jnp.arange(3.0))


@pytest.mark.parametrize("given", [jnp.float16, jnp.bfloat16, jnp.float32])
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.float32, jnp.complex64])
@pytest.mark.parametrize("run", [lambda g: g, px.jit], ids=["eager", "jit"])
def test_cotangents_of_another_width_are_converted(run, dtype, given):
    @px.custom_vjp
    def f(x):
        return jnp.real(x) * 2

    f.defvjp(lambda x: (f(x), None), lambda _, g: (jnp.full(g.shape, 1.5, given),))
    gradient = run(px.grad(lambda x: jnp.sum(f(x).astype(jnp.float32))))(jnp.ones(3, dtype))
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, np.full(3, 1.5))
