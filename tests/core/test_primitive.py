"""The contract of primitives: rules that are missing say so, types are inferred once, parameters are hashable."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.avals import ShapedArray
from purax.core.primitive import LinearOperand, Primitive, is_linear

HERE = re.escape(__file__)


class Bare(Primitive):
    """A primitive with `infer` and `host` and nothing else."""

    name = "bare"

    def infer(self, x):
        self.inferred = getattr(self, "inferred", 0) + 1
        return x

    def host(self, x):
        return x + 1


bare_p = Bare()


class Nothing(Primitive):
    name = "nothing"


nothing_p = Nothing()


MISSING = {
    "lower": lambda: px.jit(bare_p.bind)(1.0),
    "jvp": lambda: px.jvp(bare_p.bind, (1.0,), (1.0,)),
    "batch": lambda: px.vmap(bare_p.bind)(jnp.ones(3)),
    "infer": lambda: nothing_p.bind(1.0),
}


@pytest.mark.parametrize("rule", MISSING)
def test_a_missing_rule_names_the_primitive_the_rule_and_the_line(rule):
    with pytest.raises(
        NotImplementedError, match=rf"`(bare|nothing)`: (Bare|Nothing) has no `{rule}` rule\n  at {HERE}:\d+"
    ) as error:
        MISSING[rule]()
    assert isinstance(error.value, px.errors.MissingRuleError)


def test_a_primitive_with_infer_and_host_runs_eagerly():
    assert bare_p.bind(jnp.arange(3.0)).tolist() == [1.0, 2.0, 3.0]
    assert [eqn.primitive for eqn in px.make_jaxpr(bare_p.bind)(1.0).eqns] == [bare_p]


def test_types_are_inferred_once():
    aval = ShapedArray((17, 23), "float32")
    before = bare_p.inferred
    for _ in range(3):
        assert bare_p.infer_checked((aval,), {}) is aval
    assert bare_p.inferred == before + 1


def test_errors_of_infer_name_the_users_line_once():
    with pytest.raises(TypeError) as error:
        jnp.ones(3) + jnp.ones(4)
    assert str(error.value).count(f"at {__file__}") == 1


def test_primitives_are_pickled_by_name():
    from purax.primitives.elementwise.elementwise import add_p

    assert pickle.loads(pickle.dumps(add_p)) is add_p
    assert repr(add_p) == "add"


def test_linear_operands_know_their_type_only():
    operand = LinearOperand(ShapedArray((2, 3), "float32"))
    assert is_linear(operand) and not is_linear(np.ones(3))
    assert (operand.shape, operand.dtype, operand.ndim) == ((2, 3), np.dtype("float32"), 2)


def test_no_primitive_has_effects_or_names_axes_unless_it_says_so():
    assert bare_p.effects() == frozenset() and not bare_p.names_axis("i")
