"""Exceptions under JAX's names, related as JAX's are."""

from __future__ import annotations

import pytest

import purax as px
from purax import errors

PARENTS = {
    "ConcretizationTypeError": TypeError,
    "TracerArrayConversionError": TypeError,
    "TracerBoolConversionError": errors.ConcretizationTypeError,
    "TracerIntegerConversionError": TypeError,
    "NonConcreteBooleanIndexError": IndexError,
    "UnexpectedTracerError": TypeError,
    "KeyReuseError": RuntimeError,
    "JaxRuntimeError": RuntimeError,
    "MissingRuleError": NotImplementedError,
}


@pytest.mark.parametrize("name", PARENTS)
def test_parents(name):
    assert issubclass(getattr(errors, name), PARENTS[name])


def test_every_exception_is_documented_and_public():
    for name in errors.__all__:
        assert getattr(errors, name).__doc__ and getattr(px.errors, name) is getattr(errors, name)


def test_names_of_jax_are_there():
    jax = pytest.importorskip("jax")
    theirs = {
        name for name in dir(jax.errors) if isinstance(getattr(jax.errors, name), type) and name[0].isupper()
    }
    missing = theirs - set(errors.__all__)
    assert missing <= {"InconclusiveDimensionOperation"}, missing  # of symbolic shapes, which purax has not
