"""Functions that are rows of a table are ordinary functions to all who look at them."""

from __future__ import annotations

import copy
import doctest
import importlib
import inspect
import pickle
import pydoc
import typing

import pytest

import purax
from purax import lax, numpy

MODULES = [
    *(
        f"purax.lax.{name}"
        for name in (
            "arithmetic",
            "cumulative",
            "gather_scatter",
            "logic",
            "reductions",
            "special",
            "transcendental",
        )
    ),
    *(f"purax.numpy._elementwise.{name}" for name in ("arithmetic", "comparison", "extrema", "transcendental")),
]


def rows() -> list:
    """The functions of these modules whose code is that of a template elsewhere."""
    found = []
    for name in MODULES:
        module = importlib.import_module(name)
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == name and function.__name__[0] != "_":
                if function.__code__.co_filename != module.__file__:
                    found.append(pytest.param(module, function, id=f"{name}.{function.__name__}"))
    return found


@pytest.mark.parametrize(("module", "function"), rows())
def test_a_row_is_a_function(module, function):
    name = function.__name__
    code = function.__code__
    assert getattr(module, name) is function is getattr(numpy if ".numpy." in module.__name__ else lax, name)
    assert (function.__qualname__, code.co_name, code.co_qualname) == (name, name, name)
    assert inspect.getsource(function).lstrip().startswith("def function(")
    assert f"\n{name} = " in inspect.getsource(module)
    assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function
    parameters = inspect.signature(function).parameters
    hints = typing.get_type_hints(function)
    assert set(parameters) | {"return"} == set(hints)
    assert hints["return"] is purax.Array
    assert name in pydoc.render_doc(function, renderer=pydoc.plaintext)
    found = [x for x in doctest.DocTestFinder().find(module, module.__name__) if x.name.endswith(f".{name}")]
    assert len(found) == 1 and len(found[0].examples) in (2, 3)


def test_parameters_have_names():
    assert str(inspect.signature(lax.nextafter)) == "(x1: 'ArrayLike', x2: 'ArrayLike') -> 'Array'"
    assert lax.nextafter(x1=0.0, x2=1.0) > 0
    with pytest.raises(TypeError, match=r"sinh\(\) missing 1 required positional argument: 'x'"):
        lax.sinh()
    with pytest.raises(TypeError, match=r"igamma\(\) got an unexpected keyword argument 'y'"):
        lax.igamma(1.0, y=2.0)
