"""Every idiom of the generator is a program that plain Python takes, and a difference is found and shrunk."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
from tests.fuzz import python_functions
from tests.fuzz.python_idioms import IDIOMS, Mixer


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")  # of NumPy 2.5, about what programs still do
@pytest.mark.parametrize("number", range(len(IDIOMS)))
def test_each_step_of_an_idiom_is_plain_python(number):
    idiom = IDIOMS[number]
    for step in idiom.steps:
        mixer = Mixer(number)
        mixer.lines = ["def f(x):  # of idioms", "    a, l = 1.0, [x, 0.5]"]
        for line in (*idiom.setup, step):
            mixer.add(line, number)
        mixer.add(f"return a + sum(l) + {idiom.total}".replace("@", str(number)), number)
        function = python_functions.defined("\n".join(mixer.lines) + "\n", f"<idiom {number}>")
        assert np.isfinite(function(0.5)), step


def test_a_wrong_value_is_found_and_shrunk(monkeypatch):
    text = python_functions.program_of(4)
    assert text.startswith("def f(x):  # of idioms\n")
    right = px.jit
    monkeypatch.setattr(python_functions.px, "jit", lambda f: lambda x: right(f)(x) + 1.0)
    with px.purity("off"):
        assert "plain Python gives" in python_functions.check(text, "<wrong>")[0]
