"""Elementwise functions of the array API standard: dtypes, broadcasting, Python numbers, and special cases.

Values are compared with Python's own `math` and `cmath`, and NumPy's in the dtype's own precision.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import purax
import purax.numpy as xp
from tests.numpy.array_api import ALL, COMPLEX, FLOATS, INTEGERS, NUMERIC, filled, ours

REAL = [*INTEGERS, *FLOATS]
INEXACT = [*FLOATS, *COMPLEX]
BITS = ["bool", *INTEGERS]

SAME, TRUTH, PART = "same", "bool", "real part"  # the dtype of the result
UNARY = {
    "abs": (NUMERIC, PART), "acos": (INEXACT, SAME), "acosh": (INEXACT, SAME), "asin": (INEXACT, SAME),
    "asinh": (INEXACT, SAME), "atan": (INEXACT, SAME), "atanh": (INEXACT, SAME), "bitwise_invert": (BITS, SAME),
    "ceil": (REAL, SAME), "conj": (NUMERIC, SAME), "cos": (INEXACT, SAME), "cosh": (INEXACT, SAME),
    "exp": (INEXACT, SAME), "expm1": (INEXACT, SAME), "floor": (REAL, SAME), "imag": (COMPLEX, PART),
    "isfinite": (NUMERIC, TRUTH), "isinf": (NUMERIC, TRUTH), "isnan": (NUMERIC, TRUTH), "log": (INEXACT, SAME),
    "log10": (INEXACT, SAME), "log1p": (INEXACT, SAME), "log2": (INEXACT, SAME), "logical_not": (["bool"], SAME),
    "negative": (NUMERIC, SAME), "positive": (NUMERIC, SAME), "real": (NUMERIC, PART), "reciprocal": (FLOATS, SAME),
    "round": (NUMERIC, SAME), "sign": (NUMERIC, SAME), "signbit": (FLOATS, TRUTH), "sin": (INEXACT, SAME),
    "sinh": (INEXACT, SAME), "sqrt": (INEXACT, SAME), "square": (NUMERIC, SAME), "tan": (INEXACT, SAME),
    "tanh": (INEXACT, SAME), "trunc": (REAL, SAME),
}  # fmt: skip
BINARY = {
    "add": (NUMERIC, SAME), "atan2": (FLOATS, SAME), "bitwise_and": (BITS, SAME), "bitwise_or": (BITS, SAME),
    "bitwise_xor": (BITS, SAME), "bitwise_left_shift": (INTEGERS, SAME), "bitwise_right_shift": (INTEGERS, SAME),
    "copysign": (FLOATS, SAME), "divide": (INEXACT, SAME), "equal": (ALL, TRUTH), "floor_divide": (REAL, SAME),
    "greater": (REAL, TRUTH), "greater_equal": (REAL, TRUTH), "hypot": (FLOATS, SAME), "less": (REAL, TRUTH),
    "less_equal": (REAL, TRUTH), "logaddexp": (FLOATS, SAME), "logical_and": (["bool"], SAME),
    "logical_or": (["bool"], SAME), "logical_xor": (["bool"], SAME), "maximum": (REAL, SAME), "minimum": (REAL, SAME),
    "multiply": (NUMERIC, SAME), "nextafter": (FLOATS, SAME), "not_equal": (ALL, TRUTH), "pow": (NUMERIC, SAME),
    "remainder": (REAL, SAME), "subtract": (NUMERIC, SAME),
}  # fmt: skip
SHAPES = [(), (0,), (3,), (2, 0, 3), (2, 1, 3)]


def result_dtype(rule: str, dtype: str):
    if rule is PART:
        return {"complex64": np.float32, "complex128": np.float64}.get(dtype, np.dtype(dtype))
    return np.dtype(bool) if rule is TRUTH else np.dtype(dtype)


def example(shape, dtype, seed=0):
    numbers = np.random.default_rng(seed).integers(1, 4, shape)
    return np.asarray(numbers).astype(dtype) if dtype != "bool" else np.asarray(numbers > 1)


@pytest.mark.parametrize("wide", [False, True])
def test_functions_of_one_array(wide):
    """Each takes the dtypes that the standard names, keeps the shape, and gives the dtype that it names."""
    with purax.config.override(enable_x64=wide):
        for name, (dtypes, rule) in UNARY.items():
            for dtype in dtypes:
                for shape in SHAPES:
                    result = getattr(xp, name)(ours(example(shape, dtype)))
                    assert (result.shape, result.dtype) == (shape, result_dtype(rule, dtype)), (name, dtype)


@pytest.mark.parametrize("wide", [False, True])
def test_functions_of_two_arrays(wide):
    """Shapes are broadcast, dtypes of one kind promoted; a Python number may stand for either array, not for both."""
    with purax.config.override(enable_x64=wide):
        for name, (dtypes, rule) in BINARY.items():
            function = getattr(xp, name)
            for dtype in dtypes:
                for first, second, shape in (
                    ((2, 3), (3,), (2, 3)),
                    ((2, 1), (1, 3), (2, 3)),
                    ((0,), (1,), (0,)),
                    ((), (2,), (2,)),
                ):
                    x, y = ours(example(first, dtype)), ours(example(second, dtype, 1))
                    result = function(x, y)
                    assert (result.shape, result.dtype) == (shape, result_dtype(rule, dtype)), (name, dtype)
                kind = np.dtype(dtype).kind
                for number in {"b": [True], "i": [2], "u": [2], "f": [2, 2.0], "c": [2, 2.0, 2j]}[kind]:
                    for result in (function(x, number), function(number, x)):
                        assert (result.shape, result.dtype) == (x.shape, result_dtype(rule, dtype)), (
                            name,
                            dtype,
                        )
    assert xp.add(xp.ones(2, dtype="int8"), xp.ones(2, dtype="int16")).dtype == xp.int16
    with pytest.raises(ValueError, match="broadcast"):
        xp.add(xp.ones(2), xp.ones(3))


@settings(max_examples=80)
@given(st.sampled_from(sorted(UNARY)), st.data())
def test_values_of_functions_of_one_array(name, data):
    """Values as NumPy's, special values too, to the rounding of the dtype."""
    dtype = data.draw(st.sampled_from(UNARY[name][0]))
    x = data.draw(filled((4,), dtype, special=True))
    compare(getattr(xp, name)(ours(x)), getattr(np, name)(x) if name != "reciprocal" else 1 / x, (name, x))


