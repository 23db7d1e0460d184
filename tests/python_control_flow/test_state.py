"""State that changes under traced conditions is what plain Python makes of it, under every transformation."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import errors
from tests.python_control_flow.methods_table import CASES as METHODS
from tests.python_control_flow.methods_table import DIFFERENTIATED
from tests.python_control_flow.names_table import CASES as NAMES
from tests.python_control_flow.state_table import CASES
from tests.python_control_flow.views_table import CASES as VIEWS

INPUTS = (2.5, -1.0, 0.5)


@pytest.mark.parametrize("function", CASES + VIEWS + METHODS + NAMES, ids=lambda function: function.__name__)
def test_compiled_functions_equal_plain_python(function):
    wanted = [np.asarray(function(x)) for x in INPUTS]
    compiled = px.jit(function)
    for x, y in zip(INPUTS, wanted, strict=True):
        np.testing.assert_allclose(compiled(x), y, rtol=1e-6)
    np.testing.assert_allclose(px.vmap(compiled)(jnp.asarray(INPUTS)), np.stack(wanted), rtol=1e-6)


@pytest.mark.parametrize("function", METHODS, ids=lambda function: function.__name__)
def test_a_batch_equals_plain_python(function):
    wanted = np.stack([np.asarray(function(x)) for x in INPUTS])
    np.testing.assert_allclose(px.vmap(function)(jnp.asarray(INPUTS)), wanted, rtol=1e-6)


@pytest.mark.parametrize("function", DIFFERENTIATED, ids=lambda function: function.__name__)
def test_derivatives_equal_differences(function):
    step = 1e-4
    for x in (2.3, -1.2, 0.6):
        wanted = (function(x + step) - function(x - step)) / (2 * step)
        for derivative in (
            px.grad(function),
            px.jit(px.grad(function)),
            px.grad(px.jit(function)),
            px.jacfwd(function),
        ):
            np.testing.assert_allclose(derivative(x), wanted, rtol=2e-3)


def test_a_function_that_calls_itself_too_often_is_told_when_it_runs():
    def depth(v):
        return 0.0 if v <= 0 else 1.0 + depth(v - 1)

    compiled = px.jit(lambda x: depth(x))
    assert [float(compiled(x)) for x in (0.5, 11.0)] == [1.0, 11.0]
    with pytest.raises(errors.CheckFailedError, match="how often a function calls itself"):
        compiled(40.0).block_until_ready()


def test_effects_of_a_function_that_is_traced_again_happen_once():
    numbers = iter([1.0, 10.0, 100.0])
    names = []

    def register(function):
        names.append(function.__name__)
        return function

    def first(x):
        y = next(numbers)
        if x > 0:
            return x + y
        return y

    def decorated(x):
        @register
        def inner(v):
            if v > 0:
                return v
            return -v

        return inner(x)

    with px.purity("off"):
        assert float(px.jit(first)(1.0)) == 2.0
        assert next(numbers) == 10.0
        assert float(px.jit(decorated)(-3.0)) == 3.0
    assert names == ["inner"]


def test_generators_from_outside_are_consumed_once(capsys):
    def count():
        yield 1.0
        yield 20.0

    numbers = count()

    def f(x):
        y = next(numbers)
        print("traced")
        if x > 0:
            return x + y
        return y

    with px.purity("off"):
        assert float(px.jit(f)(1.0)) == 2.0
    assert capsys.readouterr().out == "traced\n"


def test_functions_without_source_go_both_ways():
    function = eval("lambda x: 1.0 if x > 0 else 2.0")
    assert [float(px.jit(function)(x)) for x in (1.0, -1.0)] == [1.0, 2.0]


def test_deliberate_handlers_of_tracer_errors_are_respected():
    def f(x):
        try:
            return float(x)
        except px.errors.ConcretizationTypeError:
            return x * 2

    assert float(px.jit(f)(3.0)) == 6.0


def test_values_that_are_caught_away_are_errors():
    def f(x):
        try:
            return float(f"{x:.1f}") + 0 * x
        except Exception:
            return x * 2

    with pytest.raises(px.errors.ConcretizationTypeError, match="format"):
        px.jit(f)(3.0)


def test_conversions_that_would_be_caught_away_are_recorded():
    def f(x):
        try:
            return float(x) + 1
        except Exception:
            return x * 2

    assert float(px.jit(f)(3.0)) == 4.0


def test_state_that_depends_on_too_many_conditions_is_an_error():
    def f(x):
        out = []
        for i in range(12):
            if x > i:
                out.append(i)  # grows
        return sum(out)

    with pytest.raises(UnboundLocalError, match=r"`out` is .* longest|`out` is") as caught:
        px.jit(f)(3.0)
    assert "test_state.py" in str(caught.value)
