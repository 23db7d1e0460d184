"""The array API standard, 2024.12: names, parameters, the array object, devices, dtypes, and what it asks about.

Written from the text of the standard; `test_array_api_elementwise` and `test_array_api_functions` go on. All run with
and without 64 bits by default.
"""

from __future__ import annotations

import inspect
import operator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import purax
import purax.numpy as xp
from tests.numpy.array_api import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMERIC,
    SIGNED,
    UNSIGNED,
    arrays,
    defaults,
    ours,
)

LINES = (Path(__file__).parent / "data" / "array_api_2024_12.txt").read_text().splitlines()
SIGNATURES = [line for line in LINES if line and not line.startswith("#")]
SAME_MEANING = {("norm", "backward"), ("keepdims", False), ("correction", 0.0), ("copy", True), ("step", 1)}
"""Defaults that are None here, or False, and mean the same: an array that is not copied cannot be told from a copy."""


@pytest.mark.parametrize("line", SIGNATURES, ids=lambda line: line.split("(")[0])
def test_functions_take_the_parameters_of_the_standard(line):
    name, text = line.split("(", 1)
    function = operator.attrgetter(name)(xp)
    scope: dict = {}
    exec(f"def function({text}: pass", scope)
    have = list(inspect.signature(function).parameters.values())
    by_position = [p for p in have if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = {p.name: p for p in have if p.kind is not p.POSITIONAL_ONLY}
    takes_many = any(p.kind is p.VAR_POSITIONAL for p in have)
    for place, p in enumerate(inspect.signature(scope["function"]).parameters.values()):
        if p.kind is p.VAR_POSITIONAL:
            assert takes_many
        elif p.kind is p.KEYWORD_ONLY or p.kind is p.POSITIONAL_OR_KEYWORD and place < len(by_position):
            own = by_name.get(p.name)
            assert own is not None, f"{name} lacks {p.name}"
            if p.default is not p.empty:
                assert own.default == p.default or (p.name, p.default) in SAME_MEANING, (p, own)
        else:
            assert takes_many or place < len(by_position), f"{name} lacks {p.name} at position {place}"


def test_namespace():
    x = xp.ones(2)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is xp
    with pytest.raises(ValueError, match="2010"):
        x.__array_namespace__(api_version="2010.01")
    assert xp.__array_api_version__ == "2024.12"
    for name, value in (("e", np.e), ("pi", np.pi), ("inf", np.inf)):
        assert isinstance(getattr(xp, name), float) and getattr(xp, name) == value
    assert np.isnan(xp.nan) and xp.newaxis is None
    for name in ALL:
        dtype = getattr(xp, name)
        assert x.astype(dtype).dtype == dtype and dtype == x.astype(dtype).dtype


@pytest.mark.parametrize("wide", [False, True])
def test_namespace_info(wide):
    info = xp.__array_namespace_info__()
    with purax.config.override(enable_x64=wide):
        names = {kind: set(info.dtypes(kind=kind)) for kind in ("bool", "signed integer", "unsigned integer")}
        assert names == {"bool": {"bool"}, "signed integer": set(SIGNED), "unsigned integer": set(UNSIGNED)}
        assert set(info.dtypes(kind="real floating")) == set(FLOATS)
        assert set(info.dtypes(kind="complex floating")) == set(COMPLEX)
        assert set(info.dtypes(kind="integral")) == set(INTEGERS)
        assert set(info.dtypes(kind="numeric")) == set(NUMERIC)
        assert set(info.dtypes(kind=("bool", "integral"))) == {"bool", *INTEGERS}
        assert set(info.dtypes()) == set(ALL)
        assert all(dtype == getattr(xp, name) for name, dtype in info.dtypes().items())
        assert info.default_dtypes() == defaults() | {"indexing": defaults()["integral"]}
        with pytest.raises(ValueError, match="kind must be one of"):
            info.dtypes(kind="numbers")
    capabilities = info.capabilities()
    assert capabilities["boolean indexing"] is True and capabilities["data-dependent shapes"] is True
    assert isinstance(capabilities["max dimensions"], int)
    assert xp.ones((1,) * capabilities["max dimensions"]).ndim == capabilities["max dimensions"]
    assert info.default_device() in info.devices() and set(purax.devices()) <= set(info.devices())
    for device in info.devices():
        assert xp.zeros(2, device=device).shape == (2,)
        assert info.default_dtypes(device=device) == info.default_dtypes() and info.dtypes(device=device)


# --- the array object


def test_attributes():
    x = xp.asarray([[1, 2, 3], [4, 5, 6]], dtype=xp.int16)
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, xp.int16)
    assert isinstance(x.shape, tuple) and all(isinstance(n, int) for n in x.shape)
    assert x.T.tolist() == x.mT.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert x.device in purax.devices() and x.to_device(x.device).tolist() == x.tolist()
    assert xp.empty((0, 3)).size == 0
    with pytest.raises(ValueError, match=r"mT|two|2"):
        _ = xp.ones(3).mT
    with pytest.raises(ValueError, match="stream"):
        x.to_device(x.device, stream=1)


