"""`check_grads` accepts right derivatives, in both modes and to any order, and catches planted wrong ones."""

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.test_util import check_grads, check_jvp, check_vjp

X = np.array([0.3, -1.2, 2.0], np.float32)


@pytest.mark.parametrize(
    ("f", "args", "order"),
    [
        (jnp.sin, (1.0,), 3),
        (lambda x: jnp.sum(jnp.tanh(x) ** 2), (X,), 2),
        (lambda x, y: {"a": x * y, "b": [jnp.exp(x)]}, (X, 2 * X), 2),
        (lambda x: x * jnp.sin(x), (np.array([1 + 1j, 2 - 0.5j], np.complex64),), 2),
        (lambda x, n: x**3 * n, (X, np.arange(3)), 2),
    ],
)
def test_right_derivatives_pass(f, args, order):
    check_grads(f, args, order)


def planted(jvp):
    f = px.custom_jvp(jnp.sin)
    f.defjvp(jvp(f))
    return f


WRONG = {
    "factor": lambda f: lambda p, t: (f(*p), 2 * jnp.cos(p[0]) * t[0]),
    "sign": lambda f: lambda p, t: (f(*p), -jnp.cos(p[0]) * t[0]),
    "zero": lambda f: lambda p, t: (f(*p), jnp.zeros_like(t[0])),
    "value": lambda f: lambda p, t: (f(*p) + 1, jnp.cos(p[0]) * t[0]),
    "constant": lambda f: lambda p, t: (f(*p), t[0]),
}


@pytest.mark.parametrize("mode", ["fwd", "rev"])
@pytest.mark.parametrize("mistake", WRONG)
def test_planted_mistakes_are_caught(mistake, mode):
    with pytest.raises(AssertionError, match="check_grads"):
        check_grads(planted(WRONG[mistake]), (X,), 1, modes=[mode])


def test_a_wrong_second_derivative_is_caught_at_order_two_only():
    f = px.custom_jvp(jnp.sin)
    wrong_cos = px.custom_jvp(jnp.cos)
    wrong_cos.defjvp(lambda p, t: (wrong_cos(*p), t[0]))
    f.defjvp(lambda p, t: (f(*p), wrong_cos(p[0]) * t[0]))
    check_grads(f, (X,), 1)
    with pytest.raises(AssertionError, match="check_grads"):
        check_grads(f, (X,), 2)


def test_a_wrong_backward_rule_is_caught_in_reverse():
    f = px.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.sin(x),))
    with pytest.raises(AssertionError, match="vjp"):
        check_grads(f, (X,), 1, modes=["rev"])


def test_the_single_checks():
    check_jvp(jnp.sin, lambda p, t: px.jvp(jnp.sin, p, t), (X,))
    check_vjp(jnp.sin, lambda x: px.vjp(jnp.sin, x), (X,))
    with pytest.raises(AssertionError):
        check_jvp(jnp.sin, lambda p, t: (jnp.sin(p[0]), t[0]), (X,))
    with pytest.raises(AssertionError):
        check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda g: (g,)), (X,))


def test_unknown_modes_are_refused():
    with pytest.raises(ValueError, match="backward"):
        check_grads(jnp.sin, (1.0,), 1, modes=["backward"])
