"""Taylor mode gives what derivatives of derivatives along the curve give, and what jax's gives where that works."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.experimental.jet import jet

POINT = np.array([0.3, 0.7, 1.4], np.float32)
W = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
SERIES = [
    np.array(row, np.float32)
    for row in ([1.0, 0.5, -1.0], [0.5, -0.25, 0.0], [-0.3, 0.1, 0.2], [0.2, 0.0, 1.0])
]


def along_the_curve(function, primal, series):
    """The derivatives of t -> f(x + Σ h_k t^k / k!) at 0, by `jvp` of `jvp` of …"""

    def curve(t):
        return function(primal + sum(h * t ** (k + 1) / math.factorial(k + 1) for k, h in enumerate(series)))

    found, derivative = [], curve
    for _ in series:
        derivative = functools.partial(lambda g, t: px.jvp(g, (t,), (1.0,))[1], derivative)
        found.append(derivative(0.0))
    return function(primal), found


@px.custom_jvp
def doubled_slope(x):
    return x * x


doubled_slope.defjvp(lambda primals, tangents: (doubled_slope(*primals), 4 * primals[0] * tangents[0]))

SMOOTH = {
    "elementary": lambda x: jnp.sin(jnp.exp(x) * x) / (2 + jnp.cos(x)) + jnp.log(x) * jnp.sqrt(x),
    "powers": lambda x: x**x + x**3 - 1 / x + x**-0.5,
    "activations": lambda x: px.nn.gelu(x) + px.nn.softplus(x) + px.nn.sigmoid(x) + jnp.tanh(x),
    "special": lambda x: px.scipy.special.erf(x) + px.scipy.special.gammaln(x) + jnp.arctan(x),
    "linear": lambda x: jnp.concatenate([x[::-1], jnp.pad(x, 1)[1:3]]) + jnp.cumsum(jnp.ones(5)) * x.sum(),
    "matrices": lambda x: jnp.tanh(W @ x) @ jnp.outer(x, x) @ W,
    "reductions": lambda x: px.nn.softmax(x * 2) * x.max() + jnp.prod(x) - px.nn.logsumexp(x),
    "select": lambda x: (
        jnp.where(x > 0.5, x**2, jnp.sin(x)) + jnp.maximum(x, 0.5) * jnp.abs(x - 1) + jnp.floor(x)
    ),
    "sorted": lambda x: jnp.sort(-x) * x[np.array([2, 0, 1])],
    "compiled": px.jit(lambda x: px.jit(jnp.sin)(x) * px.jit(lambda y: y * y)(x)),
    "custom rule": lambda x: doubled_slope(jnp.sin(x)),
    "linear systems": lambda x: jnp.linalg.solve(jnp.eye(3) * 3 + jnp.outer(x, x), x),
    "loops": lambda x: px.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * x, x),
    "scan": lambda x: px.lax.scan(lambda y, w: (jnp.tanh(w @ y), y[0] * y[1]), x, np.stack([W, W.T]))[1],
    "branches": lambda x: (
        px.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x) + px.lax.switch(1, [jnp.sin, jnp.exp], x)
    ),
    "Python control flow": lambda x: jnp.sin(x) if x[0] > 0 else jnp.cos(x),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_along_a_curve(name):
    function = SMOOTH[name]
    with px.enable_x64(True):
        point, series = np.float64(POINT), [np.float64(h) for h in SERIES]
        value, derivatives = jet(function, (point,), (series,))
        wanted, wanted_derivatives = along_the_curve(function, point, series)
        np.testing.assert_allclose(value, wanted, rtol=1e-12)
        for k, (got, expected) in enumerate(zip(derivatives, wanted_derivatives, strict=True)):
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10, err_msg=f"order {k + 1}")
            assert got.dtype == value.dtype and got.shape == value.shape


def test_as_jax_gives_it():
    jax = pytest.importorskip("jax")
    theirs = pytest.importorskip("jax.experimental.jet")

    def f(np_, x, y):
        return np_.tanh(x @ np_.asarray(np.float64(W)) + y), np_.exp(-x) * np_.log(1 + np_.exp(y))

    series = [np.float64(h) for h in SERIES]
    args = (np.float64(POINT), np.float64(POINT[::-1])), (series[:3], series[1:])
    for scaled in (True, False):
        with px.enable_x64(True):
            got = jet(functools.partial(f, jnp), *args, factorial_scaled=scaled)
        with jax.enable_x64(True):
            wanted = theirs.jet(functools.partial(f, jax.numpy), *args, factorial_scaled=scaled)
        assert px.tree.structure(got) == px.tree.structure(jax.tree.map(np.asarray, wanted))
        for y, z in zip(px.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-10, atol=1e-12)


def test_trees_and_results_that_do_not_move():
    def f(d, s):
        return {"y": d["a"] * d["b"], "three": 3.0, "sign": jnp.sign(s)}

    value, terms = jet(
        f, ({"a": 2.0, "b": 3.0}, 1.0), ([{"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}], (0.0, 0.0))
    )
    assert float(value["y"]) == 6 and [float(x) for x in terms["y"]] == [3.0, 2.0]
    assert value["three"] == 3.0 and [float(x) for x in terms["three"]] == [0, 0] == [
        float(x) for x in terms["sign"]
    ]
    assert jet(lambda x: x * x, (2.0,), ([],)) == (4.0, [])


def test_inside_of_other_transformations():
    def second(x):
        return jet(lambda y: jnp.sin(y) * y, (x,), ((1.0, 0.0),))[1][1]

    x = 0.4
    wanted = 2 * np.cos(x) - x * np.sin(x)
    assert float(second(x)) == pytest.approx(wanted, rel=1e-6) == float(px.jit(second)(x))
    third = px.grad(px.grad(px.grad(lambda y: jnp.sin(y) * y)))(x)
    assert float(px.grad(second)(x)) == pytest.approx(float(third), rel=1e-5)
    np.testing.assert_allclose(px.vmap(second)(POINT), 2 * np.cos(POINT) - POINT * np.sin(POINT), rtol=1e-5)
    np.testing.assert_allclose(jet(second, (x,), ((1.0,),))[1][0], third, rtol=1e-5)  # of itself


def test_work_grows_like_a_power_of_the_order():
    def program(order):
        f = lambda x: jnp.sin(jnp.exp(jnp.tanh(x)))  # noqa: E731
        return px.make_jaxpr(lambda x: jet(f, (x,), ([jnp.ones(())] * order,)))(1.0)

    sizes = [len(program(order).eqns) for order in (4, 8)]
    assert sizes[1] < 12 * sizes[0]  # as the cube, about; `jvp` of `jvp` would make it 3⁴ = 81 times as much


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jet(jnp.sin, 2.0, ((1.0,),)), TypeError, "primals and series must be tuples or lists"),
        (
            lambda: jet(jnp.add, (1.0, 2.0), ((1.0, 0.0), (1.0,))),
            ValueError,
            r"inconsistent lengths: \[2, 1\]",
        ),
        (lambda: jet(jnp.add, (1.0, 2.0), ((1.0,),)), ValueError, "each of the 2 arguments"),
        (lambda: jet(jnp.sin, (1.0,), (1.0,)), ValueError, "a list of terms"),
        (
            lambda: jet(jnp.sin, (POINT,), ((1.0,),)),
            ValueError,
            r"shape \(\) for an argument of shape \(3,\)",
        ),
        (
            lambda: jet(jnp.sin, (2,), ((1,),)),
            TypeError,
            r"argument 0 is i32\[\]; only arrays of floating-point",
        ),
        (lambda: jet(jnp.sin, ({"a": 1.0},), ((1.0,),)), ValueError, "term 0 of series has the structure"),
        (lambda: jet(3, (1.0,), ((1.0,),)), TypeError, "jet needs a function"),
    ],
)
def test_wrong_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_rules_of_single_primitives():
    """Rules work on coefficients; each way to give one agrees with what the primitive computes."""
    from purax.compat.extension import Primitive
    from purax.core.avals import ShapedArray
    from purax.experimental import jet as taylor

    series = ([1.0, 5.0, 7.0],)
    wanted = taylor.jet(jnp.sin, (3.0,), series)

    def primitive(name, function):
        made = Primitive(name)
        made.def_impl(function)
        made.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
        return made

    by_derivative, by_parts = primitive("one", jnp.sin), primitive("two", jnp.sin)
    linear, flat = primitive("three", lambda x: 3 * x), primitive("four", jnp.floor)
    taylor.def_deriv(by_derivative, jnp.cos)
    taylor.def_comp(by_parts, jnp.sin)
    taylor.deflinear(linear)
    taylor.defzero(flat)
    try:
        for own in (by_derivative, by_parts):
            value, terms = taylor.jet(own.bind, (3.0,), series)
            np.testing.assert_allclose([value, *terms], [wanted[0], *wanted[1]], rtol=1e-5)
        assert [float(t) for t in taylor.jet(linear.bind, (3.0,), series)[1]] == [3, 15, 21]
        assert [float(t) for t in taylor.jet(flat.bind, (3.5,), series)[1]] == [0, 0, 0]
    finally:
        for own in (by_derivative, by_parts, linear, flat):
            del taylor.jet_rules[own]


def test_zero_series_and_unscaled_terms():
    from purax.experimental import jet as taylor

    value, terms = taylor.jet(lambda x, y: x * y, (2.0, 3.0), ([1.0, 0.0], taylor.zero_series))
    assert float(value) == 6 and [float(t) for t in terms] == [3, 0]
    value, terms = taylor.jet2(lambda x: x * x, (2.0,), ((1.0, taylor.zero_term),))
    assert float(value) == 4 and [float(t) for t in terms] == [4, 1]
    assert taylor.fact(np.arange(5)).tolist() == [1, 1, 2, 6, 24]
