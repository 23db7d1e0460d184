"""Structural identity: equal programs have equal fingerprints, and whatever changes the result changes it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.jaxpr_hash import fingerprint


def of(f, *args):
    return fingerprint(px.make_jaxpr(f)(*args))


x = np.ones(3, np.float32)
ones, zeros = jnp.ones(3), jnp.zeros(3)

SAME = {
    "names and lines": (lambda a: jnp.sin(a) * 2, lambda other: jnp.sin(other) * 2),
    "names of inner functions": (px.jit(lambda a: a + 1), px.jit(lambda b: b + 1)),
    "scopes": (lambda a: a + 1, px.named_call(lambda a: a + 1, name="scope")),
    "captured values": (lambda a: a + ones, lambda a: a + zeros),
    "custom rules": (
        lambda a: with_rule(2.0)(a),
        lambda a: with_rule(3.0)(a),
    ),
    "loop bodies": (
        lambda a: px.lax.scan(lambda c, v: (c + v, c), 0.0, a),
        lambda a: px.lax.scan(lambda k, w: (k + w, k), 0.0, a),
    ),
}


def with_rule(scale):
    f = px.custom_jvp(lambda a: jnp.sin(a))
    f.defjvp(lambda primals, tangents: (f(*primals), scale * tangents[0]))
    return f


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_count(name):
    first, second = SAME[name]
    assert of(first, x) == of(second, x)


DIFFERENT = {
    "sin": lambda a: jnp.sin(a),
    "cos": lambda a: jnp.cos(a),
    "sin twice": lambda a: jnp.sin(jnp.sin(a)),
    "sin, kept": lambda a: (jnp.sin(a), a),
    "order of results": lambda a: (a, jnp.sin(a)),
    "literal 1": lambda a: a * 1.0,
    "literal 2": lambda a: a * 2.0,
    "literal 0.0": lambda a: a * 0.0,
    "literal -0.0": lambda a: a * -0.0,
    "literal nan": lambda a: a * float("nan"),
    "order of operands": lambda a: 2.0 / a,
    "other order": lambda a: a / 2.0,
    "parameter": lambda a: a.reshape(1, 3),
    "other parameter": lambda a: a.reshape(3, 1),
    "integer_pow": lambda a: a**3,
    "other power": lambda a: a**4,
    "dtype parameter": lambda a: a.astype("float16"),
    "other dtype": lambda a: a.astype("bfloat16"),
    "scan": lambda a: px.lax.scan(lambda c, v: (c + v, c), 0.0, a),
    "scan backwards": lambda a: px.lax.scan(lambda c, v: (c + v, c), 0.0, a, reverse=True),
    "other body": lambda a: px.lax.scan(lambda c, v: (c - v, c), 0.0, a),
    "branches": lambda a: px.lax.cond(a[0] > 0, jnp.sin, jnp.cos, a),
    "branches, swapped": lambda a: px.lax.cond(a[0] > 0, jnp.cos, jnp.sin, a),
    "same variable twice": lambda a: jnp.sin(a) * jnp.sin(a),
    "same variable": lambda a: (lambda s: s * s)(jnp.sin(a)),
}


def test_whatever_changes_the_program_changes_the_fingerprint():
    found = {name: of(f, x) for name, f in DIFFERENT.items()}
    for first, second in itertools.combinations(found, 2):
        assert found[first] != found[second], (first, second)


def test_types_count():
    f = lambda a: a + a  # noqa: E731
    arguments = [x, x[:2], x.reshape(1, 3), x.astype(np.float16), 1.0, np.float32(1)]
    assert len({of(f, a) for a in arguments}) == len(arguments)


def test_numbers_of_another_type_are_other_parameters():
    """1, True and 1.0 are equal and hash alike, but mean different programs."""
    from purax.core.jaxpr_hash import parameter_text

    values = [
        1,
        True,
        1.0,
        0.0,
        -0.0,
        (1,),
        (True,),
        "1",
        None,
        np.array(1),
        np.array(1.0),
        ((1,), 1),
        (1, (1,)),
    ]
    assert len({parameter_text(v) for v in values}) == len(values)
    assert parameter_text(np.arange(3)) == parameter_text(np.arange(3))
    assert parameter_text(np.dtype("float32")) == parameter_text(np.dtype(np.float32))
