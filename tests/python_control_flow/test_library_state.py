"""Objects of libraries that change under traced conditions are what plain Python makes of them, or an error says so."""

from __future__ import annotations

import abc
import decimal
import itertools
import math
import os
import string
import sys
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import purax as px
from tests.fuzz.library_idioms import HEADER, LIBRARY_IDIOMS
from tests.fuzz.python_functions import defined


@pytest.mark.parametrize("number", range(len(LIBRARY_IDIOMS)))
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of NumPy: the shape and the dtype of an array are set
def test_an_object_is_changed_on_one_side_only(number):
    setup, steps, total = LIBRARY_IDIOMS[number]
    for step in steps:
        lines = [*"\n".join(setup).split("\n"), "if x > 0:", f"    {step}", f"return {total} + x"]
        text = HEADER + "\ndef f(x):\n" + "\n".join(f"    {line}" for line in lines) + "\n"
        function = defined(text.replace("@", "").replace("#", "3.0"), f"<library idiom {number} {step}>")
        compiled = px.jit(function)
        for x in (1.0, -1.0):
            np.testing.assert_allclose(compiled(x), function(x), rtol=1e-6, err_msg=text)


class Precision:
    """Settings that are changed and put back by the function itself."""

    @staticmethod
    def of_decimal(x):
        with decimal.localcontext() as context:
            context.prec = 5
            if x > 0:
                context.prec = 2
            return float(decimal.Decimal(1) / decimal.Decimal(3))

    @staticmethod
    def of_numpy(x):
        old = np.get_printoptions()
        if x > 0:
            np.set_printoptions(precision=3)
        result = np.get_printoptions()["precision"]
        np.set_printoptions(**old)
        return float(result)

    @staticmethod
    def of_errors(x):
        old = np.seterr(divide="ignore")
        if x > 0:
            np.seterr(divide="raise")
        result = np.geterr()["divide"]
        np.seterr(**old)
        return float(len(result))

    @staticmethod
    def of_recursion(x):
        old = sys.getrecursionlimit()
        if x > 0:
            sys.setrecursionlimit(old + 7)
        result = sys.getrecursionlimit() - old
        sys.setrecursionlimit(old)
        return float(result)

    @staticmethod
    def of_warnings(x):
        with warnings.catch_warnings():
            count = len(warnings.filters)
            if x > 0:
                warnings.simplefilter("error", category=BytesWarning)
            return float(len(warnings.filters) - count)

    @staticmethod
    def of_modules(x):
        string.purax_mark = 1.0
        if x > 0:
            string.purax_mark = 2.0
        result = string.purax_mark
        del string.purax_mark
        return result


@pytest.mark.parametrize("name", [name for name in vars(Precision) if name.startswith("of_")])
def test_a_setting_is_changed_on_one_side_only(name):
    function = getattr(Precision, name)
    compiled = px.jit(function)
    for x in (1.0, -1.0):
        assert compiled(x) == function(x)


def test_a_setting_that_stays_changed_on_one_side_is_an_error():
    def leaves_it(x):
        if x > 0:
            os.environ["PURAX_TEST_MARK"] = "2"
        return x

    with pytest.raises(UnboundLocalError, match="`the environment` is changed in one way if the condition"):
        px.jit(leaves_it)(1.0)
    assert "PURAX_TEST_MARK" not in os.environ

    Shape = abc.ABCMeta("Shape", (), {})

    def registers(x):
        if x > 0:
            Shape.register(int)
        return x

    with pytest.raises(TypeError, match="the classes that are registered"):
        px.jit(registers)(1.0)


def circle(x):
    if x > 0:
        y = math.sqrt(x) + math.sin(x) + math.log(x + 2, 2)
    else:
        y = math.exp(x) * math.cos(x)
    return y + math.floor(x) * 10 + math.ceil(x) * 100 + math.atan2(x, 2.0) + math.pow(abs(x) + 1, 2.5)


def caught(x):
    try:
        return math.sqrt(x) + math.acos(x / 2)
    except ValueError:
        return -1.0


def floored(x):
    total = 0
    for i in range(math.floor(abs(x)) + 1):
        total += i
    return [5.0, 6.0, 7.0, 8.0][min(3, math.floor(abs(x)))] + total


def rotated(x):
    z = complex(x, 0.5) if x > 0 else complex(1.0, imag=x)
    return abs(z * z)


def put(x):
    a, b = np.array([x, 2.0, -3.0]), np.zeros(3)
    np.clip(a, -1, 1, out=a)
    if x > 0:
        np.put(b, [0, 2], [x, 2.0])
        np.cumsum(b, out=a)
    return a.sum() + b[2]


class Pair(NamedTuple):
    first: float
    second: float


def made(x):
    pair = tuple.__new__(Pair, [x, 2.0])
    if x > 0:
        pair = Pair._make((pair.second, x))
    items = list(itertools.chain([x, 1.0], (x,)))
    return pair.first * 10 + pair.second + len(items) + len((x, x)) + sum([x, 1.0]) + np.sum([x, 1.0, x])


@pytest.mark.parametrize("function", [circle, caught, floored, rotated, put, made])
def test_functions_of_numbers_take_traced_ones(function):
    inputs = (-2.5, -0.5, 0.4, 1.7, 2.6)
    wanted = [function(x) for x in inputs]
    compiled = px.jit(function)
    np.testing.assert_allclose([compiled(x) for x in inputs], wanted, rtol=1e-5)
    np.testing.assert_allclose(px.vmap(function)(np.float32(inputs)), wanted, rtol=1e-5)
