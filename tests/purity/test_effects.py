"""Every impure program of the table is found, with its kind and its place; no pure program raises an alarm."""

from __future__ import annotations

import contextlib
import io
import warnings

import numpy as np
import pytest

import purax as px
from purax.purity import findings
from tests.purity import corner_programs, impure_idioms, impure_programs, pure_idioms, pure_programs

IMPURE = [*impure_programs.PROGRAMS, *impure_idioms.PROGRAMS, *corner_programs.IMPURE]
PURE = [*pure_programs.PROGRAMS, *pure_idioms.PROGRAMS, *corner_programs.PURE]
FILES = (impure_programs.__file__, impure_idioms.__file__, corner_programs.__file__)


def name_of(number, function):
    return f"{number}-{getattr(function, '__name__', type(function).__name__)}"


NAMES = [name_of(i, function) for i, (_, function, _) in enumerate(IMPURE)]


@pytest.mark.parametrize(("kind", "function", "args"), IMPURE, ids=NAMES)
def test_impure_programs_are_found(kind, function, args):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        report = px.check_pure(function)(*args)
    assert kind in {found.kind for found in report.findings}, report
    findings.forget()
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with warnings.catch_warnings(record=True) as caught, quiet[0], quiet[1]:
        warnings.simplefilter("always")
        px.jit(lambda *xs: function(*xs))(*args)
    told = [w for w in caught if issubclass(w.category, px.errors.ImpureFunctionWarning)]
    assert told, "missed"
    assert any(w.filename in FILES for w in told)


def test_there_are_enough_impure_programs():
    assert len(IMPURE) >= 250


PURE_NAMES = [name_of(i, function) for i, (function, _) in enumerate(PURE)]


@pytest.mark.parametrize(("function", "args"), PURE, ids=PURE_NAMES)
def test_pure_programs_raise_no_alarm(function, args):
    report = px.check_pure(function)(*args)
    assert report.is_pure, report
    compiled = px.jit(lambda *xs: function(*xs))
    with px.purity("strict"):
        compiled(*args)
        again = compiled(*args)
    expected = function(*args)
    assert px.tree.structure(again) == px.tree.structure(expected)
    for a, b in zip(px.tree.leaves(again), px.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_there_are_enough_pure_programs():
    assert len(PURE) >= 250