@pytest.mark.parametrize("dtype", ALL)
def test_conversions_to_python_numbers(dtype):
    for value in (0, 1, 100) if dtype != "bool" else (False, True):
        x = xp.asarray(value, dtype=dtype)
        assert bool(x) is bool(value) and complex(x) == complex(value)
        if dtype in COMPLEX:
            for convert in (int, float, operator.index):
                with pytest.raises(TypeError):
                    convert(x)
            continue
        assert float(x) == float(value) and int(x) == int(value)
        assert (type(bool(x)), type(int(x)), type(float(x))) == (bool, int, float)
        if dtype in INTEGERS:
            assert operator.index(x) == value and [*range(101)][x] == value
        else:
            with pytest.raises(TypeError, match="integer"):
                operator.index(x)


def test_conversions_of_extreme_numbers():
    for number in (np.inf, -np.inf):
        with pytest.raises(OverflowError):
            int(xp.asarray(number))
        assert float(xp.asarray(number)) == number
    with pytest.raises(ValueError, match="NaN"):
        int(xp.asarray(np.nan))
    assert int(xp.asarray(2**64 - 1, dtype="uint64")) == 2**64 - 1
    for convert in (bool, int, float, complex):
        with pytest.raises((TypeError, ValueError), match=r"\(2,\)"):
            convert(xp.ones(2))


BINARY = {
    "add": NUMERIC, "sub": NUMERIC, "mul": NUMERIC, "truediv": [*FLOATS, *COMPLEX], "floordiv": [*INTEGERS, *FLOATS],
    "mod": [*INTEGERS, *FLOATS], "pow": NUMERIC, "matmul": NUMERIC, "and": ["bool", *INTEGERS],
    "or": ["bool", *INTEGERS], "xor": ["bool", *INTEGERS], "lshift": INTEGERS, "rshift": INTEGERS,
}  # fmt: skip
COMPARISONS = {"eq": ALL, "ne": ALL} | dict.fromkeys(["lt", "le", "gt", "ge"], [*INTEGERS, *FLOATS])


@pytest.mark.parametrize("name", [*BINARY, *COMPARISONS])
def test_operators(name):
    """An operator is its function: of two arrays, and of an array and a Python number of its kind on either side."""
    method = f"__{name}__"
    for dtype in (BINARY | COMPARISONS)[name]:
        values = [1, 0, 1] if dtype == "bool" else [1, 2, 3]
        x = xp.asarray(values, dtype=dtype)
        result = getattr(x, method)(x)
        assert result.dtype == (dtype if name in BINARY else "bool"), dtype
        expected = getattr(np.asarray(values, dtype), method)(np.asarray(values, dtype))
        np.testing.assert_allclose(np.asarray(result), expected)
        if name == "matmul":
            with pytest.raises((TypeError, ValueError)):
                _ = x @ 2
            continue
        number = {"b": True, "i": 2, "u": 2, "f": 2.0, "c": 2j}[np.dtype(dtype).kind]
        right = getattr(x, method)(number)
        assert right.dtype == result.dtype
        np.testing.assert_allclose(
            np.asarray(right), getattr(np.asarray(values, dtype), method)(np.asarray(number, dtype))
        )
        if name in BINARY:
            left = getattr(x, f"__r{name}__")(number)
            assert left.dtype == result.dtype
            reference = getattr(np.asarray(number, dtype), method)(np.asarray(values, dtype))
            np.testing.assert_allclose(np.asarray(left), reference)
            # In place: the name is bound to a new array.
            y = x
            y = getattr(operator, f"i{name}")(y, x)
            assert y.tolist() == result.tolist() and x.tolist() == np.asarray(values, dtype).tolist()


