"""Every impure program of the table is found, with its kind and its place; no pure program raises an alarm."""

from __future__ import annotations

import contextlib
import io
import warnings

import numpy as np
import pytest

import purax as px
from purax.purity import findings
from tests.purity import impure_programs, pure_programs

NAMES = [
    f"{i}-{getattr(f, '__name__', type(f).__name__)}" for i, (_, f, _) in enumerate(impure_programs.PROGRAMS)
]


@pytest.mark.parametrize(("kind", "function", "args"), impure_programs.PROGRAMS, ids=NAMES)
def test_impure_programs_are_found(kind, function, args):
    with contextlib.redirect_stdout(io.StringIO()):
        report = px.check_pure(function)(*args)
    assert kind in {found.kind for found in report.findings}, report
    findings.forget()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        px.jit(lambda *xs: function(*xs))(*args)
    told = [w for w in caught if issubclass(w.category, px.errors.ImpureFunctionWarning)]
    assert told, "missed"
    assert any(w.filename == impure_programs.__file__ for w in told)


def test_there_are_enough_impure_programs():
    assert len(impure_programs.PROGRAMS) >= 60


PURE_NAMES = [
    f"{i}-{getattr(f, '__name__', type(f).__name__)}" for i, (f, _) in enumerate(pure_programs.PROGRAMS)
]


@pytest.mark.parametrize(("function", "args"), pure_programs.PROGRAMS, ids=PURE_NAMES)
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
    assert len(pure_programs.PROGRAMS) >= 150
