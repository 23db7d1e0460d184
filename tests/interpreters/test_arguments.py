"""Parameters of functions are read from their code where that says the same as `inspect.signature`."""

from __future__ import annotations

import functools
import inspect

import pytest

from purax.interpreters.arguments import keyword_only_names, numbers_and_names, parameter_names


def wrapped(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


def told(x, y):
    return x + y


told.__signature__ = inspect.Signature([inspect.Parameter("z", inspect.Parameter.POSITIONAL_ONLY)])


class Model:
    def step(self, x, *, rate=1):
        return x

    def __call__(self, x, y=0):
        return x


FUNCTIONS = [
    lambda: 0,
    lambda x, y=1: x,
    lambda x, /, y, *, z=1: x,
    lambda *args, a, b=2, **kwargs: a,
    functools.partial(lambda x, y, *, z: x, 1, z=2),
    wrapped(lambda x, *, flag: x),
    told,
    Model().step,
    Model.step,
    Model(),
    Model,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_names_are_those_of_the_signature(function):
    parameters = inspect.signature(function).parameters.values()
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert parameter_names(function) == tuple(p.name for p in parameters if p.kind in by_place)
    assert keyword_only_names(function) == tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def test_numbers_and_names_complete_each_other():
    function = FUNCTIONS[2]
    assert numbers_and_names(function, None, None, "static") == (frozenset(), frozenset())
    assert numbers_and_names(function, (-1,), None, "static") == (frozenset({1}), frozenset({"y"}))
    assert numbers_and_names(function, None, ("y", "z"), "static") == (frozenset({1}), frozenset({"y", "z"}))
    with pytest.raises(ValueError, match="static_argnames names 'w'.*x, y, z"):
        numbers_and_names(function, None, "w", "static")