@settings(max_examples=80)
@given(st.sampled_from(sorted(BINARY)), st.data())
def test_values_of_functions_of_two_arrays(name, data):
    dtype = data.draw(st.sampled_from(BINARY[name][0]))
    x, y = data.draw(filled((4,), dtype, special=True)), data.draw(filled((4,), dtype, special=True))
    if name in ("bitwise_left_shift", "bitwise_right_shift", "pow") and np.dtype(dtype).kind in "iu":
        y = np.abs(y)
    if name in ("floor_divide", "remainder") and np.dtype(dtype).kind in "iu":
        y = np.where(y == 0, 1, y).astype(dtype)
    if name == "pow" and dtype in COMPLEX:
        x, y = (
            np.where(np.isfinite(x), x, 1).astype(dtype),
            np.where(np.isfinite(y) & (abs(y) < 9), y, 1).astype(dtype),
        )
        x = np.where(x == 0, 1, x).astype(dtype)
    compare(getattr(xp, name)(ours(x), ours(y)), getattr(np, name)(x, y), (name, x, y))


def compare(result, expected, what):
    result = np.asarray(result)
    assert result.dtype == expected.dtype, what
    tolerance = {"float32": 1e-5, "complex64": 1e-4, "float64": 1e-12, "complex128": 1e-11}.get(
        result.dtype.name, 0
    )
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * 0.1, err_msg=str(what))
    if result.dtype.kind == "f":  # zeros have signs
        zero = (result == 0) & (expected == 0)
        np.testing.assert_array_equal(np.signbit(result)[zero], np.signbit(expected)[zero], err_msg=str(what))


