"""The executable specification of jaxprs catches every way to break it."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from purax.core.jaxpr_check import JaxprTypeError, check_jaxpr
from purax.primitives.elementwise.elementwise import add_p, mul_p

VECTOR, SCALAR = ShapedArray((3,), "float32"), ShapedArray((), "float32")


def program(mutate=None):
    """x, y -> x · y + x, after `mutate` has had its way with the parts."""
    x, y, product, total = (Var(VECTOR) for _ in range(4))
    parts = {
        "constvars": [],
        "invars": [x, y],
        "outvars": [total],
        "eqns": [JaxprEqn([x, y], [product], mul_p, {}), JaxprEqn([product, x], [total], add_p, {})],
    }
    if mutate is not None:
        mutate(parts)
    return Jaxpr(**parts)


def test_a_well_formed_program_passes():
    check_jaxpr(program())
    check_jaxpr(
        px.make_jaxpr(px.grad(lambda x: px.lax.scan(lambda c, v: (jnp.sin(c) * v, c), x, jnp.ones(3))[0]))(
            1.0
        )
    )


def swap_equations(parts):
    parts["eqns"].reverse()


def forget_an_argument(parts):
    parts["invars"].pop()


def assign_twice(parts):
    parts["eqns"].append(JaxprEqn(parts["invars"], [parts["outvars"][0]], mul_p, {}))


def argument_twice(parts):
    parts["invars"].append(parts["invars"][0])


def undefined_result(parts):
    parts["outvars"].append(Var(VECTOR))


def use_a_dropped_result(parts):
    dropped = DropVar(VECTOR)
    parts["eqns"][0] = JaxprEqn(parts["invars"], [dropped], mul_p, {})
    parts["eqns"][1] = JaxprEqn([dropped, parts["invars"][0]], parts["outvars"], add_p, {})


def wrong_result_type(parts):
    parts["eqns"][1] = JaxprEqn(parts["invars"], [Var(SCALAR)], add_p, {})
    parts["outvars"] = parts["eqns"][1].outvars


def too_many_results(parts):
    parts["eqns"][0] = JaxprEqn(parts["invars"], [*parts["eqns"][0].outvars, Var(VECTOR)], mul_p, {})


def literal_that_is_no_scalar(parts):
    parts["eqns"][1].invars[1] = Literal(np.ones(3, np.float32), VECTOR)


def equation_that_assigns_a_literal(parts):
    parts["eqns"].append(JaxprEqn(parts["invars"], [Literal(1.0, VECTOR)], mul_p, {}))


BROKEN = {
    swap_equations: "used before it is defined",
    forget_an_argument: "used before it is defined",
    assign_twice: "assigned twice",
    argument_twice: "an argument: .* assigned twice",
    undefined_result: "the results: .* used before",
    use_a_dropped_result: "used before it is defined",
    wrong_result_type: r"should have type ShapedArray\(float32\[3\]\)",
    too_many_results: "has 2 results, `infer` says 1",
    literal_that_is_no_scalar: "not a scalar",
    equation_that_assigns_a_literal: "not a variable",
}


@pytest.mark.parametrize("mutate", BROKEN, ids=lambda f: f.__name__)
def test_a_broken_program_is_caught(mutate):
    with pytest.raises(JaxprTypeError, match=BROKEN[mutate]):
        check_jaxpr(program(mutate))


def test_operands_that_do_not_fit_are_caught_by_infer():
    with pytest.raises(TypeError, match="incompatible shapes"):
        x, y = Var(VECTOR), Var(ShapedArray((4,), "float32"))
        check_jaxpr(Jaxpr([], [x, y], [], [JaxprEqn([x, y], [Var(VECTOR)], add_p, {})]))


def test_constants_must_have_the_type_of_their_variable():
    constant = Var(VECTOR)
    with pytest.raises(JaxprTypeError, match="constant .* is bound to a value of type"):
        check_jaxpr(ClosedJaxpr(Jaxpr([constant], [], [constant], []), [jnp.ones(4)]))


def test_inner_programs_obey_the_same_laws():
    closed = px.make_jaxpr(px.jit(lambda x: x * 2))(1.0)
    inner = closed.eqns[0].params["jaxpr"]
    closed.eqns[0].params["jaxpr"] = ClosedJaxpr(inner.jaxpr.replace(eqns=[]))
    with pytest.raises(JaxprTypeError, match="the results"):
        check_jaxpr(closed)


def test_every_program_of_a_test_run_is_checked():
    assert px.config.check_jaxprs
