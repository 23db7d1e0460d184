"""Roots of polynomials, polynomials from roots, and fits agree with NumPy in value and with jax in type."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.xla.array import from_numpy
from tests.numpy.agreement import agree, assert_close, values

X = np.array([3.0, 1.0, 2.0, 4.0, -1.0])


def test_poly():
    agree("poly", X)
    agree("poly", np.array([3, 1]))
    agree("poly", X[:3] * 1j, jit=True)
    np.testing.assert_array_equal(jnp.poly(3.0), [1, -3])
    agree("poly", np.array([]))
    matrix = values((3, 3), "float32")
    got = np.asarray(jnp.poly(from_numpy(matrix)))
    assert_close(got.real, np.poly(matrix.astype(np.float64)), "characteristic polynomial", rtol=1e-4)
    with pytest.raises(ValueError, match="square"):
        jnp.poly(np.ones((2, 3)))


def ordered(x):
    return np.sort_complex(np.round(np.asarray(x, np.complex128), 3))


@pytest.mark.parametrize(
    "p",
    ([1, -3, 2], [3.0, 1, 2, 4], [0, 0, 1, 2, 0], [2, 0, 0], [1], [0.0], [], [1j, 2, 3], [0, 5], [1, 0, 1]),
)
def test_roots(p):
    p = np.array(p)
    got = jnp.roots(p)
    assert got.dtype == np.complex64
    np.testing.assert_allclose(ordered(got), ordered(np.roots(p)), atol=2e-3)


def test_roots_under_jit():
    program = purax.jit(lambda p: jnp.roots(p, strip_zeros=False))
    np.testing.assert_allclose(ordered(program(np.array([1.0, -3, 2]))), [1, 2], atol=1e-3)
    found = np.asarray(program(np.array([0.0, 0, 1, 2, 0])))
    np.testing.assert_allclose(ordered(found[:2]), [-2, 0], atol=1e-3)
    assert np.isnan(found[2:]).all()
    with pytest.raises(TypeError, match="strip_zeros=False"):
        purax.jit(jnp.roots)(np.array([1.0, -3, 2]))
    with pytest.raises(ValueError, match="rank-1"):
        jnp.roots(np.ones((2, 2)))


@pytest.mark.parametrize("deg", (0, 1, 2, 3))
def test_polyfit(deg):
    x, y = values((12,), "float32"), values((12,), "float32", 1)
    weights = np.abs(values((12,), "float32", 2)) + 0.1
    for columns in (y, np.stack([y, y**2], 1)):
        for options in ({}, {"w": weights}, {"cov": True}, {"cov": "unscaled", "w": weights}):
            agree("polyfit", x, columns, deg, **options, rtol=2e-3)
    fitted, residuals, rank, singular, rcond = jnp.polyfit(x, y, deg, full=True)
    expected = np.polyfit(x.astype(np.float64), y, deg, full=True)
    assert_close(residuals, expected[1], "residuals", rtol=1e-4)
    assert int(rank) == expected[2] and 0 < rcond < 1e-4
    assert_close(singular, expected[3], "singular values", rtol=1e-5)


def test_polyfit_of_lines_and_integers():
    x = np.arange(6)
    assert_close(jnp.polyfit(x, 3 * x - 2, 1), [3, -2], "a line", rtol=1e-5)
    compiled = purax.jit(lambda x, y: jnp.polyfit(x, y, 1))(x, 3 * x - 2)
    assert_close(compiled, [3, -2], "a compiled line", rtol=1e-5)
    slope = purax.grad(lambda y: jnp.polyfit(from_numpy(x.astype(np.float32)), y, 1)[0])
    expected = (x - x.mean()) / ((x - x.mean()) ** 2).sum()  # the slope is linear in y
    assert_close(slope(from_numpy((3 * x).astype(np.float32))), expected, "gradient", rtol=1e-4)


def test_polyfit_errors():
    with pytest.raises(ValueError, match="deg >= 0"):
        jnp.polyfit(X, X, -1)
    with pytest.raises(TypeError, match="same length"):
        jnp.polyfit(X, X[:2], 1)
    with pytest.raises(TypeError, match="not empty"):
        jnp.polyfit(X[:0], X[:0], 1)
    with pytest.raises(TypeError, match="expected w"):
        jnp.polyfit(X, X, 1, w=X[:2])
    with pytest.raises(ValueError, match="must exceed"):
        jnp.polyfit(X[:2], X[:2], 1, cov=True)
