"""Rules of a traced function run after it, when its derivative or its batched form is traced. What they change, the
function changed itself: it is not traced again for that, and it still is for what somebody else changes."""

from __future__ import annotations

import types

import jax
import numpy as np
import pytest

import purax

COUNTED: dict[str, int] = {"n": 0}
total = 0


def counters(kind: str):
    """A function that counts its calls in one of the places where functions keep such numbers, and one that reads."""
    count, place, calls = 0, types.SimpleNamespace(count=0), []

    def in_a_cell():
        nonlocal count
        count += 1

    def in_a_global():
        global total
        total += 1

    def in_a_dictionary():
        COUNTED["n"] += 1

    def in_an_attribute():
        place.count += 1

    def in_a_list():
        calls.append(1)

    global total
    total = COUNTED["n"] = 0
    return {
        "cell": (in_a_cell, lambda: count),
        "global": (in_a_global, lambda: total),
        "dictionary": (in_a_dictionary, lambda: COUNTED["n"]),
        "attribute": (in_an_attribute, lambda: place.count),
        "list": (in_a_list, lambda: len(calls)),
    }[kind]


def jvp_rule(m, note):
    f = m.custom_jvp(lambda x: x * 2.0)

    @f.defjvp
    def rule(primals, tangents):
        note()
        return f(*primals), tangents[0] * 3.0

    return f, m.grad


def backward_rule(m, note):
    f = m.custom_vjp(lambda x: x * 2.0)

    def backward(_, g):
        note()
        return (g * 3.0,)

    f.defvjp(lambda x: (f(x), None), backward)
    return f, m.grad


def forward_rule(m, note):
    f = m.custom_vjp(lambda x: x * 2.0)

    def forward(x):
        note()
        return x * 2.0, None

    f.defvjp(forward, lambda _, g: (g * 3.0,))
    return f, m.grad


def batch_rule(m, note):
    f = m.custom_batching.custom_vmap(lambda x: x * 2.0)

    @f.def_vmap
    def rule(size, batched, x):
        note()
        return x * 2.0, True

    return f, lambda f: lambda x: m.vmap(f)(x[None])


@pytest.mark.parametrize("kind", ["cell", "global", "dictionary", "attribute", "list"])
@pytest.mark.parametrize("make", [jvp_rule, backward_rule, forward_rule, batch_rule])
def test_rules_run_as_often_as_those_of_jax(make, kind):
    found = []
    for m in (purax, jax):
        note, read = counters(kind)
        f, transform = make(m, note)
        with purax.purity("off"):
            jitted = m.jit(f)
            values = [float(np.asarray(transform(jitted)(m.numpy.float32(1.0))).ravel()[0]) for _ in range(3)]
        found.append((values, read()))
    assert found[0] == found[1]


def test_what_others_change_is_noticed():
    scale, count = 2.0, 0

    @purax.custom_vjp
    def f(x):
        return x * scale

    def backward(_, g):
        nonlocal count
        count += 1
        return (g * scale,)

    f.defvjp(lambda x: (f(x), None), backward)
    with purax.purity("off"):
        jitted = purax.jit(f)
        assert [float(purax.grad(jitted)(1.0)) for _ in range(2)] == [2.0, 2.0] and count == 1
        scale = 5.0
        assert [float(purax.grad(jitted)(1.0)) for _ in range(2)] == [5.0, 5.0] and count == 2
