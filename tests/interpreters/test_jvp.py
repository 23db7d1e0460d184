"""The forward derivative of programs: which tangents are there, symbolic zeros, what is remembered."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.avals import Zero
from purax.core.jaxpr import eval_jaxpr
from purax.core.jaxpr_check import check_jaxpr
from purax.interpreters.jvp import jvp_flat, jvp_jaxpr


def test_zero_tangents_cost_nothing():
    x, y = jnp.float32(2.0), jnp.float32(3.0)
    (out,), (tangent,) = jvp_flat(lambda a, b: [jnp.sin(a) * b], [x, y], [Zero.like(x), jnp.float32(1.0)])
    np.testing.assert_allclose(tangent, np.sin(2.0), rtol=1e-6)
    _, (tangent,) = jvp_flat(lambda a, b: [jnp.sin(a)], [x, y], [Zero.like(x), jnp.float32(1.0)])
    assert type(tangent) is Zero
    _, (tangent,) = jvp_flat(lambda a: [jnp.floor(a)], [x], [jnp.float32(1.0)])
    assert type(tangent) is Zero
    equations = px.make_jaxpr(lambda t: px.jvp(lambda a, b: jnp.exp(a) * b, (x, y), (0.0 * t, t)))(1.0).eqns
    assert len(equations) < 12


@pytest.mark.parametrize("moving", [(True, True), (True, False), (False, True)])
def test_the_derivative_of_a_program(moving):
    closed = px.make_jaxpr(lambda a, b: (a * b, jnp.sin(b), jnp.floor(a)))(2.0, 3.0)
    derivative, out_moving = jvp_jaxpr(closed, moving)
    check_jaxpr(derivative)
    assert out_moving == [True, moving[1], False]
    tangents = [1.0 for m in moving if m]
    results = eval_jaxpr(derivative.jaxpr, derivative.consts, 2.0, 3.0, *tangents)
    expected = [6.0, np.sin(3.0), 2.0, 3.0 * moving[0] + 2.0 * moving[1]] + (
        [np.cos(3.0)] if moving[1] else []
    )
    np.testing.assert_allclose([float(r) for r in results], expected, rtol=1e-6)
    assert jvp_jaxpr(closed, moving)[0] is derivative, "made once"


def test_forced_tangents_are_explicit_zeros():
    closed = px.make_jaxpr(lambda a: (a * 2, jnp.floor(a)))(2.0)
    derivative, out_moving = jvp_jaxpr(closed, [True], [False, True])
    assert out_moving == [True, True]
    assert [float(r) for r in eval_jaxpr(derivative.jaxpr, (), 2.0, 1.0)] == [4.0, 2.0, 2.0, 0.0]


def test_nested_forward_derivatives_do_not_mix():
    f = lambda x: x * px.jvp(lambda y: x * y, (3.0,), (1.0,))[1]  # noqa: E731   x · x
    assert float(px.jvp(f, (5.0,), (1.0,))[1]) == 10.0
    g = lambda x: px.jvp(lambda y: px.jvp(lambda z: x * y * z**2, (y,), (1.0,))[1], (x,), (1.0,))[1]  # noqa: E731
    # ∂/∂y (2 x y · y) at y = x is 4 x²; its derivative is 8 x
    assert float(px.jvp(g, (3.0,), (1.0,))[1]) == 24.0


def test_tangents_of_captured_values_flow():
    def f(x):
        return px.lax.scan(lambda c, v: (c * x + v, c), x, jnp.arange(3.0))[0]

    x = 1.25
    exact = 4 * x**3 + 1  # ((x·x + 0)·x + 1)·x + 2
    assert float(px.jvp(f, (x,), (1.0,))[1]) == pytest.approx(exact, rel=1e-6)
    assert float(px.jvp(px.jit(f), (x,), (1.0,))[1]) == pytest.approx(exact, rel=1e-6)
