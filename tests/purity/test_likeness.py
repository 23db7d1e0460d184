"""Closures that are made anew for each call: looked into once, and again where they close over something else."""

from __future__ import annotations

import functools
import gc
import warnings
import weakref

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.errors import ImpureFunctionWarning
from purax.purity import captures, findings, watcher
from purax.purity.likeness import likeness

log: list = []


def clean(x):
    return jnp.sin(x)


def impure(x):
    log.append(1)
    return jnp.sin(x)


FUNCTIONS = [clean, impure]
replaced = clean


def calling(function):
    return lambda x: function(x) * 2


def choosing(number):
    return lambda x: [clean, impure][number](x)


def with_default(function):
    return lambda x, f=function: f(x)


CLOSURES = {
    "a function": calling,
    "a function inside": lambda function: calling(calling(function)),
    "a transformed function": lambda function: calling(px.checkpoint(function)),
    "a compiled function": lambda function: px.jit(calling(function)),
    "a list": lambda function: (lambda functions: lambda x: functions[0](x))([function]),
    "a dict": lambda function: (lambda table: lambda x: table["f"](x))({"f": function}),
    "a partial": lambda function: calling(functools.partial(function)),
    "a number": lambda function: choosing(FUNCTIONS.index(function)),
    "a default": with_default,
    "a gradient": lambda function: px.grad(lambda x: jnp.sum(function(x))),
}


def warns(function) -> bool:
    findings.forget()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        px.vmap(function)(jnp.arange(3.0))
    return any(issubclass(each.category, ImpureFunctionWarning) for each in found)


@pytest.fixture
def examinations(monkeypatch):
    """The functions that are looked into, from nothing known."""
    seen = []
    original = captures.Captures.examine

    def examine(self, function, *rest):
        seen.append(function)
        return original(self, function, *rest)

    watcher._known.clear()
    monkeypatch.setattr(captures.Captures, "examine", examine)
    return seen


@pytest.mark.parametrize("kind", CLOSURES)
def test_what_is_known_of_one_closure_is_not_said_of_another(kind, examinations):
    make = CLOSURES[kind]
    for _ in range(2):
        assert not warns(make(clean))
        assert warns(make(impure))
    assert not warns(make(clean))


def test_a_fresh_closure_is_not_looked_into_again(examinations):
    def run(w):
        return px.vmap(px.grad(lambda x: jnp.sum(jnp.tanh(x @ w) ** 2)))(w)

    for i in range(4):
        run(jnp.eye(3) + i)
    assert len(examinations) == 1


def test_a_global_function_that_is_replaced_is_looked_into(examinations, monkeypatch):
    def run(scale):
        return lambda x: replaced(x) * scale

    assert not warns(run(jnp.ones(())))
    monkeypatch.setitem(globals(), "replaced", impure)
    assert warns(run(jnp.ones(())))


def test_arrays_that_a_closure_held_are_not_kept():
    def run():
        array = jnp.ones(100)
        px.vmap(lambda x: x * array.sum())(jnp.ones(2))
        px.vmap(px.grad(lambda x: x * array.sum()))(jnp.ones(2))
        return weakref.ref(array)

    gone = run()
    gc.collect()
    assert gone() is None


def test_what_nothing_is_known_of():
    class Model:
        def __call__(self, x):
            return x

    assert likeness(calling(Model())) is None
    assert likeness(Model()) is None
    assert likeness(calling(np.float32(2)))[0] != likeness(calling(np.float32(3)))[0]
    assert likeness(calling(jnp.ones(2)))[0] == likeness(calling(jnp.ones(3)))[0]