def test_unary_operators():
    for dtype in ALL:
        x = xp.asarray([1, 0], dtype=dtype)
        if dtype != "bool":
            assert (+x).dtype == x.dtype and (0 - (-x)).tolist() == x.tolist()
            assert abs(x).dtype == (xp.real(x).dtype if dtype in COMPLEX else x.dtype)
        if dtype in INTEGERS or dtype == "bool":
            assert (~x).dtype == x.dtype and (~~x).tolist() == x.tolist()


@settings(max_examples=60)
@given(arrays(max_ndim=3), st.data())
def test_indexing(x, data):
    """Integers, slices, ellipsis and new axes select what they select from nested lists; masks what holds."""
    index, shape = [], []
    for size in x.shape:
        if size and data.draw(st.booleans()):
            index.append(data.draw(st.integers(-size, size - 1)))
        else:
            bounds = st.none() | st.integers(-size, size)
            step = data.draw(st.sampled_from([None, 1, 2, -1, -2]))
            index.append(slice(data.draw(bounds), data.draw(bounds), step))
            shape.append(len(range(size)[index[-1]]))
    result = ours(x)[tuple(index)]
    assert result.shape == tuple(shape) and result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), x[tuple(index)])
    assert ours(x)[None, ..., None].shape == (1, *x.shape, 1)
    mask = np.asarray(data.draw(st.lists(st.booleans(), min_size=x.size, max_size=x.size)), bool).reshape(
        x.shape
    )
    chosen = ours(x)[ours(mask)]
    assert chosen.shape == (mask.sum(),) and chosen.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(chosen), x[mask])


def test_indices_out_of_bounds_raise():
    x = xp.ones((2, 3))
    for index in (2, -3, (0, 3), (0, 0, 0)):
        with pytest.raises(IndexError):
            _ = x[index]


# --- dtypes, devices, exchange


def test_limits():
    for name in (*FLOATS, *COMPLEX):
        info, expected = xp.finfo(getattr(xp, name)), np.finfo(name)
        assert isinstance(info.bits, int) and info.dtype == np.finfo(name).dtype
        for attribute in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(info, attribute) == getattr(expected, attribute), (name, attribute)
        assert xp.finfo(xp.ones(2, dtype=name)).bits == info.bits
    for name in INTEGERS:
        info, expected = xp.iinfo(getattr(xp, name)), np.iinfo(name)
        assert (info.bits, info.max, info.min) == (expected.bits, expected.max, expected.min)
        assert info.dtype == name and isinstance(info.max, int)
        assert xp.iinfo(xp.ones(2, dtype=name)).bits == info.bits


def test_kinds():
    kinds = {
        "bool": ["bool"], "signed integer": SIGNED, "unsigned integer": UNSIGNED, "integral": INTEGERS,
        "real floating": FLOATS, "complex floating": COMPLEX, "numeric": NUMERIC,
    }  # fmt: skip
    for name in ALL:
        dtype = getattr(xp, name)
        for kind, members in kinds.items():
            assert xp.isdtype(dtype, kind) is (name in members), (name, kind)
        assert xp.isdtype(dtype, ("bool", "numeric")) and xp.isdtype(dtype, dtype)
        assert xp.isdtype(dtype, (xp.int8, "complex floating")) is (name == "int8" or name in COMPLEX)


