"""Transposition of linear programs: inner products are kept, zeros stay symbolic, cotangents add up."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.avals import Zero
from purax.core.jaxpr import eval_jaxpr
from purax.core.jaxpr_check import check_jaxpr
from purax.core.primitive import LinearOperand
from purax.interpreters.linearize import linearize_flat
from purax.interpreters.transpose import transpose_flat, transpose_jaxpr, transpose_tape


def test_nothing_flows_where_nothing_depends():
    _, tape = linearize_flat(lambda a, b, c: [a * 2, b * 3], [1.0, 2.0, 3.0], [True, True, True])
    first, second, third = transpose_tape(tape, [jnp.float32(1.0), Zero.like(1.0)])
    assert float(first) == 2.0 and type(second) is Zero and type(third) is Zero


def test_cotangents_of_several_uses_add_up():
    _, tape = linearize_flat(lambda a: [a * 2 + a * 3, a, a], [1.0])
    (total,) = transpose_tape(tape, [jnp.float32(1.0), jnp.float32(10.0), jnp.float32(100.0)])
    assert float(total) == 115.0


def test_programs_transpose_in_some_arguments():
    closed = px.make_jaxpr(lambda m, v, w: (m @ v, w * 2, m.sum()))(
        jnp.ones((2, 3)), jnp.ones(3), jnp.ones(2)
    )
    matrix = jnp.arange(6.0).reshape(2, 3)
    cotangents = [jnp.array([1.0, 10.0]), Zero.like(jnp.ones(2)), Zero.like(1.0)]
    operands = [matrix, LinearOperand(closed.in_avals[1]), LinearOperand(closed.in_avals[2])]
    fixed, v, w = transpose_flat(closed, operands, cotangents)
    assert fixed is None and type(w) is Zero
    np.testing.assert_allclose(v, np.asarray(matrix).T @ [1.0, 10.0])
    program, flowing = transpose_jaxpr(closed, [False, True, True], [True, False, False])
    check_jaxpr(program)
    assert flowing == [True, False]
    np.testing.assert_allclose(eval_jaxpr(program.jaxpr, program.consts, matrix, cotangents[0])[0], v)
    forced, flowing = transpose_jaxpr(closed, [False, True, True], [True, False, False], [True, True])
    assert flowing == [True, True]
    assert transpose_jaxpr(closed, [False, True, True], [True, False, False])[0] is program, "made once"


def test_the_transpose_of_the_transpose_is_the_program():
    f = lambda x: jnp.concatenate([x[::-1] * 2, jnp.cumsum(x)])  # noqa: E731
    x = jnp.arange(4.0)
    transpose = px.linear_transpose(f, x)
    again = px.linear_transpose(lambda y: transpose(y)[0], jnp.ones(8))
    np.testing.assert_allclose(again(x)[0], f(x), rtol=1e-6)


def test_missing_transposes_name_the_primitive():
    with pytest.raises(NotImplementedError, match=r"nothing transposes the primitive `sin`"):
        px.linear_transpose(jnp.sin, 1.0)(1.0)
