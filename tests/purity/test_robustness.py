"""The analysis never breaks a program: whatever fails in it, functions are traced as they would be without it."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import types
import warnings

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.purity import (
    ambient,
    captures,
    changes,
    class_versions,
    code_facts,
    contents,
    findings,
    guard,
    guard_code,
    guards,
    impure_names,
    library_reads,
    likeness,
    line_events,
    ownership,
    side_effects,
    source_sites,
    unknown,
    verdicts,
    watcher,
)

MODULES = (
    ambient,
    captures,
    changes,
    class_versions,
    code_facts,
    contents,
    side_effects,
    guard,
    guard_code,
    guards,
    impure_names,
    likeness,
)
MODULES += (class_versions, library_reads, line_events, ownership, source_sites, verdicts)
rate = 2.0
table = {"a": [1.0], "b": np.ones(2)}
log: list = []


class Model:
    scale = 3.0

    def __init__(self):
        self.weight = jnp.ones(2)

    def __call__(self, x):
        return (x * self.weight * self.scale).sum()


model = Model()


def reads(x):
    copied = copy.deepcopy(table)
    return x * rate + sum(copied["a"]) + model(x) + getattr(model, "late", 1.0) + table["b"].sum()


def writes(x):
    log.append(1)
    table["a"][0] = table["a"][0] * 1.0
    return x + len("ab")


def programs():
    """A few programs of all kinds; what they give."""
    inner = px.jit(reads)
    results = [inner(1.0), inner(1.0), inner(1.0), px.jit(lambda x: inner(x) + writes(x))(2.0)]
    results += [px.vmap(reads)(jnp.arange(2.0)), px.jit(px.grad(reads))(1.5), px.jit(model)(2.0)]
    return [np.asarray(x) for x in px.tree.leaves(results)]


PROPERTIES = (property, functools.cached_property)
ENTRIES = {"_compare", "_safe"}  # they catch what the others raise


def functions():
    for module in MODULES:
        for name, value in vars(module).items():
            if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
                if name not in ENTRIES:
                    yield module, name
            elif inspect.isclass(value) and value.__module__ == module.__name__:
                for inner, method in vars(value).items():
                    if isinstance(method, types.FunctionType) and inner not in ENTRIES:
                        yield value, inner


FUNCTIONS = [pytest.param(owner, name, id=f"{owner.__name__}.{name}") for owner, name in functions()]


@pytest.fixture(scope="module")
def expected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return programs()


@pytest.mark.parametrize(("owner", "name"), FUNCTIONS)
def test_an_error_of_the_analysis_reaches_nobody(owner, name, expected, monkeypatch):
    def fail(*args, **kwargs):
        raise AttributeError("planted: 'NoneType' object has no attribute '__mro__'")

    original = vars(owner)[name]
    for module in (*MODULES, watcher):
        for known, value in list(vars(module).items()):
            if value is original:
                monkeypatch.setattr(module, known, fail)
    monkeypatch.setattr(owner, name, property(fail) if isinstance(original, PROPERTIES) else fail)
    for cache in (contents._by_type, code_facts._known, library_reads._known, source_sites._sites, watcher._known):
        cache.clear()
    class_versions._known.clear()
    findings.forget()
    px.clear_caches()
    outer = sys.gettrace()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = programs()
    sys.settrace(outer)  # a watch whose end fails goes on, and would slow down the tests that follow
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def failing(*args, **kwargs):
    raise RuntimeError("planted")


@pytest.mark.parametrize(
    ("owner", "name"),
    [(watcher, "walk"), (watcher, "make_guards"), (guards, "_make_all"), (captures.Captures, "examine")],
)
def test_a_function_without_guards_is_told_of_once(owner, name, monkeypatch, caplog):
    """Where nothing is compared at all, values stay what they were, as in JAX, and a warning says so."""
    unknown._told.clear()
    monkeypatch.setattr(owner, name, failing)
    px.clear_caches()
    space = {"rate": 2.0}
    functions = [eval("lambda x: x * rate", space) for _ in range(3)]
    with caplog.at_level("WARNING", logger="purax"):
        compiled = [px.jit(function) for function in functions]
        assert [float(function(1.0)) for function in compiled] == [2.0, 2.0, 2.0]
        assert [float(function(1.0)) for function in compiled] == [2.0, 2.0, 2.0]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1 and "later changes of it are not seen" in told[0] and "planted" in told[0]
    unknown._told.clear()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (captures.Captures, "_visit"),
        (captures, "reader_of"),
        (guards, "_settled_guard"),
        (guards, "_guard_of"),
    ],
)
def test_a_part_that_fails_is_logged_at_debug_level(owner, name, monkeypatch, caplog):
    unknown._told.clear()
    monkeypatch.setattr(owner, name, failing)
    px.clear_caches()
    with caplog.at_level("DEBUG", logger="purax"):
        for function in (lambda x: x * rate + sum(table["a"]), lambda x: x + len(table)):
            compiled = px.jit(function)
            assert float(compiled(1.0)) == float(compiled(1.0)) == function(1.0)
    told = [record for record in caplog.records if "failed" in record.getMessage()]
    assert len(told) <= 1 and all(record.levelname == "DEBUG" for record in told)
    unknown._told.clear()


def test_an_object_that_fails_to_be_followed_is_compared_all_the_same(monkeypatch):
    """What its attributes hold is seen to change, although nothing else is known of it."""

    class Odd:
        def __init__(self):
            self.rate = 2.0

    odd = Odd()
    visit = captures.Captures._visit

    def refusing(self, value, *rest):
        if value is odd:
            raise RuntimeError("planted")
        return visit(self, value, *rest)

    monkeypatch.setattr(captures.Captures, "_visit", refusing)
    compiled = px.jit(lambda x: x * odd.rate)
    assert [float(compiled(1.0)), float(compiled(1.0))] == [2.0, 2.0]
    odd.rate = 5.0
    assert float(compiled(1.0)) == 5.0
