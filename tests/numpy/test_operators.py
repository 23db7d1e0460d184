"""Operators, methods and properties of arrays: mixed operands on either side, concrete and traced."""

from __future__ import annotations

import operator

import jax.numpy as jax_numpy
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.core.array import Array

pytestmark = pytest.mark.sampled(2)

BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "matmul",
]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
FLOATS = np.array([1.5, -2.0, 3.0], np.float32)
INTEGERS = np.array([1, 2, 3], np.int32)
OTHERS = {
    "array": lambda library: library.asarray(np.array([2, 1, 3], np.int32)),
    "numpy float64": lambda library: np.array([2.0, 0.5, 1.0]),
    "numpy int64": lambda library: np.array([2, 1, 3]),
    "numpy scalar": lambda library: np.float32(2),
    "numpy integer": lambda library: np.int8(2),
    "int": lambda library: 2,
    "float": lambda library: 2.5,
    "bool": lambda library: True,
    "complex": lambda library: 1 + 2j,
}


def outcome(function):
    try:
        return function()
    except (TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("values", [FLOATS, INTEGERS], ids=["float", "int"])
def test_operands_mix_on_either_side(values, other):
    """Every operator gives the value, dtype and weak type that jax gives, or both refuse."""
    wrong = []
    for name in BINARY + COMPARISONS:
        function = getattr(operator, name)
        for swapped in (False, True):

            def call(library, function=function, swapped=swapped):
                pair = (library.asarray(values), OTHERS[other](library))
                return function(*(pair[::-1] if swapped else pair))

            ours, theirs = outcome(lambda: call(jnp)), outcome(lambda: call(jax_numpy))
            if isinstance(theirs, type):
                if not isinstance(ours, type):
                    wrong.append(f"{name}: jax refuses")
                continue
            if isinstance(ours, type) or not isinstance(ours, Array):
                wrong.append(f"{name}: got {ours}, jax has {theirs}")
                continue
            weak = theirs.weak_type and theirs.dtype != bool
            if (ours.dtype, ours.shape, ours.weak_type) != (theirs.dtype, theirs.shape, weak):
                wrong.append(f"{name} {swapped}: {ours!r}, jax has {theirs!r}")
            elif not np.allclose(ours, theirs, rtol=1e-5, equal_nan=True):
                wrong.append(f"{name} {swapped}: {ours!r}, jax has {theirs!r}")
    assert not wrong, "\n".join(wrong)


def test_operators_under_jit():
    x = jnp.asarray(FLOATS)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        function = getattr(operator, name)
        for other in (2, 2.5, np.float64(2), np.array([2.0, 1.0, 4.0]), jnp.asarray(INTEGERS)):
            for swapped in (False, True):

                def call(x, function=function, other=other, swapped=swapped):
                    return function(other, x) if swapped else function(x, other)

                eager, compiled = call(x), purax.jit(call)(x)
                assert (eager.dtype, eager.weak_type) == (compiled.dtype, compiled.weak_type)
                np.testing.assert_allclose(eager, compiled, rtol=1e-6)


def test_unary_operators():
    x = jnp.asarray(FLOATS)
    assert (-x).tolist() == [-1.5, 2, -3] and (+x).tolist() == x.tolist() and abs(x).tolist() == [1.5, 2, 3]
    assert (~jnp.array([True, False])).tolist() == [False, True] and (~jnp.array([0, 5])).tolist() == [-1, -6]
    with pytest.raises(TypeError, match="float32"):
        operator.invert(x)
    assert round(jnp.array(2.5)).dtype == np.int32
    assert round(jnp.array([1.25, 2.35]), 1).tolist() == pytest.approx([1.2, 2.4])
    assert divmod(jnp.array(7), 2)[1] == 1 and divmod(7, jnp.array(2))[0] == 3


def test_python_protocols():
    x = jnp.array([[1, 2], [3, 4], [5, 6]])
    assert len(x) == 3 and [row.tolist() for row in x] == x.tolist() and 4 in x and 9 not in x
    assert all(isinstance(row, Array) for row in x)
    scalar = jnp.array(1)
    for call in (
        lambda: len(scalar),
        lambda: list(scalar),
        lambda: hash(x),
        lambda: x + [1, 2],
        lambda: [1] + x,
    ):
        with pytest.raises(TypeError):
            call()
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711
    with pytest.raises(TypeError, match="jnp.array"):
        x == [1, 2]  # noqa: B015
    with pytest.raises(TypeError, match=r"x = x.at\[idx\].set\(y\)"):
        x[0] = 1
    y = z = jnp.array([1.0])
    y += 1
    assert y.tolist() == [2] and z.tolist() == [1]
    assert x.__array_namespace__() is jnp


def test_unknown_types_answer_themselves():
    class Other:
        def __radd__(self, other):
            return "radd"

        def __add__(self, other):
            return "add"

        def __eq__(self, other):
            return "eq"

    class Wraps:
        def __jax_array__(self):
            return jnp.array([1.0, 2.0])

    x = jnp.ones(2)
    assert x + Other() == "radd" and Other() + x == "add" and (x == Other()) == "eq"
    assert (x + Wraps()).tolist() == [2, 3] and (Wraps() + x).tolist() == [2, 3]
    with pytest.raises(TypeError, match="unsupported operand"):
        x + object()


def test_iteration_under_jit():
    assert purax.jit(lambda x: sum(row for row in x))(jnp.array([[1, 2], [3, 4]])).tolist() == [4, 6]
    assert purax.jit(lambda x: len(x))(jnp.ones(3)) == 3


METHODS = [
    ("astype", (int,)), ("reshape", (3, 2)), ("reshape", ((3, -1),)), ("ravel", ()), ("flatten", ()),
    ("transpose", ()), ("transpose", (1, 0)), ("transpose", ((1, 0),)), ("swapaxes", (0, 1)), ("squeeze", ()),
    ("clip", (1, 3)), ("round", (1,)), ("conj", ()), ("conjugate", ()), ("copy", ()), ("sum", ()), ("sum", (0,)),
    ("mean", ()), ("max", (1,)), ("min", ()), ("prod", ()), ("any", ()), ("all", ()), ("argmax", ()),
    ("argmin", (1,)), ("cumsum", (1,)), ("cumprod", (0,)), ("std", ()), ("var", (0,)), ("ptp", ()),
    ("repeat", (2,)), ("diagonal", ()), ("trace", ()), ("dot", (np.ones((3, 2)),)), ("sort", ()), ("argsort", ()),
    ("take", (np.array([1, 0]),)), ("nonzero", ()), ("searchsorted", (1.0,)), ("byteswap", ()),
    ("view", ("int32",)), ("view", ("uint8",)), ("view", ("int64",)), ("item", (0,)), ("tolist", ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), METHODS, ids=lambda value: str(value)[:20])
def test_methods(name, arguments):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    values = values[0] if name == "searchsorted" else values
    is_wide = name == "view" and arguments[0] == "int64"  # which jax refuses without x64
    values = values.reshape(3, 2) if is_wide else values
    ours, theirs = jnp.asarray(values), jax_numpy.asarray(values)
    expected = values.view(np.int64) if is_wide else getattr(theirs, name)(*arguments)
    result = getattr(ours, name)(*arguments)
    pairs = zip(result, expected, strict=True) if isinstance(result, tuple) else [(result, expected)]
    for x, y in pairs:
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6)
        assert getattr(x, "dtype", None) == getattr(y, "dtype", None)
    if name not in ("item", "tolist", "nonzero"):
        np.testing.assert_allclose(
            purax.jit(lambda x: getattr(x, name)(*arguments))(ours), expected, rtol=1e-6
        )