def test_casting():
    for first in ALL:
        for second in ALL:
            assert xp.can_cast(getattr(xp, first), getattr(xp, second)) is bool(np.can_cast(first, second))
            assert xp.can_cast(xp.ones(2, dtype=first), getattr(xp, second)) is bool(
                np.can_cast(first, second)
            )
    x = xp.asarray([0.0, 1.5, -1.0])
    for name in ALL:
        if name in UNSIGNED:
            continue
        y = xp.astype(x, getattr(xp, name))
        assert y.dtype == name and y.shape == x.shape
        np.testing.assert_array_equal(np.asarray(y), np.asarray(x).astype(name))
    same = xp.astype(x, x.dtype, copy=True)
    assert same is not x and same.tolist() == x.tolist()
    assert xp.astype(x, xp.int32, device=x.device).device == x.device
    with pytest.warns(match="imaginary"):  # a silent loss otherwise
        xp.astype(xp.asarray([1j]), xp.float32)


@pytest.mark.parametrize("wide", [False, True])
def test_result_type(wide):
    """Kinds mix as the standard's tables say; unsigned and signed integers of 32 bits stay there without 64 bits."""
    with purax.config.override(enable_x64=wide):
        for kinds in (SIGNED, UNSIGNED, [*SIGNED, *UNSIGNED], [*FLOATS, *COMPLEX], ["bool"]):
            for first in kinds:
                for second in kinds:
                    pair = {first, second}
                    if pair & {"uint64"} and pair & set(SIGNED):
                        continue  # not in the standard
                    expected = np.promote_types(first, second)
                    if not wide and pair & {"uint32"} and pair & {"int8", "int16", "int32"}:
                        expected = np.dtype("int32")
                    a, b = getattr(xp, first), getattr(xp, second)
                    assert xp.result_type(a, b) == expected, (first, second)
                    assert xp.result_type(xp.ones(1, dtype=a), b) == expected
                    assert (xp.ones(1, dtype=a) * xp.ones(2, dtype=b)).dtype == expected
        for name in NUMERIC:
            numbers = {"i": [1], "u": [1], "f": [1, 1.5], "c": [1, 1.5, 1j]}[np.dtype(name).kind]
            for number in numbers:
                assert xp.result_type(getattr(xp, name), number) == name
                assert xp.result_type(number, xp.ones(2, dtype=name)) == name
        assert xp.result_type(xp.bool, True) == xp.bool


@pytest.mark.parametrize("dtype", ALL)
def test_exchange(dtype):
    """Arrays go to NumPy and come back, by DLPack and by the buffer protocol."""
    x = xp.asarray([[1, 0, 1], [0, 1, 1]], dtype=dtype)
    if dtype != "bool" or np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        there = np.from_dlpack(x)
        assert there.tolist() == x.tolist() and there.dtype == dtype
        back = xp.from_dlpack(there)
        assert back.dtype == dtype and back.tolist() == x.tolist()
        assert xp.from_dlpack(x).tolist() == x.tolist()
        copied = xp.from_dlpack(x, copy=True, device=x.device)
        assert copied.tolist() == x.tolist()
    assert x.__dlpack_device__() == (1, 0)
    assert x.__dlpack__(max_version=(1, 0), copy=True) is not None
    assert np.asarray(x).tolist() == x.tolist()


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16", "float64"])
def test_files(tmp_path, dtype):
    value = xp.array([[0, 1], [2, 3]], dtype)
    xp.save(tmp_path / "one.npy", value)
    loaded = xp.load(tmp_path / "one.npy")
    assert (
        isinstance(loaded, purax.Array) and loaded.dtype == value.dtype and loaded.tolist() == value.tolist()
    )
    if dtype != "bfloat16":
        xp.savez(tmp_path / "more.npz", first=value, second=value + value)
        with xp.load(tmp_path / "more.npz") as archive:
            assert sorted(archive) == ["first", "second"] and archive["first"].tolist() == value.tolist()


def test_printing():
    x = xp.array([1.0, 0.123456])
    assert xp.array_str(x) == "[1.       0.123456]"
    with xp.printoptions(precision=2):
        assert repr(x) == "Array([1.  , 0.12], dtype=float32)" == xp.array_repr(x)
    assert xp.get_printoptions()["precision"] == 8 and xp.iterable(x) and not xp.iterable(1)
