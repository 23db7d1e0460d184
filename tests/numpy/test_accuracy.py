"""The errors of elementwise functions, in units in the last place, on few numbers; `make accuracy` takes many."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
specification = importlib.util.spec_from_file_location("accuracy", ROOT / "tools" / "accuracy.py")
accuracy = importlib.util.module_from_spec(specification)
specification.loader.exec_module(accuracy)

MEASURED = "expm1 log1p sinh cosh tanh arcsinh arccosh arctanh cbrt arcsin hypot logaddexp log10 sinc".split()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_as_accurate_as_the_better_peer(dtype):
    functions = [function for function in accuracy.FUNCTIONS if function.name in MEASURED]
    assert len(functions) == len(MEASURED)
    rows = [accuracy.measure(function, dtype, 4000, jax) for function in functions]
    assert not [row for row in rows if row.is_behind]


def test_errors_are_measured_in_ulps():
    exact = np.array([1.0, 1.5, 2.0**-126, -np.inf, np.inf, np.nan, 0.0, 1e-40])
    result = exact.astype(np.float32)
    result[0] = np.nextafter(np.float32(1), np.float32(2))
    assert accuracy.errors(result, exact, result.dtype) == 1
    result[1] = 0
    assert accuracy.errors(result, exact, result.dtype) == 1.5 * 2**23
    result[1] = np.nan
    assert accuracy.errors(result, exact, result.dtype) == np.inf


def test_the_page_names_every_function():
    text = (ROOT / "docs" / "accuracy.md").read_text()
    for function in accuracy.FUNCTIONS:
        assert text.count(f"| `{function.name}`") == len(accuracy.DTYPES), function.name
    assert "←" not in text, "a function is behind"
