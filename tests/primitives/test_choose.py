"""Choosing between two arrays on the host, bit by bit: what `np.where` gives, with the part in C and without."""

from __future__ import annotations

import numpy as np
import pytest

import purax.numpy as jnp
from purax.primitives.elementwise import logic
from purax.primitives.elementwise.logic import choose

DTYPES = ("bool", "int8", "uint16", "float16", "int32", "float32", "float64", "complex64", "complex128")


@pytest.fixture(params=["installed", "python"])
def version(request, monkeypatch):
    if request.param == "python":
        monkeypatch.setattr(logic, "native", None)


@pytest.mark.parametrize("dtype", [*DTYPES, jnp.bfloat16], ids=str)
@pytest.mark.parametrize("size", [0, 5, 2048, 20_001])
def test_it_is_where(dtype, size, version):
    random = np.random.default_rng(size)
    x, y = (random.integers(-3, 4, size).astype(dtype) for _ in range(2))
    if np.issubdtype(x.dtype, np.inexact):
        x[::7], y[::5], y[::11] = np.nan, np.inf, -0.0
    mask = random.integers(0, 2, size).astype(bool)
    result = choose(mask, x, y)
    assert result.dtype == x.dtype
    assert result.tobytes() == np.where(mask, x, y).tobytes()  # NaN and −0 keep their bits


def test_arrays_that_do_not_lie_in_order(version):
    x = np.arange(120 * 80, dtype=np.float32).reshape(120, 80)
    mask = x % 3 == 0
    for cut in (np.s_[::2, ::3], np.s_[::-1], np.s_[:, 1:]):
        np.testing.assert_array_equal(choose(mask[cut], x[cut], -x[cut]), np.where(mask, x, -x)[cut])
    np.testing.assert_array_equal(choose(mask.T, x.T, -x.T), np.where(mask, x, -x).T)
    np.testing.assert_array_equal(choose(mask, x, np.float32(2)[None, None]), np.where(mask, x, 2))


def test_any_octet_but_zero_is_true(version):
    mask = np.zeros(4096, np.uint8)
    mask[::2], mask[1::4] = 1, 0
    x = np.arange(4096, dtype=np.int32)
    np.testing.assert_array_equal(choose(mask.view(bool), x, -x), np.where(mask, x, -x))
