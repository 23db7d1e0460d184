"""The fast paths of operators on concrete arrays, in C, do what the methods of `Array`, in Python, do."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.config import config
from purax.core import dtypes
from purax.core.array import Array
from purax.numpy._creation import creation
from purax.xla.array import DeviceArray

OPERATORS = ("add", "sub", "mul", "truediv", "lt", "le", "eq", "ne", "gt", "ge")
NUMBERS = (2, 0, -1, 0.5, 0.0, -0.0, float("nan"), float("inf"), 1j, True, 2**40)


def outcome(function, *arguments):
    """The type and the bits of what a function returns, or the type and the text of what it raises."""
    try:
        with np.errstate(all="raise"):
            result = function(*arguments)
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    if result is NotImplemented:
        return result
    return type(result), result.aval, np.asarray(result).tobytes()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_those_of_array(name):
    short, plain = getattr(operator, name), getattr(Array, f"__{name}__")
    reflected = getattr(Array, f"__r{name}__", None)
    for dtype in dtypes.ALL_DTYPES:
        if dtypes.itemsize_bits(dtype) < 8:
            continue
        x = jnp.asarray([3, 1, 0, 2]).astype(dtype)
        y = jnp.asarray([1, 1, 2, 0]).astype(dtype)
        for a, b in itertools.product((x, y[0], x[:0]), (y, x[0], x[1:])):
            for _ in range(2):  # the first prepares what the second takes
                assert outcome(short, a, b) == outcome(plain, a, b), (dtype, a, b)
        for number in NUMBERS:
            for _ in range(2):
                assert outcome(short, x, number) == outcome(plain, x, number), (dtype, number)
                if reflected is not None:
                    assert outcome(short, number, x) == outcome(reflected, x, number), (dtype, number)
    x = jnp.arange(3.0)
    for other in (
        np.arange(3),
        np.float64(2),
        jnp.arange(3),
        jnp.asarray(2),
        jnp.asarray(2.0),
        [1, 2, 3],
        "text",
        None,
    ):
        expected = outcome(plain, x, other)
        if expected is not NotImplemented:
            assert outcome(short, x, other) == expected, other


def test_an_operand_that_is_no_array_may_answer_itself():
    class Answers:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "after"

        def __add__(self, other):
            return "before"

        def __eq__(self, other):
            return "equal"

    x = jnp.ones(2)
    assert (x + Answers(), Answers() + x, x == Answers()) == ("after", "before", "equal")
    with pytest.raises(TypeError):
        x + object()
    assert (x == object()) is False and (x != object()) is True


INDICES = (
    0, -1, 2, 3, -4, True, None, ..., slice(None), slice(1, 3), slice(None, None, -1), slice(5, 1), slice(0.5), (),
    (0,), (0, 1), (0, 1, 2), (slice(None), 0), (..., 0), (0, ..., None), (..., ...), (None, 1, slice(0, 2)),
    np.int64(1), [0, 1], (0, 2.0), "a", (True, 0), (slice(1, 2), slice(None, None, 2)), np.array([0, 1]), 10**30,
    slice(10**30),
)  # fmt: skip


@pytest.mark.parametrize("shape", [(), (3,), (3, 4), (0, 2), (2, 3, 4)], ids=str)
def test_indexing_is_that_of_array(shape):
    arrays = [
        jnp.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        for dtype in ("float32", "int8", "bfloat16")
    ]
    arrays += [jnp.asarray(2.0) * 1, px.random.split(px.random.key(0), shape) if shape else px.random.key(0)]
    for x, index in itertools.product(arrays, INDICES):
        if isinstance(x.dtype, dtypes.ExtendedDtype):
            found, expected = (
                outcome(lambda *a, f=f: px.random.key_data(f(*a)), x, index)
                for f in (operator.getitem, Array.__getitem__)
            )
        else:
            found, expected = outcome(operator.getitem, x, index), outcome(Array.__getitem__, x, index)
        assert found == expected, index


SHAPES = (
    (6,), (2, 3), (-1,), (3, -1), (-1, -1), (-2, 3), (4,), (1, 6, 1), ((2, 3),), ([3, 2],), ((6,),), (2.0, 3),
    (np.int64(6),), ("a",), (), ((),), (True, 6), (10**30,), (6, 1, 1, 1, 1, 1, 1, 1, 1, 1),
)  # fmt: skip


def test_reshape_and_transpose_are_those_of_array():
    arrays = [
        jnp.arange(6.0),
        jnp.arange(6).reshape(2, 3),
        jnp.arange(6).reshape(2, 3).T,
        jnp.zeros((0, 3)),
        jnp.ones(()),
    ]
    for x in arrays:
        for arguments in SHAPES:
            found, expected = (
                outcome(x.reshape, *arguments),
                outcome(lambda *a, x=x: Array.reshape(x, *a), *arguments),
            )
            assert found == expected, (x.shape, arguments)
        assert outcome(lambda x: x.T, x) == outcome(lambda x: Array.T.fget(x), x)
        np.testing.assert_array_equal(x.reshape(-1, order="F"), np.asarray(x).reshape(-1, order="F"))
    x = arrays[1]
    assert x.reshape(2, 3) is x and arrays[0].T is arrays[0]
    with pytest.raises(TypeError):
        x.reshape(shapes=(2, 3))


def test_views_are_of_memory_that_nobody_can_write_to():
    mine = np.arange(6.0, dtype=np.float32)
    x = jnp.asarray(mine)
    views = [x[1:3], x[0], x.reshape(2, 3), x.reshape(2, 3).T]
    mine[:] = 7
    assert [float(v.max()) for v in views] == [2, 0, 5, 5]
    for view in views:
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(view)[...] = 1


def test_few_elements_of_a_large_array_do_not_keep_it_alive():
    x = jnp.zeros(config.host_size_limit + 1)
    for part in (x[0], x[1:3], x[None, 5]):
        assert part._host.base is None
    assert jnp.concatenate([x, x])[1:]._host.base is not None


def test_inside_of_transformations_operators_are_recorded():
    captured = jnp.arange(6.0)
    traced = px.make_jaxpr(lambda x: (captured[1] + captured * 2).reshape(2, 3).T + x)(1.0)
    assert len(traced.jaxpr.eqns) >= 5

    def function(x):
        return (captured * x)[1:3].sum() + (captured.reshape(2, 3).T * captured[2] / 2).sum()

    value, slope = px.value_and_grad(function)(2.0)
    assert (float(value), float(slope)) == (6 + 15, 3)
    np.testing.assert_array_equal(px.vmap(lambda i: captured + i)(jnp.arange(2.0)), [captured, captured + 1])
    assert px.jit(lambda x: captured[0] + x > 2)(3.0)


def test_arrays_have_no_hash_and_say_why():
    with pytest.raises(TypeError, match="compare element by element"):
        hash(jnp.ones(2))
    assert isinstance(jnp.ones(2), DeviceArray)


def test_the_kinds_of_numbers_in_lists_are_told_apart():
    kinds = [([True, 1], 1), ([1, 2.0], 2), ([2.0, 1j, True], 3), ([False], 0), ([], 0)]
    assert [creation.rank_of_numbers(values) for values, _ in kinds] == [rank for _, rank in kinds]
    for other in ("a", None, [1], np.float32(1), jnp.ones(()), np.int64(1), np.True_):
        assert creation.rank_of_numbers([1, other]) is None
    assert jnp.array([True, 2, 0.5]).tolist() == [1.0, 2.0, 0.5]
    assert jnp.array([1, jnp.ones(())]).dtype == jnp.float32