def test_properties():
    values = np.arange(12).reshape(2, 2, 3).astype(np.complex64) * (1 + 1j)
    x = jnp.asarray(values)
    for name in ("T", "mT", "real", "imag", "shape", "dtype", "ndim", "size", "itemsize", "nbytes"):
        ours, expected = getattr(x, name), getattr(values, name)
        np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(purax.jit(lambda x: x.mT.imag)(x), values.mT.imag)
    with pytest.raises(NotImplementedError, match="ravel"):
        _ = x.flat
    assert jnp.ones((2, 2), complex).view("float32").shape == (2, 4)
    assert jnp.ones((2, 4), "float32").view("complex64").tolist() == [[1 + 1j, 1 + 1j]] * 2


def test_public_attributes_of_arrays():
    """Everything that jax's arrays offer to users is there, but for what is listed."""
    left_out = {
        "addressable_data", "addressable_shards", "clone", "device_buffer", "device_buffers", "format", "global_shards",
        "is_fully_addressable", "is_fully_replicated", "on_device_size_in_bytes", "platform", "traceback",
        "unsafe_buffer_pointer", "unsafe_raw_buffer",
    }  # fmt: skip
    public = {name for name in dir(jax_numpy.ones(2)) if not name.startswith("_")}
    missing = {name for name in public if name not in left_out and not hasattr(type(jnp.ones(2)), name)}
    assert not missing


UFUNCS = [name for name in sorted(dir(jnp)) if isinstance(getattr(np, name, None), np.ufunc)]


@pytest.mark.parametrize("number", [2, True, 0.5])
@pytest.mark.parametrize("name", [name for name in UFUNCS if getattr(np, name).nin == 2])
def test_derivatives_beside_a_number(name, number):
    function, array = getattr(jnp, name), jnp.asarray(float(number))
    for of in (purax.grad, purax.jacfwd, lambda f: purax.grad(purax.grad(f))):
        for plain, whole in (
            (lambda x: function(number, x), lambda x: function(array, x)),
            (lambda x: function(x, number), lambda x: function(x, array)),
        ):
            try:
                expected = of(whole)(0.7)
            except (TypeError, ValueError):  # of integers, of vectors, or with two results
                continue
            np.testing.assert_allclose(of(plain)(0.7), expected, rtol=1e-6)
