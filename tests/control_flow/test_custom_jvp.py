"""`custom_jvp`: the rule is used in every mode and order, inside of every transformation; wrong rules are named."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

HERE = re.escape(__file__)


def make(scale=1.0):
    """sin(x) · y with `scale` times its derivative, so that one sees the rule at work."""

    @px.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), scale * (jnp.cos(x) * y * dx + jnp.sin(x) * dy)

    return f


CONTEXTS = {
    "plain": lambda f: f,
    "jit": px.jit,
    "jit of jit": lambda f: px.jit(px.jit(f)),
    "checkpoint": px.checkpoint,
    "vmap": lambda f: lambda x, y: px.vmap(f)(jnp.stack([x, x]), jnp.stack([y, y]))[0],
    "vmap of one": lambda f: lambda x, y: px.vmap(f, in_axes=(0, None))(jnp.stack([x, x]), y)[1],
    "jit of vmap": lambda f: lambda x, y: px.jit(px.vmap(f))(jnp.stack([x, x]), jnp.stack([y, y]))[0],
    "vmap of jit": lambda f: lambda x, y: px.vmap(px.jit(f))(jnp.stack([x, x]), jnp.stack([y, y]))[0],
    "cond": lambda f: lambda x, y: px.lax.cond(True, f, lambda a, b: a * 0, x, y),
    "cond in jit": lambda f: px.jit(lambda x, y: px.lax.cond(x > -9, f, lambda a, b: a * 0, x, y)),
    "scan": lambda f: lambda x, y: px.lax.scan(lambda c, v: (c, f(v, y)), 0.0, x[None])[1][0],
    "scan in jit": lambda f: px.jit(lambda x, y: px.lax.scan(lambda c, v: (c, f(v, y)), 0.0, x[None])[1][0]),
    "captured by jit": lambda f: lambda x, y: px.jit(lambda v: f(v, y))(x),
}


@pytest.mark.parametrize("context", CONTEXTS)
def test_the_rule_is_used_everywhere(context):
    f = CONTEXTS[context](make(10.0))
    x, y = jnp.float32(0.5), jnp.float32(2.0)
    expected = 10 * np.cos(0.5) * 2
    np.testing.assert_allclose(f(x, y), np.sin(0.5) * 2, rtol=1e-6)
    for derivative in (
        px.grad(f),
        px.jacfwd(f),
        px.jit(px.grad(f)),
        px.jit(px.jacfwd(f)),
        px.grad(px.jit(f)),
    ):
        np.testing.assert_allclose(derivative(x, y), expected, rtol=1e-6)
    np.testing.assert_allclose(px.grad(f, argnums=1)(x, y), 10 * np.sin(0.5), rtol=1e-6)
    batched = px.vmap(px.grad(f), in_axes=(0, None))(jnp.stack([x, x + 1]), y)
    np.testing.assert_allclose(batched, [expected, 10 * np.cos(1.5) * 2], rtol=1e-6)


@pytest.mark.parametrize("context", CONTEXTS)
def test_higher_derivatives_apply_the_rule_again(context):
    f = CONTEXTS[context](make())
    x, y = jnp.float32(0.5), jnp.float32(2.0)
    expected = [np.sin(0.5) * 2, np.cos(0.5) * 2, -np.sin(0.5) * 2, -np.cos(0.5) * 2]
    for order in range(4):
        np.testing.assert_allclose(f(x, y), expected[order], rtol=1e-5)
        f = (
            px.grad(f)
            if order % 2
            else (lambda g: lambda a, b: px.jvp(lambda v: g(v, b), (a,), (jnp.float32(1.0),))[1])(f)
        )


def test_a_fixed_derivative_where_the_plain_one_fails():
    @px.custom_jvp
    def log1pexp(x):
        return jnp.log(1.0 + jnp.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * dx

    assert float(px.grad(log1pexp)(100.0)) == 1.0
    assert float(px.jit(px.vmap(px.grad(log1pexp)))(jnp.array([100.0]))[0]) == 1.0


def test_python_control_flow_in_the_function():
    @px.custom_jvp
    def f(x):
        return x * 2 if x > 0 else -x

    f.defjvp(lambda primals, tangents: (f(*primals), 5.0 * tangents[0]))
    assert float(f(3.0)) == 6.0 and float(px.grad(f)(3.0)) == 5.0


def test_defjvps():
    @px.custom_jvp
    def f(x, y, z):
        return {"a": x * y, "b": z}

    f.defjvps(
        lambda t, out, x, y, z: {"a": 100 * t, "b": 0 * z},
        None,
        lambda t, out, x, y, z: {"a": 0 * x, "b": 7 * t},
    )
    _, tangent = px.jvp(f, (1.0, 2.0, 3.0), (1.0, 1.0, 1.0))
    assert float(tangent["a"]) == 100.0 and float(tangent["b"]) == 7.0
    assert [float(g) for g in px.grad(lambda *a: f(*a)["a"], argnums=(0, 1, 2))(1.0, 2.0, 3.0)] == [
        100.0,
        0.0,
        0.0,
    ]


def test_nondiff_arguments_may_be_anything():
    @functools.partial(px.custom_jvp, nondiff_argnums=(0, 2))
    def apply(function, x, options):
        return function(x) * options["scale"]

    @apply.defjvp
    def rule(function, options, primals, tangents):
        (x,), (dx,) = primals, tangents
        return apply(function, x, options), options["derivative"] * dx

    options = {"scale": 2.0, "derivative": 42.0}
    assert float(apply(jnp.sin, 0.5, options)) == pytest.approx(2 * np.sin(0.5))
    for run in (lambda f: f, px.jit):
        assert float(run(px.grad(lambda x: apply(jnp.sin, x, options)))(0.5)) == 42.0
    by_name = px.custom_jvp(lambda x, n: x**n, nondiff_argnames=("n",))
    by_name.defjvp(lambda n, primals, tangents: (by_name(primals[0], n), 9.0 * tangents[0]))
    assert float(px.grad(by_name)(2.0, n=3)) == 9.0


def test_keywords_and_defaults():
    @px.custom_jvp
    def f(x, y=3.0):
        return x * y

    f.defjvp(lambda primals, tangents: (f(*primals), 2 * primals[1] * tangents[0]))
    assert float(px.grad(f)(2.0)) == 6.0
    assert float(px.grad(lambda x: f(y=5.0, x=x))(2.0)) == 10.0
    g = px.custom_jvp(lambda x, *, flag=1: x)
    g.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    with pytest.raises(TypeError, match=r"keyword-only arguments \['flag'\]"):
        g(1.0, flag=2)


def test_methods():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(px.custom_jvp, nondiff_argnums=(0,))
        def apply(self, x):
            return x * self.scale

        @apply.defjvp
        def rule(self, primals, tangents):
            return self.apply(*primals), 100.0 * tangents[0]

    assert float(Model(3.0).apply(2.0)) == 6.0
    assert float(px.grad(Model(3.0).apply)(2.0)) == 100.0


def test_integer_arguments_have_float0_tangents():
    seen = []

    @px.custom_jvp
    def f(x, n):
        return x * n

    @f.defjvp
    def rule(primals, tangents):
        seen.append(tangents[1].dtype)
        return f(*primals), tangents[0] * primals[1]

    assert float(px.grad(f)(2.0, 3)) == 3.0
    assert float(px.jit(px.grad(f))(2.0, 3)) == 3.0
    assert float(px.jvp(f, (2.0, 3), (1.0, np.zeros((), px.float0)))[1]) == 3.0
    assert set(seen) == {px.float0}


def test_symbolic_zeros():
    seen = []

    @px.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        seen.append([type(t).__name__ == "SymbolicZero" for t in (dx, dy)])
        zero = px.custom_derivatives.SymbolicZero
        total = 0.0 if isinstance(dx, zero) else dx * y
        return f(x, y), total if isinstance(dy, zero) else total + x * dy

    f.defjvp(rule, symbolic_zeros=True)
    assert float(px.grad(f)(2.0, 3.0)) == 3.0
    assert float(px.jvp(lambda y: f(2.0, y), (3.0,), (1.0,))[1]) == 2.0
    assert float(px.jit(px.grad(f))(2.0, 3.0)) == 3.0
    assert px.vmap(px.grad(f))(jnp.ones(2), jnp.full(2, 3.0)).tolist() == [3.0, 3.0]
    assert seen[0] == [False, True] and seen[1] == [True, False]


def test_tangents_that_are_python_numbers_take_the_right_dtype():
    f = px.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda primals, tangents: (f(*primals), 3.0))
    out, tangent = px.jvp(f, (jnp.float16(1.0),), (jnp.float16(1.0),))
    assert tangent.dtype == jnp.float16 and float(tangent) == 3.0


def test_rules_may_call_other_functions_with_rules_on_tangents():
    twice = px.custom_jvp(lambda x: 2 * x)
    twice.defjvp(lambda primals, tangents: (twice(*primals), twice(tangents[0])))
    compiled = px.jit(lambda t: t * 5)
    f = px.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], twice(compiled(tangents[0]))))
    for derivative in (px.grad(f), px.jit(px.grad(f)), px.grad(px.jit(f)), px.jacfwd(f)):
        assert float(derivative(1.0)) == 10.0


def with_rule(rule, function=lambda x: {"a": x * 2}):
    f = px.custom_jvp(function)
    f.defjvp(rule)
    f.__name__ = f.fun.__name__ = "mine"
    return f


WRONG = {
    "no pair": (lambda p, t: p[0], "must return a pair"),
    "tangent of another structure": (lambda p, t: ({"a": p[0]}, t[0]), "of the same structure"),
    "tangent of another shape": (
        lambda p, t: ({"a": p[0] * 2}, {"a": jnp.ones(3)}),
        r"for result\['a'\] of type f32\[\], a tangent of type f32\[3\]",
    ),
    "tangent of another dtype": (
        lambda p, t: ({"a": p[0] * 2}, {"a": t[0].astype(jnp.float16)}),
        r"type f16\[\]; it must be f32\[\]",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("run", [lambda g: g, px.jit], ids=["eager", "jit"])
def test_wrong_rules_are_named(name, run):
    rule, message = WRONG[name]
    f = with_rule(rule)
    with pytest.raises(TypeError, match=message) as error:
        run(px.grad(lambda x: f(x)["a"]))(1.0)
    assert "mine" in str(error.value) and re.search(rf"at {HERE}:\d+", str(error.value))


def test_a_rule_that_returns_another_result_than_the_function_is_named_where_that_is_known():
    f = with_rule(lambda p, t: ((p[0], p[0]), (t[0], t[0])))
    with pytest.raises(TypeError, match="structure that the function returns"):
        px.grad(px.jit(lambda x: f(x)["a"]))(1.0)
    g = with_rule(lambda p, t: ({"a": jnp.ones(3)}, {"a": jnp.ones(3)}))
    with pytest.raises(TypeError, match=r"of type \(f32\[\]\), but returned \(f32\[3\]\)"):
        px.grad(px.jit(lambda x: g(x)["a"]))(1.0)


def test_without_a_rule():
    f = px.custom_jvp(lambda x: x)
    with pytest.raises(AttributeError, match="without a rule; define it with"):
        f(1.0)
    g = px.custom_jvp(lambda x, n: x, nondiff_argnums=(1,))
    with pytest.raises(TypeError, match="defjvps cannot be used together with nondiff_argnums"):
        g.defjvps(None)


def test_captured_values_cannot_be_differentiated():
    def outer(run):
        def h(y):
            f = px.custom_jvp(lambda x: x * y)
            f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 2.0))
            return run(f)(2.0)

        return h

    with pytest.raises(
        TypeError, match="captured a value that is being differentiated|captured it from outside"
    ):
        px.grad(outer(px.jit))(3.0)
    with pytest.raises(px.errors.UnexpectedTracerError, match="custom rules, that captured it from outside"):
        px.grad(outer(lambda f: f))(3.0)
    assert float(px.jit(outer(lambda f: f))(3.0)) == 6.0, "capturing alone is fine"
    assert px.vmap(outer(px.jit))(jnp.arange(2.0)).tolist() == [0.0, 2.0]


PROGRAMS = {
    "jit": px.jit(lambda x: jnp.sin(x) * x),
    "checkpoint": px.checkpoint(lambda x: jnp.sin(x) * x),
    "scan": lambda x: px.lax.scan(lambda c, v: (jnp.sin(c) * x + v, c), x, jnp.ones(3))[0],
    "loop": lambda x: px.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * (i + 1), x),
    "cond": lambda x: px.lax.cond(x > 0, jnp.sin, jnp.cos, x),
    "custom_jvp": lambda x: make()(x, x),
    "custom_vmap": px.custom_batching.sequential_vmap(lambda x: px.jit(jnp.sin)(x) * x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_may_differentiate_other_functions(name):
    """Such a rule computes values and tangents in one program; only what depends on tangents belongs on the tape."""
    inside = PROGRAMS[name]
    f = px.custom_jvp(inside)
    f.defjvp(lambda primals, tangents: px.jvp(inside, primals, tangents))
    outer, plain = (lambda x: jnp.exp(f(x)) * x), (lambda x: jnp.exp(inside(x)) * x)
    x = jnp.asarray(0.7, jnp.float64)
    first, second = px.jacfwd(plain)(x), px.jacfwd(px.jacfwd(plain))(x)
    for derivative in (px.grad(outer), px.jit(px.grad(outer)), px.grad(px.jit(outer)), px.jacfwd(outer)):
        np.testing.assert_allclose(derivative(x), first, rtol=1e-12)
    np.testing.assert_allclose(px.grad(px.grad(outer))(x), second, rtol=1e-12)
    np.testing.assert_allclose(px.jit(px.grad(px.grad(outer)))(x), second, rtol=1e-12)


def test_a_tangent_that_does_not_depend_on_tangents_is_zero():
    f = px.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], jnp.zeros(())))
    assert float(px.grad(f)(1.0)) == 0.0 and float(px.linearize(f, 1.0)[1](1.0)) == 0.0


def test_a_call_inside_a_linear_program_is_transposed():
    @px.custom_jvp
    def double(x):
        return 2 * x

    double.defjvp(lambda primals, tangents: (double(*primals), double(*tangents)))
    (result,) = px.linear_transpose(px.jit(lambda x: 3 * double(x)), 1.0)(5.0)
    assert float(result) == 30
    assert float(px.grad(px.jit(lambda x: double(x) ** 2))(1.0)) == 8


def test_zeros_of_a_tree():
    zeros = px.custom_derivatives.zero_from_primal({"a": jnp.ones(2), "b": (None, jnp.arange(3))})
    np.testing.assert_array_equal(zeros["a"], [0, 0])
    assert zeros["b"][0] is None and zeros["b"][1].dtype == px.float0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_tangent_of_a_number_is_weak(dtype):
    """A rule that multiplies a tangent of a Python number, zero or not, gets the dtype of the function's result."""

    @px.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    f.defjvp(lambda p, t: (f(*p), jnp.cos(p[0]) * p[1] * t[0] + jnp.sin(p[0]) * t[1]))
    x = jnp.asarray(0.5, dtype)
    for run in (lambda f: f, px.jit):
        assert px.grad(run(lambda x: f(x, 2.0)))(x).dtype == dtype
        assert px.grad(run(lambda x: f(2.0, x)))(x).dtype == dtype
        assert px.jvp(run(lambda c: f(c, x)), (0.25,), (1.0,))[1].dtype == dtype
        assert px.vmap(px.grad(run(lambda x: f(x, 2.0))))(x[None]).dtype == dtype