@pytest.fixture(autouse=True)
def quietly():
    with np.errstate(all="ignore"):
        yield


inf, nan = math.inf, math.nan
SPECIAL_CASES = {  # from the tables of the standard; ±0 are told apart
    "abs": [(-0.0, 0.0), (-inf, inf), (nan, nan)],
    "acos": [(1.5, nan), (-1.5, nan), (1.0, 0.0), (nan, nan)],
    "acosh": [(0.5, nan), (1.0, 0.0), (inf, inf)],
    "asin": [(1.5, nan), (0.0, 0.0), (-0.0, -0.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (inf, math.pi / 2), (-inf, -math.pi / 2)],
    "atanh": [(1.5, nan), (1.0, inf), (-1.0, -inf), (0.0, 0.0), (-0.0, -0.0)],
    "ceil": [(inf, inf), (-0.0, -0.0), (-0.5, -0.0), (nan, nan)],
    "cos": [(0.0, 1.0), (inf, nan)],
    "cosh": [(0.0, 1.0), (-inf, inf)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0)],
    "floor": [(0.5, 0.0), (-0.0, -0.0), (-inf, -inf)],
    "log": [(-1.0, nan), (0.0, -inf), (-0.0, -inf), (1.0, 0.0), (inf, inf)],
    "log10": [(-1.0, nan), (0.0, -inf), (1.0, 0.0), (inf, inf)],
    "log1p": [(-2.0, nan), (-1.0, -inf), (-0.0, -0.0), (0.0, 0.0), (inf, inf)],
    "log2": [(-1.0, nan), (0.0, -inf), (1.0, 0.0), (inf, inf)],
    "reciprocal": [(0.0, inf), (-0.0, -inf), (inf, 0.0), (-inf, -0.0)],
    "round": [(0.5, 0.0), (1.5, 2.0), (-0.5, -0.0), (-0.0, -0.0), (2.5, 2.0), (inf, inf), (nan, nan)],
    "sign": [(-3.0, -1.0), (0.0, 0.0), (nan, nan)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (inf, nan)],
    "sinh": [(-0.0, -0.0), (inf, inf), (-inf, -inf)],
    "sqrt": [(-1.0, nan), (-0.0, -0.0), (inf, inf)],
    "tan": [(-0.0, -0.0), (inf, nan)],
    "tanh": [(-0.0, -0.0), (inf, 1.0), (-inf, -1.0)],
    "trunc": [(-0.5, -0.0), (-0.0, -0.0), (inf, inf)],
    "atan2": [
        ((nan, 1.0), nan), ((1.0, 0.0), math.pi / 2), ((1.0, -0.0), math.pi / 2), ((0.0, 1.0), 0.0), ((0.0, 0.0), 0.0),
        ((0.0, -0.0), math.pi), ((0.0, -1.0), math.pi), ((-0.0, 1.0), -0.0), ((-0.0, 0.0), -0.0),
        ((-0.0, -0.0), -math.pi), ((-1.0, 0.0), -math.pi / 2), ((1.0, inf), 0.0), ((1.0, -inf), math.pi),
        ((-1.0, inf), -0.0), ((inf, 1.0), math.pi / 2), ((inf, inf), math.pi / 4), ((inf, -inf), 3 * math.pi / 4),
        ((-inf, inf), -math.pi / 4), ((-inf, -inf), -3 * math.pi / 4),
    ],
    "copysign": [((1.0, -0.0), -1.0), ((-1.0, 0.0), 1.0), ((nan, -1.0), nan), ((0.0, -1.0), -0.0)],
    "divide": [
        ((inf, inf), nan), ((0.0, 0.0), nan), ((1.0, 0.0), inf), ((1.0, -0.0), -inf), ((-1.0, 0.0), -inf),
        ((1.0, inf), 0.0), ((-1.0, inf), -0.0), ((inf, -1.0), -inf),
    ],
    "floor_divide": [
        ((1.0, inf), 0.0), ((-1.0, inf), -1.0), ((1.0, -inf), -1.0), ((-1.0, -inf), 0.0), ((0.0, 0.0), nan),
        ((inf, inf), nan), ((7.5, 2.0), 3.0), ((-7.5, 2.0), -4.0), ((0.0, 1.0), 0.0), ((0.0, -1.0), -0.0),
    ],
    "hypot": [((inf, nan), inf), ((nan, -inf), inf), ((1.0, nan), nan), ((3.0, 4.0), 5.0)],
    "logaddexp": [((nan, 1.0), nan), ((inf, -inf), inf), ((-inf, -inf), -inf)],
    "maximum": [((nan, 1.0), nan), ((1.0, nan), nan), ((-inf, inf), inf)],
    "minimum": [((nan, 1.0), nan), ((1.0, nan), nan), ((-inf, inf), -inf)],
    "multiply": [((inf, 0.0), nan), ((inf, -1.0), -inf), ((-0.0, 1.0), -0.0)],
    "nextafter": [((nan, 1.0), nan), ((1.0, nan), nan), ((0.0, -0.0), -0.0), ((-0.0, 0.0), 0.0)],
    "pow": [
        ((1.0, nan), 1.0), ((nan, 0.0), 1.0), ((nan, -0.0), 1.0), ((nan, 2.0), nan), ((2.0, inf), inf),
        ((2.0, -inf), 0.0),
        ((1.0, inf), 1.0), ((-1.0, -inf), 1.0), ((0.5, inf), 0.0), ((0.5, -inf), inf), ((inf, 2.0), inf),
        ((inf, -2.0), 0.0), ((-inf, 3.0), -inf), ((-inf, 2.0), inf), ((-inf, -3.0), -0.0), ((-inf, -2.0), 0.0),
        ((0.0, 2.0), 0.0), ((0.0, -2.0), inf), ((-0.0, 3.0), -0.0), ((-0.0, 2.0), 0.0), ((-0.0, -3.0), -inf),
        ((-0.0, -2.0), inf), ((-2.0, 0.5), nan),
    ],
    "remainder": [
        ((nan, 1.0), nan), ((inf, 1.0), nan), ((1.0, 0.0), nan), ((0.0, 1.0), 0.0), ((-0.0, 1.0), 0.0),
        ((0.0, -1.0), -0.0), ((1.0, inf), 1.0), ((-1.0, inf), inf), ((1.0, -inf), -inf), ((-1.0, -inf), -1.0),
        ((-7.0, 3.0), 2.0), ((7.0, -3.0), -2.0),
    ],
    "subtract": [((inf, inf), nan), ((0.0, 0.0), 0.0)],
    "add": [((inf, -inf), nan), ((-0.0, -0.0), -0.0), ((-0.0, 0.0), 0.0), ((1.0, -1.0), 0.0)],
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_cases(dtype):
    """Of real numbers, eager and in one compiled program."""
    operands, wanted = {}, {}
    for name, cases in SPECIAL_CASES.items():
        rows = [arguments if isinstance(arguments, tuple) else (arguments,) for arguments, _ in cases]
        operands[name] = [xp.asarray(list(column), dtype=dtype) for column in zip(*rows, strict=True)]
        wanted[name] = np.asarray([value for _, value in cases], dtype)
    compiled = purax.jit(lambda xs: {name: getattr(xp, name)(*x) for name, x in xs.items()})(operands)
    for name, expected in wanted.items():
        compare(getattr(xp, name)(*operands[name]), expected, ("eager", name))
        compare(compiled[name], expected, ("compiled", name))


def complex_table(text: str) -> list[tuple[complex, complex]]:
    return [(complex(a), complex(b)) for a, b in (line.split() for line in text.strip().splitlines())]


COMPLEX_CASES = {  # a sample of the tables for complex numbers
    "exp": "0j 1+0j\n-infj nan+nanj\ninf+0j inf+0j\n-inf+1j 0j\ninf+nanj inf+nanj\nnan+0j nan+0j",
    "expm1": "0j 0j\ninf+0j inf+0j\n-inf+infj -1+0j\nnan+0j nan+0j",
    "log": "-0j -inf-0j\n-inf+1j inf+3.141592653589793j\ninf+1j inf+0j\ninf+nanj inf+nanj\nnan+infj inf+nanj",
    "sqrt": "0j 0j\n-inf+1j infj\ninf+1j inf+0j\n1+infj inf+infj\nnan+infj inf+infj",
    "acos": "0j 1.5707963267948966-0j\ninf+1j -infj\n-inf+1j 3.141592653589793-infj",
    "acosh": "0j 1.5707963267948966j\ninf+1j inf+0j\ninf+nanj inf+nanj",
    "asinh": "0j 0j\ninf+1j inf+0j\nnan+0j nan+0j",
    "atanh": "0j 0j\n1+0j inf+0j\ninf+1j 1.5707963267948966j\nnan+1j nan+nanj",
    "cosh": "0j 1+0j\ninf+0j inf+0j\nnan+1j nan+nanj",
    "sinh": "0j 0j\ninf+0j inf+0j\nnan+0j nan+0j",
    "tanh": "0j 0j\ninf+1j 1+0j\nnan+0j nan+0j",
}


@pytest.mark.parametrize("name", COMPLEX_CASES)
def test_special_cases_of_complex_numbers(name):
    for argument, expected in complex_table(COMPLEX_CASES[name]):
        result = complex(getattr(xp, name)(xp.asarray(argument, dtype="complex128")))
        np.testing.assert_allclose(
            [result.real, result.imag], [expected.real, expected.imag], err_msg=str(argument)
        )


def test_clip():
    x = xp.asarray([-2, 0, 5], dtype="int8")
    assert xp.clip(x, -1, 3).tolist() == [-1, 0, 3] and xp.clip(x).tolist() == x.tolist()
    assert xp.clip(x, min=0).dtype == xp.int8 and xp.clip(
        x, max=xp.asarray([0, 1, 2], dtype="int8")
    ).tolist() == [-2, 0, 2]
    y = xp.asarray([nan, -inf, inf, 0.5])
    assert np.isnan(xp.clip(y, 0, 1)[0]) and xp.clip(y, 0, 1)[1:].tolist() == [0, 1, 0.5]
    assert xp.clip(xp.ones((3, 1)), xp.zeros((1, 2)), 2).shape == (3, 2)


def test_integers_are_exact():
    """Values that a float64 would round."""
    large = xp.asarray([2**62 + 1, -(2**62) - 1], dtype="int64")
    for name in ("floor", "ceil", "trunc", "round", "positive", "conj"):
        assert getattr(xp, name)(large).tolist() == large.tolist()
    assert xp.floor_divide(large, 1).tolist() == large.tolist() and xp.remainder(large, 2**40).tolist() == [
        1,
        2**40 - 1,
    ]
    assert xp.maximum(large, large - 1).tolist() == large.tolist()
    assert xp.pow(xp.asarray([3], dtype="int64"), xp.asarray([39], dtype="int64")).tolist() == [3**39]
    assert (xp.asarray(2**63 + 5, dtype="uint64") // 3).item() == (2**63 + 5) // 3
    assert xp.sign(xp.asarray([-5, 0, 5], dtype="int16")).tolist() == [-1, 0, 1]


def test_sign_of_complex_numbers_is_their_direction():
    z = xp.asarray([3 + 4j, 0, -2j])
    np.testing.assert_allclose(xp.sign(z), [0.6 + 0.8j, 0, -1j], rtol=1e-6)


def test_shifts_of_all_bits():
    x = xp.asarray([1, -1], dtype="int8")
    assert xp.bitwise_left_shift(x, 7).tolist() == [-128, -128]
    assert xp.bitwise_right_shift(x, 7).tolist() == [0, -1]
