"""Staging: what a function does becomes a program, and tracing costs no more than the program is long."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.jaxpr import Literal, eval_jaxpr
from purax.core.jaxpr_check import check_jaxpr
from purax.interpreters.staging import StagedTracer


def names(closed):
    return [eqn.primitive.name for eqn in closed.eqns]


def test_every_operation_is_recorded_also_on_constants():
    closed = px.make_jaxpr(lambda x: jnp.ones(3) * 2 + x)(1.0)
    check_jaxpr(closed)
    assert names(closed) == ["broadcast_in_dim", "mul", "add"]


def test_numbers_are_literals_and_arrays_are_constants():
    captured = jnp.arange(3.0)
    closed = px.make_jaxpr(lambda x: x * captured + 2 * captured + np.float32(1.5))(jnp.ones(3))
    assert len(closed.consts) == 1 and closed.consts[0] is captured, "captured once, however often it is used"
    literals = [float(v.val) for eqn in closed.eqns for v in eqn.invars if isinstance(v, Literal)]
    assert sorted(literals) == [1.5, 2.0]


def test_a_program_runs_like_the_function():
    f = lambda x, y: {"sum": x + y, "rest": [jnp.sin(x), 3.0]}  # noqa: E731
    closed = px.make_jaxpr(f)(1.0, 2.0)
    assert [float(v) for v in eval_jaxpr(closed.jaxpr, closed.consts, 1.0, 2.0)] == pytest.approx(
        [np.sin(1.0), 3.0, 3.0]
    )
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        eval_jaxpr(closed.jaxpr, closed.consts, 1.0)


def test_equations_know_the_users_line():
    def f(x):
        y = jnp.sin(x)  # the line to find
        return y * 2

    first, second = px.make_jaxpr(f)(1.0).eqns
    assert first.source.file == __file__ and "the line to find" in first.source.text
    assert second.source.line == first.source.line + 1 and first.source.function == "f"


def test_derivatives_point_to_the_line_they_derive_from():
    def f(x):
        return jnp.sin(x) * 2

    for closed in (
        px.make_jaxpr(px.grad(f))(1.0),
        px.make_jaxpr(lambda x: px.jvp(px.jit(f), (x,), (x,)))(1.0),
    ):
        assert all(eqn.source.file == __file__ for eqn in closed.eqns)


def chain(n):
    def f(x):
        for _ in range(n):
            x = jnp.sin(x) * 1.5
        return x

    return f


TRANSFORMED = {
    "f": lambda f: f,
    "grad": px.grad,
    "jvp": lambda f: lambda x: px.jvp(f, (x,), (x,)),
    "vmap": lambda f: lambda x: px.vmap(f)(jnp.stack([x, x])),
    "grad of grad": lambda f: px.grad(px.grad(f)),
    "checkpoint": lambda f: px.grad(px.checkpoint(f)),
}


@pytest.mark.parametrize("transformation", TRANSFORMED.values(), ids=TRANSFORMED.keys())
def test_programs_grow_linearly_with_the_function(transformation):
    sizes = [len(px.make_jaxpr(transformation(chain(n)))(1.0).eqns) for n in (10, 20, 40)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])
    assert sizes[2] < 80 * 12


@pytest.mark.parametrize("transformation", ["f", "grad", "jvp", "vmap"])
def test_the_work_of_tracing_grows_linearly(transformation, count_calls):
    """Counts the calls that tracing makes: twice the program, twice the calls (and a little fixed cost)."""
    trace = lambda n: px.make_jaxpr(TRANSFORMED[transformation](chain(n)))(1.0)  # noqa: E731
    trace(10)
    calls = [count_calls(lambda n=n: trace(n)) for n in (50, 100, 200)]
    assert calls[2] - calls[1] == pytest.approx(2 * (calls[1] - calls[0]), rel=0.02)


@pytest.fixture
def count_calls():
    import sys

    def count(function):
        calls = 0

        def profile(frame, event, argument):
            nonlocal calls
            calls += event == "call"

        sys.setprofile(profile)
        try:
            function()
        finally:
            sys.setprofile(None)
        return calls

    return count


def test_describing_a_tracer_is_for_errors_only(monkeypatch):
    """It searches the program, so that calling it while tracing would cost the square of the length."""
    monkeypatch.setattr(StagedTracer, "describe", lambda self: pytest.fail("described while tracing"))
    px.make_jaxpr(
        px.grad(lambda x: px.lax.scan(lambda c, v: (c * v, c), x, jnp.arange(3.0))[0] + jnp.sin(x)[None][0])
    )(1.0)
    px.jit(px.vmap(lambda x: x[0] + x.at[1].set(2.0).sum()))(jnp.ones((2, 3)))


def test_results_are_checked():
    with pytest.raises(TypeError, match=r"its result\['b'\]\[1\] is 'text' of type str"):
        px.jit(lambda x: {"a": x, "b": [x, "text"]})(1.0)


def test_slices_with_traced_bounds_are_found_out_in_linear_time(count_calls):
    def many(x, i):
        for _ in range(count):
            x = x + x[i : i + 2].sum()
        return x

    def doubling(x, i):
        for _ in range(count):
            i = i + i
        return x[i : i + 2]

    for f, counts in ((many, (20, 40, 80)), (doubling, (10, 20, 40))):
        calls = []
        for count in counts:  # noqa: B007
            px.make_jaxpr(f)(jnp.ones(5), 1)
            calls.append(count_calls(lambda f=f: px.make_jaxpr(f)(jnp.ones(5), 1)))
        assert calls[2] - calls[1] <= 2.2 * (calls[1] - calls[0])
