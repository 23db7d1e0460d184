"""`odeint` against jax, closed forms, and what happens where there is no solution."""

from __future__ import annotations

import jax
import jax.experimental.ode
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.experimental.ode import odeint
from tests.against_jax import QUICKLY


def pendulum(y, t, friction, gravity):
    return {"angle": y["speed"], "speed": -friction * y["speed"] - gravity * (y["angle"] + 0.1 * t)}


def solved(library, solve):
    """Solutions and derivatives with respect to all arguments, of a system, a captured number, a batch, an integer."""
    xnp = library.numpy

    def everything(start, t, friction, gravity):
        def solution(start, t, friction, gravity):
            y0 = {"angle": start[0], "speed": start[1]}
            return solve(pendulum, y0, t, friction, gravity, rtol=1e-6, atol=1e-6)

        def loss(*xs):
            return sum(xnp.sum(v**2 * xnp.arange(1.0, 8.0)) for v in library.tree.leaves(solution(*xs)))

        def captured(w):
            return solve(lambda y, t: -w * y * xnp.cos(t), xnp.ones(2), t, rtol=1e-6, atol=1e-6)[-1].sum()

        xs = (start, t, friction, gravity)
        return (
            solution(*xs),
            library.grad(loss, (0, 1, 2, 3))(*xs),
            library.grad(captured)(friction),
            library.vmap(lambda w: solve(lambda y, t: -w * y, 1.0, t, rtol=1e-6)[-1])(start),
            solve(lambda y, t, n: y * (1 - y) * n, start / 10, t, 2)[-1],
        )

    numbers = [
        np.float32([1.0, 0.5]),
        np.linspace(0, 3, 7, dtype="float32"),
        np.float32(0.3),
        np.float32(2.0),
    ]
    return library.jit(everything, compiler_options=QUICKLY)(*map(xnp.asarray, numbers))


def test_solutions_and_derivatives_are_those_of_jax():
    ours, theirs = solved(px, odeint), solved(jax, jax.experimental.ode.odeint)
    assert str(px.tree.structure(ours)) == str(jax.tree.structure(theirs))
    for a, b in zip(px.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * np.abs(b).max())


def test_closed_forms():
    t = jnp.linspace(0.0, 2.0, 9)
    with px.enable_x64():
        fine = jnp.linspace(0.0, 2.0, 9, dtype=jnp.float64)
        np.testing.assert_allclose(
            odeint(lambda y, t: -y, jnp.ones((), jnp.float64), fine), np.exp(-np.asarray(fine)), rtol=1e-7
        )
    np.testing.assert_allclose(odeint(lambda y, t: 2 * t, 0.0, t), np.asarray(t) ** 2, atol=1e-6)
    np.testing.assert_allclose(
        odeint(lambda y, t: 1j * y, jnp.complex64(1), t, rtol=1e-6), np.exp(1j * t), atol=2e-5
    )
    np.testing.assert_allclose(odeint(lambda y, t: -y, jnp.ones(2), t[:1]), np.ones((1, 2)))
    steps = odeint(lambda y, t: jnp.cos(50 * t), 0.0, t, hmax=0.01, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(steps, np.sin(50 * np.asarray(t)) / 50, atol=1e-4)


def test_where_there_is_no_solution_it_says_so():
    t = jnp.array([0.0, 0.5, 2.0])
    blown = odeint(lambda y, t: y * y, 1.0, t, rtol=1e-5, atol=1e-5)  # 1 / (1 - t)
    assert float(blown[1]) == pytest.approx(2.0, rel=1e-3) and np.isnan(blown[2])
    assert np.isnan(odeint(lambda y, t: y * np.nan, 1.0, t)[1:]).all()
    assert np.isnan(odeint(lambda y, t: jnp.cos(50 * t), 0.0, t, mxstep=2)[-1])


def test_mistakes_are_named():
    t = jnp.linspace(0.0, 1.0, 3)
    with pytest.raises(TypeError, match="odeint needs a function: .* got 3"):
        odeint(3, 1.0, t)
    with pytest.raises(ValueError, match=r"t must be a vector of times, got shape \(\)"):
        odeint(lambda y, t: y, 1.0, 2.0)
    with pytest.raises(TypeError, match="func must return a tree like y0"):
        odeint(lambda y, t: (y, y), 1.0, t)
    with pytest.raises(ValueError, match="arrays of the shapes of y0"):
        odeint(lambda y, t: jnp.ones(3), jnp.ones(2), t)
