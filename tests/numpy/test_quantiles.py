"""Quantiles by all methods, and running sums, agree with NumPy in value and with jax in type."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.numpy._sorting.quantiles import METHODS
from purax.xla.array import from_numpy
from tests.numpy.agreement import agree, assert_close, values

KNOWN_TO_JAX = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
NANS = np.array([[1, np.nan, 3, 2], [np.nan] * 4, [4, 3, 2, 1]], np.float32)


@pytest.mark.parametrize("dtype", ("bool", "int8", "uint32", "float16", "bfloat16", "float32"))
def test_median(dtype):
    for shape, axis in (
        ((), None),
        ((4,), None),
        ((5,), 0),
        ((3, 4), 1),
        ((3, 4), (0, 1)),
        ((2, 3, 4), (2, 0)),
    ):
        x = values(shape, dtype)
        if dtype == "bool":
            agree("median", x, axis=axis, oracle="jax")
        else:
            agree("median", x, axis=axis, keepdims=axis == 1)


@pytest.mark.parametrize("method", METHODS)
def test_methods(method):
    x = values((3, 7), "float32")
    for q in (0.0, 0.3, 0.5, 1.0, np.array([0.1, 0.25, 0.6])):
        for axis in (None, 0, 1):
            agree("quantile", x, q, axis=axis, method=method, types=method in KNOWN_TO_JAX)
    agree("nanquantile", NANS, 0.5, axis=1, method=method, types=method in KNOWN_TO_JAX)
    agree("nanquantile", NANS, np.array([0.1, 0.8]), axis=0, method=method, types=method in KNOWN_TO_JAX)


@pytest.mark.parametrize("method", METHODS)
def test_methods_under_jit(method):
    x, q = values((9,), "float32"), np.array([0.0, 0.125, 0.3, 0.5, 0.8, 1.0], np.float32)
    got = purax.jit(lambda x, q: jnp.quantile(x, q, method=method))(from_numpy(x), from_numpy(q))
    assert_close(got, np.quantile(x.astype(np.float64), q.astype(np.float64), method=method), method)


@pytest.mark.parametrize("dtype", ("int32", "float16", "float32"))
def test_quantile_dtypes_and_axes(dtype):
    x = values((2, 3, 4), dtype)
    agree("quantile", x, 0.3, axis=(0, 2), keepdims=True)
    agree("quantile", x, np.array([0.3, 0.9]), axis=-1, keepdims=True)
    agree("percentile", x, np.array([30, 90]), axis=0)
    agree("percentile", x, 30)
    agree("nanpercentile", x, 30, axis=1)
    agree("nanmedian", x, axis=1, keepdims=True)


def test_special_values():
    for x in ([1, np.nan], [1, 2, np.inf], [-np.inf, 2, np.inf], [np.inf, np.inf], [-np.inf, -np.inf, 0]):
        agree("median", np.array(x, np.float32))
        agree("quantile", np.array(x, np.float32), 0.25, oracle="jax")
    agree("nanmedian", NANS, axis=1)
    agree("nanmedian", NANS)
    assert np.isnan(float(jnp.median(from_numpy(np.ones(0, np.float32)))))
    assert np.isnan(float(jnp.quantile(from_numpy(np.ones(0, np.float32)), 0.5)))


@pytest.mark.parametrize("kind", ["distinct", "ties", "nan", "infinite", "zeros"])
def test_long_rows_are_not_sorted_but_searched(kind):
    x = np.random.default_rng(3).normal(size=(2, 4099)).astype(np.float32)
    if kind == "ties":
        x = np.round(x)
    elif kind == "nan":
        x[0, 5] = np.nan
    elif kind == "infinite":
        x[0, :2100], x[1, :9] = np.inf, -np.inf
    elif kind == "zeros":
        x[:, ::2] = -0.0
        x[:, 1::4] = 0.0
    median = purax.jit(lambda v: jnp.median(v, axis=1))(from_numpy(x))
    np.testing.assert_array_equal(median, np.median(x, axis=1))
    if kind != "infinite":
        got = purax.jit(lambda v: jnp.quantile(v, np.array([0.0, 0.3, 1.0]), axis=1))(from_numpy(x))
        assert_close(got, np.quantile(x.astype(np.float64), [0, 0.3, 1], axis=1), kind)
    if kind == "distinct":
        gradient = np.asarray(purax.jit(purax.grad(lambda v: jnp.median(v[0])))(from_numpy(x)))
        assert gradient.sum() == 1 and x[gradient == 1] == np.median(x[0])


def test_weights():
    x, w = values((6,), "float32"), np.array([1, 0, 2, 1, 0.5, 3])
    for q in (0.0, 0.2, 0.5, 1.0, np.array([0.3, 0.7])):
        agree("quantile", x, q, method="inverted_cdf", weights=w)
    agree("quantile", values((2, 6), "float32"), 0.4, axis=1, method="inverted_cdf", weights=w)
    with pytest.raises(NotImplementedError, match="does not take weights"):
        jnp.quantile(from_numpy(x), 0.5, weights=from_numpy(w))
    with pytest.raises(ValueError, match="weights of shape"):
        jnp.quantile(from_numpy(x), 0.5, method="inverted_cdf", weights=from_numpy(w[:3]))


def test_quantile_errors():
    x = from_numpy(np.ones(3, np.float32))
    with pytest.raises(ValueError, match=r"range \[0, 1\]"):
        jnp.quantile(x, 1.5)
    with pytest.raises(ValueError, match=r"range \[0, 100\]"):
        jnp.percentile(x, -1)
    with pytest.raises(ValueError, match="method can only be"):
        jnp.quantile(x, 0.5, method="best")
    with pytest.raises(ValueError, match="complex"):
        jnp.median(from_numpy(np.ones(3, np.complex64)))
    with pytest.raises(ValueError, match="overwrite_input"):
        jnp.median(x, overwrite_input=True)
    with pytest.raises(ValueError, match="scalar or a vector"):
        jnp.quantile(x, from_numpy(np.ones((1, 2), np.float32)))


def test_median_gradient_is_at_the_middle():
    x = from_numpy(np.array([3.0, 1.0, 2.0, 5.0], np.float32))
    np.testing.assert_array_equal(purax.grad(jnp.median)(x), [0.5, 0, 0.5, 0])
    np.testing.assert_array_equal(purax.grad(lambda v: jnp.quantile(v, 1.0))(x), [0, 0, 0, 1])


# --- running sums

RUNNING = ("cumsum", "cumprod", "nancumsum", "nancumprod")


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("dtype", ("bool", "int8", "uint8", "int32", "float16", "float32", "complex64"))
def test_running_sums(name, dtype):
    for shape, axis in (
        ((), None),
        ((4,), None),
        ((2, 3), None),
        ((2, 3), 0),
        ((2, 3), -1),
        ((0, 3), 0),
        ((2, 0), 0),
    ):
        x = values(shape, dtype, special=name.startswith("nan") and dtype == "float32")
        if np.dtype(dtype).kind in "iu":
            x = np.clip(x, 0, 3)
        agree(name, x, axis=axis, jit=shape == (2, 3) and axis == 0 and dtype == "float32")


def test_running_sums_as_other_dtypes():
    agree("cumsum", values((2, 3), "float16"), axis=1, dtype="float32")
    agree("cumsum", np.array([1, 2, 3]), dtype="int8")
    agree("cumsum", np.array([True, False, True]), dtype=bool)
    assert jnp.cumsum(from_numpy(np.ones(3, np.int32)), dtype="int64").dtype == np.int64


@pytest.mark.parametrize("name", ("cumulative_sum", "cumulative_prod"))
@pytest.mark.parametrize("dtype", ("bool", "int8", "uint8", "int32", "float32"))
def test_cumulative_functions_of_the_standard(name, dtype):
    """Narrow integers become the default ones, as the standard says; jax's products keep them."""
    types = not (name == "cumulative_prod" and dtype.endswith("int8"))
    for initial in (False, True):
        agree(
            name,
            values((4,), dtype) // 20 if dtype != "bool" else values((4,), dtype),
            include_initial=initial,
            types=types,
        )
        agree(
            name,
            values((2, 3), dtype) // 20 if dtype != "bool" else values((2, 3), dtype),
            axis=0,
            include_initial=initial,
            types=types,
        )
    wide = np.uint32 if dtype == "uint8" else np.float32 if dtype == "float32" else np.int32
    assert getattr(jnp, name)(from_numpy(values((4,), dtype))).dtype == wide
    with pytest.raises(ValueError, match="rank 2"):
        getattr(jnp, name)(from_numpy(values((2, 3), dtype)))
    with pytest.raises(ValueError, match="non-scalar"):
        getattr(jnp, name)(1.0)


@pytest.mark.parametrize("dtype", ("bool", "int8", "float32", "complex64"))
def test_trace(dtype):
    for offset in (-3, -1, 0, 1, 5):
        agree("trace", values((3, 4), dtype), offset=offset)
    agree("trace", values((2, 3, 4), dtype), axis1=-1, axis2=0)
    agree("trace", values((3, 3), dtype), dtype="complex64", rtol=1e-5)
