"""Types of arrays: one object per type, tangents, symbolic zeros."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import purax.numpy as jnp
from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of, tangent_aval

SPELLINGS = [
    lambda: ShapedArray((2, 3), np.dtype(np.float32)),
    lambda: ShapedArray([2, 3], "float32"),
    lambda: ShapedArray((np.int64(2), np.int32(3)), np.float32, False),
    lambda: ShapedArray((2, 3), jnp.float32, 0),
    lambda: aval_of(jnp.ones((2, 3))),
    lambda: aval_of(np.ones((2, 3), np.float32)),
    lambda: pickle.loads(pickle.dumps(ShapedArray((2, 3), "float32"))),
    lambda: copy.deepcopy(ShapedArray((2, 3), "float32")),
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_equal_types_are_one_object(spelling):
    assert spelling() is ShapedArray((2, 3), "float32")


def test_different_types_are_different_objects():
    types = {
        ShapedArray(shape, dtype, weak)
        for shape in ((), (1,), (1, 1))
        for dtype in ("float32", "int32", "bool", "bfloat16")
        for weak in (False, True)
    }
    assert len(types) == 24


def test_threads_get_the_same_object():
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(ShapedArray((7, 5, 3, 1), "int8"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8 and len(set(map(id, made))) == 1


def test_what_a_type_knows():
    aval = ShapedArray((2, 0, 3), "float16")
    assert (aval.ndim, aval.size, len(aval)) == (3, 0, 2)
    assert aval.with_shape((4,)) is ShapedArray((4,), "float16")
    assert aval.with_dtype("int8") is ShapedArray((2, 0, 3), "int8")
    assert aval.update(weak_type=True).strip_weak_type() is aval
    assert str(aval) == "ShapedArray(float16[2,0,3])" and aval.str_short() == "f16[2,0,3]"
    with pytest.raises(TypeError, match="unsized"):
        len(ShapedArray((), "int8"))


@pytest.mark.parametrize(
    "value, dtype, weak",
    [
        (True, "bool", False),
        (3, "int32", True),
        (2.5, "float32", True),
        (1j, "complex64", True),
        (np.float64(1), "float64", False),
        (np.array(3, np.int8), "int8", False),
        (jnp.float16(1), "float16", False),
    ],
)
def test_types_of_values(value, dtype, weak):
    aval = aval_of(value)
    assert (aval.shape, aval.dtype, aval.weak_type) == ((), np.dtype(dtype), weak)


def test_values_without_a_type_are_refused():
    for value in ("text", None, [1, 2], object()):
        with pytest.raises(TypeError, match="not an array or a number"):
            aval_of(value)


def test_tangents_of_inexact_values_have_their_type_and_of_others_float0():
    for dtype in ("float16", "float64", "complex64", "bfloat16"):
        aval = ShapedArray((2,), dtype)
        assert tangent_aval(aval) is aval and aval.to_tangent_aval() is aval
    for dtype in ("int32", "bool", "uint8"):
        assert tangent_aval(ShapedArray((2,), dtype)) is ShapedArray((2,), dtypes.float0)


def test_zero_is_the_tangent_of_what_it_is_like():
    assert Zero.like(2.0).aval is ShapedArray((), "float32", True)
    assert Zero.like(jnp.arange(3)).aval.dtype == dtypes.float0
    assert repr(Zero.like(jnp.ones(3))) == "Zero(f32[3])"
