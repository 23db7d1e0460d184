"""Linearization: the tape holds the linear part only, and programs split into a primal and a linear one."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.avals import Zero
from purax.core.jaxpr import eval_jaxpr
from purax.core.jaxpr_check import check_jaxpr
from purax.interpreters.linearize import linearize_flat, linearize_jaxpr

LINEAR_NAMES = {
    "add",
    "sub",
    "mul",
    "neg",
    "reduce_sum",
    "broadcast_in_dim",
    "reshape",
    "transpose",
    "convert_element_type",
    "select_n",
    "dot_general",
    "jit",
    "scan",
    "cond",
    "copy",
    "div",
    "checkpoint",
    "squeeze",
    "slice",
    "pad",
}


def test_the_tape_holds_linear_operations_only():
    def f(x):
        return [jnp.tanh(jnp.sin(x) @ jnp.ones((3, 2))) * jnp.exp(x.sum()) / 3]

    (out,), tape = linearize_flat(f, [jnp.arange(3.0)])
    assert {eqn.primitive.name for eqn in tape.equations} <= LINEAR_NAMES
    (tangent,) = tape([jnp.ones(3)])
    np.testing.assert_allclose(
        tangent, px.jvp(lambda x: f(x)[0], (jnp.arange(3.0),), (jnp.ones(3),))[1], rtol=1e-6
    )


def test_arguments_that_do_not_move_are_not_on_the_tape():
    out, tape = linearize_flat(lambda a, b: [a * b, jnp.sin(b)], [2.0, 3.0], [True, False])
    assert tape.invars[1] is None and type(tape.outvars[1]) is Zero
    assert [eqn.primitive.name for eqn in tape.equations] == ["mul"]


@pytest.mark.parametrize("moving", [(True, True), (True, False), (False, True)])
def test_programs_split_into_primal_and_linear(moving):
    closed = px.make_jaxpr(lambda a, b: (jnp.sin(a) * b, a + 1))(2.0, 3.0)
    primal, linear, out_moving, count = linearize_jaxpr(closed, moving)
    check_jaxpr(primal)
    check_jaxpr(linear)
    assert {eqn.primitive.name for eqn in linear.eqns} <= LINEAR_NAMES
    results = eval_jaxpr(primal.jaxpr, primal.consts, 2.0, 3.0)
    out, residuals = results[:2], results[2:]
    assert len(residuals) == count
    tangents = eval_jaxpr(linear.jaxpr, linear.consts, *residuals, *[1.0 for m in moving if m])
    np.testing.assert_allclose(float(out[0]), 3 * np.sin(2.0), rtol=1e-6)
    expected = 3 * np.cos(2.0) * moving[0] + np.sin(2.0) * moving[1]
    np.testing.assert_allclose(float(tangents[0]), expected, rtol=1e-6)
    assert out_moving == [True, moving[0]]
    assert linearize_jaxpr(closed, moving)[0] is primal, "made once"


def test_residuals_are_kept_once():
    closed = px.make_jaxpr(lambda a: jnp.exp(a) * 2 + jnp.exp(a) * 3)(jnp.ones(3))
    single = px.make_jaxpr(lambda a: (lambda e: e * 2 + e * 3)(jnp.exp(a)))(jnp.ones(3))
    assert linearize_jaxpr(single, [True])[3] == 1
    assert linearize_jaxpr(closed, [True])[3] == 2


def test_while_loops_linearize_forwards():
    f = lambda x: px.lax.while_loop(lambda c: c < 50.0, lambda c: c * x, x)  # noqa: E731
    value, pushforward = px.linearize(f, 3.0)
    assert float(value) == 81.0 and float(pushforward(1.0)) == 108.0
    value, pushforward = px.linearize(px.jit(f), 3.0)
    assert float(value) == 81.0 and float(pushforward(1.0)) == 108.0
    assert float(px.grad(lambda x: jnp.floor(f(x)) * x)(3.0)) == 81.0, (
        "reverse mode, where nothing flows back into it"
    )


def test_derivatives_of_a_jitted_function_are_remembered_with_its_program():
    f = px.jit(lambda x: jnp.sin(x) ** 2)
    f(1.0)
    px.grad(f)(1.0)
    assert f._cache_size() == 1, "the function is traced once for running and for differentiating"
    program = f.trace(1.0).jaxpr
    keys = {key[0] for key in program.derived if isinstance(key, tuple)}
    assert "linearize" in keys
    linear = next(value for key, value in program.derived.items() if key[0] == "linearize")[1]
    px.grad(f)(2.0)
    assert next(value for key, value in program.derived.items() if key[0] == "linearize")[1] is linear


@pytest.mark.parametrize("size", [3, 100_000])
def test_derivatives_keep_the_values_they_were_taken_at(size):
    """A NumPy array that is written to after a function was linearized does not change its derivative."""
    buffer = np.full(size, 2.0, np.float32)
    x = jnp.ones(size)
    pulled = px.vjp(lambda x: x * buffer + jnp.sin(x) * buffer, x)[1]
    pushed = px.linearize(lambda x: jnp.where(x > 0, x * buffer, buffer), x)[1]
    buffer[:] = 7.0
    np.testing.assert_allclose(pulled(x)[0], 2.0 + 2.0 * np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(pushed(x), 2.0)


@pytest.mark.parametrize("derivative", [px.grad, px.jacfwd, lambda f, n: px.grad(px.grad(f, n), n)])
@pytest.mark.parametrize("name", ["power", "arctan2", "hypot", "logaddexp", "maximum", "float_power"])
def test_rules_see_numbers_as_arrays(name, derivative):
    """The derivative with respect to one argument does not depend on whether the other is a number or an array."""
    for position in (0, 1):
        for x, y in ((2.0, 3.0), (0.0, 2.0), (2.0, 0.0), (1, 2.5), (2.5, 3)):
            if isinstance((x, y)[position], int):
                continue
            arrays = [jnp.float32(v) if i == position else jnp.asarray(v) for i, v in enumerate((x, y))]
            f = getattr(jnp, name)
            np.testing.assert_allclose(
                derivative(f, position)(x, y), derivative(f, position)(*arrays), rtol=1e-6
            )
