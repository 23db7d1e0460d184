"""Code read from its bytes tells what `dis` tells; a class of a library by its number what its methods tell; and what a
traced function reached is let go as soon as nothing uses it.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import fractions
import gc
import importlib
import inspect
import json.decoder
import sys
import types
import typing
import weakref

import pytest

import purax as px
from purax.purity import captures, class_versions, code_facts, ownership
from purax.purity.class_versions import ClassState
from purax.purity.code_facts import CodeFacts
from purax.purity.contents import Itself


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def facts(code, read):
    found = CodeFacts.__new__(CodeFacts)
    found.globals, found.stored, found.imports = set(), set(), set()
    found.writes = found.compares = found.is_dynamic = False
    read(found, code)
    return found.globals, found.stored, found.imports, found.writes, found.compares, found.is_dynamic


@pytest.mark.parametrize("module", [argparse, ast, dataclasses, fractions, inspect, json.decoder, typing])
def test_bytes_tell_what_instructions_tell(module):
    assert code_facts._HAS_BYTES
    compared = 0
    for code in codes_in(compile(inspect.getsource(module), module.__file__, "exec")):
        if code_facts._CALLED.isdisjoint(code.co_names):
            compared += 1
            assert facts(code, CodeFacts._read_bytes) == facts(code, CodeFacts._read_instructions), code
    assert compared > 5


@pytest.mark.parametrize("has_numbers", [True, False])
def test_methods_of_a_class_are_seen_to_change(has_numbers, monkeypatch):
    monkeypatch.setattr(class_versions, "_HAS_NUMBERS", has_numbers and class_versions._HAS_NUMBERS)

    class Base:
        def method(self):
            return 1

    class Derived(Base):
        pass

    state = ClassState(Derived)
    assert state.holds()
    Derived.note = 3  # which is no method
    assert state.holds() and state.holds()
    was = Base.method
    Base.method = lambda self: 2
    assert not state.holds() and ClassState(Derived).holds()
    Base.method = was
    assert state.holds()
    Derived.__len__ = lambda self: 0
    assert not state.holds()


def test_what_was_traced_lets_go_of_what_it_reached():
    class Kept:
        rate = 2.0

    kept = [Kept()]
    reference = weakref.ref(kept[0])

    def f(x):
        target = reference()
        return x * (5.0 if target is None else target.rate)

    compiled = px.jit(f)
    gc.collect()
    gc.disable()
    try:
        assert float(compiled(1.0)) == 2.0
        kept.clear()
        assert reference() is None and float(compiled(1.0)) == 5.0
    finally:
        gc.enable()


class Answering(type):
    """Classes that answer with an error of their own where they have no such attribute."""

    def __getattr__(cls, name):
        return cls.table[name]


def test_objects_that_answer_with_other_errors_are_not_asked(monkeypatch):
    def other():
        return lambda: 0

    inner = next(c for c in other.__code__.co_consts if isinstance(c, types.CodeType))
    monkeypatch.setitem(captures.deferred, (id(other.__code__), id(inner)), (other.__code__, inner))
    state = Answering("State", (), {"table": {"rate": 1.0}})
    f = px.jit(lambda x: x * state.table["rate"])
    assert f(2.0) == 2.0
    state.table["rate"] = 3.0
    assert f(2.0) == 6.0


def test_a_large_program_that_imports_by_computed_names_is_traced_on_every_call(monkeypatch):
    for number in range(captures._MOST_MODULES + 1):
        module = types.ModuleType(f"part_{number}")
        module.rate = float(number)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    number = "3"
    f = px.jit(lambda x: x * importlib.import_module("part_" + number).rate)
    assert f(2.0) == 6.0
    sys.modules["part_3"].rate = 5.0
    assert f(2.0) == 10.0
    number = "4"
    assert f(2.0) == 8.0


def test_parts_of_extensions_are_no_modules_of_the_user():
    import jaxlib._jax as extension

    part = types.ModuleType("jaxlib._jax.part")
    assert not ownership.is_user_module(part) and not ownership.is_user_module(extension)
    assert ownership.is_user_module(types.ModuleType("made_by_the_user"))


def test_what_stands_for_an_object_is_never_taken_for_another_one_at_its_address():
    def made():
        return lambda: 1.0

    first = made()
    known, address = Itself(first), id(first)
    assert known == Itself(first)
    del first
    again = [made() for _ in range(100)]
    assert all(Itself(each) != known for each in again if id(each) == address)
    assert known != Itself(again[0])
