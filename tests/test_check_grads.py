"""`check_grads` passes right derivatives and catches planted wrong ones, in both modes, to any order."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.test_util import check_grads

RIGHT = {
    "number": (lambda x: jnp.sin(x) * x, (0.7,)),
    "arrays": (
        lambda x, y: jnp.tanh(x @ y),
        (np.ones((2, 3), np.float32) * 0.3, np.ones(3, np.float32) * 0.4),
    ),
    "trees": (
        lambda p: {"a": p["u"] * p["v"], "b": [jnp.exp(p["u"])]},
        ({"u": np.float32(0.5), "v": np.float32(-1.0)},),
    ),
    "integers beside": (lambda x, n: (x * n, n), (0.5, 3)),
    "complex": (lambda z: z * jnp.conj(z) + jnp.exp(z), (np.complex64(0.4 + 0.3j),)),
    "complex to real": (lambda z: jnp.abs(z) ** 2, (np.complex64(0.4 + 0.3j),)),
    "control flow": (lambda x: px.lax.scan(lambda c, v: (jnp.sin(c) * v, c), x, jnp.ones(3))[0], (0.5,)),
    "float64": (lambda x: x**3, (jnp.asarray(0.7, jnp.float64),)),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
def test_right_derivatives_pass(name, modes):
    f, args = RIGHT[name]
    check_grads(f, args, order=2, modes=modes)


def planted(derivative):
    """sin with a rule of its own."""
    f = px.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda primals, tangents: (f(*primals), derivative(*primals) * tangents[0]))
    return f


def planted_in_reverse(derivative):
    f = px.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (derivative(x) * g,))
    return f


WRONG = {
    "sign": lambda x: -jnp.cos(x),
    "factor": lambda x: 1.05 * jnp.cos(x),
    "zero": lambda x: 0.0 * x,
    "other function": lambda x: jnp.sin(x),
    "nan": lambda x: jnp.nan * x,
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
def test_wrong_rules_are_caught(name, modes):
    with pytest.raises(AssertionError, match="check_grads: .* differ in leaf 0"):
        check_grads(planted(WRONG[name]), (0.7,), order=1, modes=modes)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_backward_rules_are_caught(name):
    check_grads(planted_in_reverse(jnp.cos), (0.7,), order=1, modes=("rev",))
    with pytest.raises(AssertionError, match="vjp"):
        check_grads(planted_in_reverse(WRONG[name]), (0.7,), order=1, modes=("rev",))


def test_a_rule_that_is_wrong_in_second_order_only():
    right_value = planted(
        lambda x: px.lax.stop_gradient(jnp.cos(x)) if hasattr(px.lax, "stop_gradient") else frozen_cos(x)
    )
    check_grads(right_value, (0.7,), order=1)
    with pytest.raises(AssertionError, match=r"(jvp|vjp)\((jvp|vjp)\(f\)\)"):
        check_grads(right_value, (0.7,), order=2)


@px.custom_jvp
def frozen_cos(x):
    return jnp.cos(x)


frozen_cos.defjvp(lambda primals, tangents: (frozen_cos(*primals), 0 * tangents[0]))


def test_a_wrong_primal_result_of_a_rule_is_caught():
    f = px.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda primals, tangents: (jnp.cos(*primals), jnp.cos(*primals) * tangents[0]))
    with pytest.raises(AssertionError, match="the value of jvp"):
        check_grads(f, (0.7,), order=1, modes=("fwd",))


def test_a_wrong_derivative_of_one_element_or_argument_is_caught():
    f = px.custom_jvp(lambda x, y: x * y)
    f.defjvp(lambda p, t: (f(*p), t[0] * p[1] + p[0] * t[1] * jnp.array([1.0, 1.0, 0.9])))
    with pytest.raises(AssertionError, match="differ"):
        check_grads(f, (np.ones(3, np.float32), np.ones(3, np.float32)), order=1)


def test_tolerances_and_steps_can_be_given():
    nearly = planted(lambda x: 1.001 * jnp.cos(x))
    check_grads(nearly, (0.7,), order=1, atol=1e-2, rtol=1e-2)
    with pytest.raises(AssertionError):
        check_grads(nearly, (jnp.asarray(0.7, jnp.float64),), order=1)
    check_grads(lambda x: x**2, (0.7,), order=1, eps=1e-3)


def test_functions_that_jump_are_caught_by_the_differences():
    with pytest.raises(AssertionError, match="finite differences"):
        check_grads(lambda x: jnp.where(x > 0.7, 1.0, 0.0) + x, (0.7,), order=1, modes=("fwd",))


def test_functions_that_bend_strongly_pass_and_their_wrong_rules_do_not():
    def bent(x):
        return jnp.exp(6 * jnp.sin(5 * x))

    wrong = px.custom_jvp(bent)
    wrong.defjvps(lambda t, y, x: t * y * 30 * jnp.cos(5 * x) * 1.02)
    for x in (0.3, 2.0, 2.7):
        check_grads(bent, (x,), 1)
        with pytest.raises(AssertionError, match="finite differences"):
            check_grads(wrong, (x,), 1)


def test_unknown_modes():
    with pytest.raises(ValueError, match="modes are 'fwd' and 'rev'"):
        check_grads(jnp.sin, (1.0,), order=1, modes=("forward",))
