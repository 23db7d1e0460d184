"""Differences, interpolation, histograms, polynomials, windows, convolution, bits and `vectorize` agree with NumPy in
value and with jax in type.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.xla.array import from_numpy
from tests.numpy.agreement import agree, values

X = np.array([3, 1, 2, 4])
F = np.array([3.0, 1.0, 2.0, 4.0])
M = np.array([[3, 1, 2], [1, 5, 4]])


# --- differences


@pytest.mark.parametrize("dtype", ("bool", "int8", "uint8", "int32", "float16", "float32", "complex64"))
def test_diff(dtype):
    for shape, axis in (((4,), 0), ((2, 3), 0), ((2, 3), -1), ((0,), 0), ((1,), 0), ((2, 0), 0)):
        for n in (0, 1, 2, 5):
            agree("diff", values(shape, dtype), n, axis)
    agree(
        "diff",
        values((2, 3), dtype),
        axis=0,
        prepend=values((1, 3), dtype, 1),
        append=values((2, 3), dtype, 2),
    )
    agree("ediff1d", values((2, 3), dtype).astype("int32" if dtype == "bool" else dtype))


def test_more_differences():
    agree("diff", X, prepend=0, append=np.array([7, 8]), jit=True)
    agree("diff", X, prepend=0.5)
    agree("ediff1d", M, to_end=np.array([1, 2]), to_begin=9)
    with pytest.raises(ValueError, match="non-negative"):
        jnp.diff(X, -1)
    with pytest.raises(ValueError, match="at least one dimensional"):
        jnp.diff(1)
    with pytest.raises(TypeError, match="to_begin of dtype float32"):
        jnp.ediff1d(X, to_begin=0.5)


def test_gradient():
    agree("gradient", X)
    agree("gradient", F, 2.0, jit=True)
    agree("gradient", F, np.array([0.0, 1, 3, 4]), jit=True)
    agree("gradient", M.astype(float))
    agree("gradient", M.astype(float), axis=1)
    agree("gradient", M.astype(float), 1, np.array([0.0, 1, 3]))
    agree("gradient", M.astype(float), 0.5, axis=(0, 1))
    agree("gradient", values((4, 5), "complex64"), axis=0)
    agree("gradient", F, edge_order=2, types=False)
    agree("gradient", F, np.array([0.0, 1, 3, 4]), edge_order=2, types=False, rtol=1e-5)
    agree("gradient", F[:2])
    agree("gradient", F[:2], np.array([0.0, 3.0]))
    with pytest.raises(ValueError, match="at least 2 elements"):
        jnp.gradient(F[:1])
    with pytest.raises(TypeError, match="spacing arguments 2"):
        jnp.gradient(F, 1, 2)
    with pytest.raises(ValueError, match="4 places"):
        jnp.gradient(F, np.arange(3.0))


def test_trapezoid():
    agree("trapezoid", X)
    agree("trapezoid", F, dx=0.5, jit=True)
    agree("trapezoid", M, axis=0)
    agree("trapezoid", F, np.array([0, 1, 3, 4]))
    agree("trapezoid", M, np.array([0, 1, 3]))
    agree("trapezoid", M, M, axis=0)
    agree("trapezoid", F.astype(np.float16))
    agree("trapezoid", F[:1])


def test_unwrap():
    p = np.array([0, 3.0, 7, 1, 9, -8, 3.2])
    agree("unwrap", p, jit=True, rtol=1e-5)
    agree("unwrap", p[:0], jit=True)
    agree("unwrap", p.astype(int), rtol=1e-5)
    agree("unwrap", p.astype(int), period=4)
    agree("unwrap", p.astype(int), period=5)
    agree("unwrap", p, discont=5, rtol=1e-5)
    agree("unwrap", p.reshape(1, 7), axis=0)
    agree("unwrap", values((3, 4), "float32") * 5, axis=0, rtol=1e-5)
    agree("unwrap", np.array([1, 2]), period=3.0)


# --- interpolation


def test_interp():
    xp, fp = np.array([1.0, 2, 3, 5]), np.array([10.0, 20, 40, 0])
    x = np.array([0.0, 1, 1.5, 2.25, 3, 4, 5, 9, np.nan])
    agree("interp", x, xp, fp, jit=True)
    agree("interp", x, xp, fp, left=-1, right=-2)
    agree("interp", x[:-1], xp, fp, period=2.5, rtol=1e-5, jit=True)
    agree("interp", x[:-1], xp[[2, 0, 3, 1]], fp, period=-7.5, rtol=1e-5)
    agree("interp", x, xp, fp * 1j)
    agree("interp", 2, np.arange(4), X)
    agree("interp", x, xp[:1], fp[:1])
    agree("interp", M, np.arange(4), X)
    extrapolated = np.array([0.0, 160.0], np.float32)
    ends = {"left": "extrapolate", "right": "extrapolate"}
    got = jnp.interp(np.array([0.0, 9.0]), np.array([1.0, 2, 3]), np.array([10.0, 20, 40]), **ends)
    np.testing.assert_allclose(got, extrapolated)
    with pytest.raises(ValueError, match="equal size"):
        jnp.interp(F, M, M)
    with pytest.raises(ValueError, match="extrapolate"):
        jnp.interp(F, F, F, left="nearest")
    with pytest.raises(ValueError, match="other than 0"):
        jnp.interp(F, F, F, period=0)


def test_interp_gradient():
    xp, fp = from_numpy(np.array([0.0, 1, 3], np.float32)), from_numpy(np.array([0.0, 10, 0], np.float32))
    slope = purax.vmap(purax.grad(lambda x: jnp.interp(x, xp, fp)))(
        from_numpy(np.array([0.5, 2.0, 7.0], np.float32))
    )
    np.testing.assert_allclose(slope, [10, -5, 0])


# --- histograms


@pytest.mark.parametrize("dtype", ("int32", "float32", "float16"))
def test_histogram(dtype):
    x = np.round(values((3, 20), "float32") * 4).astype(dtype)
    for options in ({}, {"bins": 3}, {"bins": np.array([-9, -2, 0.5, 7])}, {"bins": 4, "range": (-5, 5)}):
        if dtype != "float16":
            agree("histogram", x, **options, types=False, rtol=1e-5)
        agree("histogram_bin_edges", x, **options)
        weights = values((3, 20), "float32", 1)
        agree(
            "histogram",
            x.astype(np.float32),
            **options,
            weights=weights,
            density=bool(options),
            types=False,
            rtol=2e-5,
        )
    assert jnp.histogram(from_numpy(x))[0].dtype == ("float32" if dtype == "int32" else dtype)


def test_more_histograms():
    agree("histogram", F, bins=3, jit=True)
    agree("histogram", np.ones(3), bins=2, types=False)
    agree("histogram_bin_edges", X, bins=3, range=(2, 2))
    agree("histogram_bin_edges", np.array([]), bins=2, types=False)
    agree("histogram_bin_edges", np.arange(50.0), bins="auto", types=False)
    x, y = values((30,), "float32"), values((30,), "float32", 1)
    agree("histogram2d", x, y, bins=3, types=False, jit=True)
    agree("histogram2d", x, y, bins=np.array([-5.0, 0, 3]), types=False)
    agree(
        "histogram2d",
        x,
        y,
        bins=[2, np.array([0.0, 3, 5])],
        density=True,
        weights=np.abs(x),
        types=False,
        rtol=1e-5,
    )
    sample = np.stack([x, y, x * y], 1)
    agree("histogramdd", sample, bins=[2, 3, 4], types=False)
    agree("histogramdd", sample, bins=2, range=[(0, 5), None, (-1, 1)], density=True, types=False, rtol=1e-5)
    with pytest.raises(ValueError, match="increase monotonically"):
        jnp.histogram(F, bins=np.array([3, 1]))
    with pytest.raises(ValueError, match="lowest, highest"):
        jnp.histogram(F, range=(3, 1))
    with pytest.raises(ValueError, match="weights must have the shape"):
        jnp.histogram(F, weights=F[:2])
    with pytest.raises(ValueError, match="points as rows"):
        jnp.histogramdd(F)


# --- polynomials


def test_polynomials():
    for name in ("polyadd", "polysub", "polymul", "polydiv"):
        for left, right in ((X, X[:2]), (F[:2], X), (X, F), (X * 1j, F[:3])):
            if name == "polydiv":
                continue
            agree(name, left, right, rtol=1e-5)
    agree("polymul", np.array([0, 0, 1]), X, trim_leading_zeros=True, types=False, numpy_kwargs={})
    agree("polymul", X, X[:2], jit=True)
    for m in (0, 1, 2, 4, 9):
        agree("polyder", X, m)
    agree("polyint", X)
    agree("polyint", X, 2, k=np.array([1, 2]))
    agree("polyint", X, 3, k=2)
    agree("polyint", X, 0)
    agree("polyint", X * 1j, 2, jit=True)
    for p, x in ((X, 2), (X, F), (F, M), (np.array([]), 2.0), (np.arange(40.0) / 40, F / 5), (X * 1j, F)):
        agree("polyval", p, x, rtol=1e-5, jit=np.size(p) != 0)
    for x in (0.5, F[: M.shape[1]], F[:, None]):  # several polynomials at once
        agree("polyval", M, x, rtol=1e-5, jit=True)
    with pytest.raises(ValueError, match="vector of coefficients"):
        jnp.polyadd(M, X)
    with pytest.raises(ValueError, match="negative"):
        jnp.polyder(X, -1)
    with pytest.raises(ValueError, match="m=2 numbers"):
        jnp.polyint(X, 2, k=np.arange(3))


def test_polynomial_division():
    for u, v in ((F, F[:2]), (np.array([1.0, -3, 2]), np.array([1.0, -1])), (F[:1], F), (F * 1j, F[:3])):
        quotient, rest = jnp.polydiv(u, v)
        again = jnp.polyadd(jnp.polymul(quotient, v), rest)
        np.testing.assert_allclose(np.asarray(again)[-len(u) :], u, atol=1e-5)
        expected = np.polydiv(u, v)
        np.testing.assert_allclose(quotient, expected[0], atol=1e-5)
        np.testing.assert_allclose(np.asarray(rest)[len(rest) - len(expected[1]) :], expected[1], atol=1e-5)
    assert jnp.polydiv(np.array([1.0, -3, 2]), np.array([1.0, -1]), trim_leading_zeros=True)[1].shape == (0,)


# --- windows


@pytest.mark.parametrize("name", ("hanning", "hamming", "bartlett", "blackman"))
def test_windows(name):
    for length in (0, 1, 2, 5, 12):
        agree(name, length)
    agree(name, 2.0)
    cut = getattr(jnp, name)(5.5)  # to an integer number of points, unlike NumPy's
    assert cut.shape == getattr(jax.numpy, name)(5.5).shape
    np.testing.assert_array_equal(cut, getattr(jnp, name)(5))
    for length in ("2", None, [2]):
        with pytest.raises(TypeError, match="known integer"):
            getattr(jnp, name)(length)


def test_kaiser_and_bessel():
    for length in (0, 1, 2, 7):
        agree("kaiser", length, 3.5)
    got = purax.jit(lambda beta: jnp.kaiser(7, beta))(3.5)
    np.testing.assert_allclose(got, np.kaiser(7, 3.5), rtol=1e-6)
    agree("i0", np.linspace(-20, 20, 41), jit=True)
    agree("i0", np.arange(4))
    with pytest.raises(ValueError, match="real numbers"):
        jnp.i0(1j)


# --- convolution


@pytest.mark.parametrize("mode", ("full", "same", "valid"))
@pytest.mark.parametrize("name", ("convolve", "correlate"))
def test_convolution(name, mode):
    for left, right in ((5, 5), (6, 2), (6, 3), (2, 6), (3, 6), (1, 4), (4, 1)):
        for dtype in ("int32", "float32", "complex64"):
            x, y = values((left,), dtype), values((right,), dtype, 1)
            agree(name, x, y, mode=mode, rtol=1e-5, jit=dtype == "complex64" and left in (6, 3))
    agree(name, values((5,), "float16"), values((2,), "float16"), mode=mode)
    agree(name, values((5,), "bool"), values((2,), "int8"), mode=mode)


def test_convolution_errors_and_dtypes():
    agree(
        "convolve",
        np.ones(3, np.float16),
        np.ones(2, np.float16),
        preferred_element_type="float32",
        numpy_kwargs={},
    )
    with pytest.raises(ValueError, match="1-dimensional"):
        jnp.convolve(M, X)
    with pytest.raises(ValueError, match="cannot be empty"):
        jnp.convolve(X, X[:0])
    with pytest.raises(ValueError, match="mode must be"):
        jnp.correlate(X, X, mode="most")


# --- bits


@pytest.mark.parametrize("bitorder", ("big", "little"))
def test_bits(bitorder):
    for shape, axis in (((3,), None), ((16,), 0), ((2, 9), 1), ((9, 2), 0), ((2, 3), None), ((0,), None)):
        agree("packbits", values(shape, "bool"), axis=axis, bitorder=bitorder, jit=shape == (9, 2))
        x = values(shape, "uint8")
        for count in (None, 3, -3, 40):
            if count is not None and not x.size:
                continue  # NumPy returns uninitialized memory
            agree(
                "unpackbits", x, axis=axis, count=count, bitorder=bitorder, jit=shape == (9, 2) and count == 3
            )
    agree("unpackbits", values((0,), "uint8"), count=3, bitorder=bitorder, expected=[np.zeros(3)])
    agree("packbits", X)
    with pytest.raises(TypeError, match="integers or truth values"):
        jnp.packbits(F)
    with pytest.raises(TypeError, match="unsigned bytes"):
        jnp.unpackbits(X)


# --- applying functions


def test_apply_along_and_over_axes():
    x = values((2, 3, 4), "float32")
    for axis in (0, 1, 2, -1):
        for function in (lambda v: v.sum(), lambda v: v[::-1], lambda v: v[:, None] * v[None, :]):
            expected = np.apply_along_axis(function, axis, x)
            np.testing.assert_allclose(jnp.apply_along_axis(function, axis, x), expected, rtol=1e-5)
    got = jnp.apply_along_axis(lambda v, k, c=0: v.sum() * k + c, 0, M, 2, c=1)
    np.testing.assert_array_equal(got, M.sum(0) * 2 + 1)
    for axes in ((0, 1), [1], (0, -1)):
        np.testing.assert_array_equal(
            jnp.apply_over_axes(jnp.sum, M, axes), np.apply_over_axes(np.sum, M, axes)
        )
    with pytest.raises(ValueError, match="as many axes or one less"):
        jnp.apply_over_axes(lambda a, i: a.sum(), M, (0,))


def test_vectorize():
    np.testing.assert_array_equal(jnp.vectorize(lambda a, b: a + b)(M, X[:3]), M + X[:3])
    total, first = jnp.vectorize(lambda a, b: (a + b, a))(M, 3)
    np.testing.assert_array_equal(total, M + 3)
    np.testing.assert_array_equal(first, M)
    a, b = values((5, 1, 2, 3), "float32"), values((4, 3), "float32", 1)
    product = jnp.vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")
    np.testing.assert_allclose(
        product(a, b), np.einsum("xyij,yj->xyi", np.broadcast_to(a, (5, 4, 2, 3)), b), rtol=1e-5
    )
    outer = jnp.vectorize(jnp.outer, signature="(n),(m)->(n,m)")
    assert outer(M, np.ones(4)).shape == (2, 3, 4)
    np.testing.assert_array_equal(jnp.vectorize(lambda x, k: x * k, excluded={1})(M, 3), M * 3)
    np.testing.assert_array_equal(jnp.vectorize(lambda x, k=1: x * k, excluded={"k"})(M, k=3), M * 3)
    np.testing.assert_array_equal(jnp.vectorize(lambda x, k=1: x * k)(M, k=X[:3]), M * X[:3])

    def branchy(x: float) -> str:
        assert x.shape == ()
        return jnp.where(x > 2, x, -x)

    np.testing.assert_array_equal(purax.jit(jnp.vectorize(branchy))(M), np.where(M > 2, M, -M))


@pytest.mark.parametrize(
    ("signature", "arguments", "error", "message"),
    [
        ("(n),(n)->()", (M, np.ones(4)), ValueError, "inconsistent size for core dimension 'n': 4 vs 3"),
        ("(n),(n)->()", (M, 3.0), ValueError, "not have enough dimensions"),
        ("(n),(n)->(n)", (M, M), ValueError, "does not match core dimensions"),
        ("(n),(n)->(),()", (M, M), TypeError, "expected 2, got 1"),
        ("(n)->()", (M, M), TypeError, "expected 1, got 2"),
    ],
)
def test_vectorize_errors(signature, arguments, error, message):
    with pytest.raises(error, match=message):
        jnp.vectorize(jnp.dot, signature=signature)(*arguments)


def test_bad_signatures():
    for signature in ("(n->(n)", "n->n", "(n)", "(n)->", "(n),->()"):
        with pytest.raises(ValueError, match="not a valid signature"):
            jnp.vectorize(jnp.dot, signature=signature)
