"""The array API standard beyond elementwise functions: creation, shaping, searching, sorting, sets, statistics,
linear algebra and transforms: shapes, dtypes and values on generated arrays.
"""

from __future__ import annotations

import math

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
    filled,
    ours,
)

REAL = [*INTEGERS, *FLOATS]
both_modes = pytest.mark.parametrize("wide", [False, True])
few = settings(max_examples=40)


@pytest.fixture(autouse=True)
def quietly():
    with np.errstate(all="ignore"):
        yield


def same(result, expected, dtype=None, tolerance=0.0):
    """Equal shapes and values, and the dtype of the expected values, or the one that is given."""
    assert isinstance(result, purax.Array)
    expected = np.asarray(expected)
    assert result.shape == expected.shape
    assert result.dtype == (expected.dtype if dtype is None else dtype)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=tolerance, atol=tolerance)


def axes_of(x):
    return st.none() | st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.none()


# --- creation


@both_modes
def test_filled_arrays(wide):
    with purax.config.override(enable_x64=wide):
        default = defaults()
        for shape in (0, 3, (), (2, 0), (2, 3)):
            for name, value in (("zeros", 0), ("ones", 1)):
                same(getattr(xp, name)(shape), np.full(shape, value), default["real floating"])
                for dtype in ALL:
                    same(getattr(xp, name)(shape, dtype=dtype), np.full(shape, value, dtype))
                    like = getattr(xp, f"{name}_like")
                    same(like(xp.ones(shape, dtype=dtype)), np.full(shape, value, dtype))
                    same(like(xp.ones(shape), dtype=dtype), np.full(shape, value, dtype))
            assert (
                xp.empty(shape).dtype == default["real floating"]
                and xp.empty(shape, dtype="int8").dtype == xp.int8
            )
            assert xp.empty_like(xp.ones(shape, dtype="int8")).dtype == xp.int8
        for value, kind in ((1, "integral"), (1.5, "real floating"), (1j, "complex floating")):
            same(xp.full((2,), value), np.full(2, value), default[kind])
            same(xp.full_like(xp.ones(2, dtype="complex64"), value), np.full(2, value, "complex64"))
            same(xp.asarray(value), np.asarray(value), default[kind])
            same(xp.asarray([[value]]), np.asarray([[value]]), default[kind])
        same(xp.full((2,), True), np.full(2, True))
        same(xp.asarray([True, False]), np.asarray([True, False]))
        same(xp.asarray([1, 2.5]), np.asarray([1, 2.5]), default["real floating"])
        same(xp.asarray([1, 2.5, 1j]), np.asarray([1, 2.5, 1j]), default["complex floating"])
        for n_rows, n_cols, k in ((3, None, 0), (2, 4, 1), (4, 2, -2), (0, 3, 0), (2, 2, 5)):
            same(xp.eye(n_rows, n_cols, k=k), np.eye(n_rows, n_cols, k), default["real floating"])
            same(xp.eye(n_rows, n_cols, k=k, dtype="int8"), np.eye(n_rows, n_cols, k, "int8"))


@both_modes
def test_ranges(wide):
    with purax.config.override(enable_x64=wide):
        default = defaults()
        for arguments in ((5,), (0,), (-3,), (2, 7), (7, 2), (1, 10, 3), (10, 1, -3), (3, 3)):
            same(xp.arange(*arguments), np.arange(*arguments), default["integral"])
            same(xp.arange(*arguments, dtype="float64"), np.arange(*arguments, dtype="float64"))
        same(xp.arange(0.0, 1.0, 0.25), np.arange(0.0, 1.0, 0.25), default["real floating"])
        assert xp.arange(5.0).dtype == default["real floating"]
        for endpoint in (True, False):
            for num in (0, 1, 2, 5):
                expected = np.linspace(-1.0, 2.0, num, endpoint=endpoint)
                same(xp.linspace(-1.0, 2.0, num, endpoint=endpoint), expected, default["real floating"], 1e-6)
        result = xp.linspace(0, 1, 4, dtype="float64")
        assert result.dtype == xp.float64 and result[0] == 0 and result[-1] == 1
        assert xp.linspace(0, 1 + 1j, 3).dtype == default["complex floating"]


def test_asarray_and_copies():
    x = xp.asarray([1, 2], dtype="int16")
    assert xp.asarray(x).dtype == x.dtype and xp.asarray(x, copy=True) is not x
    assert xp.asarray(x, copy=False).tolist() == x.tolist()
    assert xp.asarray(x, dtype="float64").dtype == xp.float64
    for dtype in NUMERIC:
        if dtype not in UNSIGNED:
            assert xp.asarray(-1, dtype=dtype).dtype == dtype
    with pytest.raises(OverflowError):
        xp.asarray(2**70)
    with pytest.raises(OverflowError):
        xp.asarray([300], dtype="int8")


@few
@given(arrays(min_ndim=1, max_ndim=1, max_side=3), st.integers(0, 3), st.sampled_from(["xy", "ij"]))
def test_meshgrid(x, size, indexing):
    y = np.ones(size, x.dtype)
    for result, expected in zip(
        xp.meshgrid(ours(x), ours(y), indexing=indexing), np.meshgrid(x, y, indexing=indexing), strict=True
    ):
        same(result, expected)


@few
@given(arrays(min_ndim=2), st.integers(-4, 4))
def test_triangles(x, k):
    same(xp.tril(ours(x), k=k), np.tril(x, k))
    same(xp.triu(ours(x), k=k), np.triu(x, k))


# --- shaping


@few
@given(arrays(min_ndim=1), st.data())
def test_shaping(x, data):
    a = ours(x)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    same(xp.concat([a, a], axis=axis), np.concatenate([x, x], axis))
    same(xp.concat([a, a], axis=None), np.concatenate([x, x], None))
    same(xp.stack([a, a], axis=axis), np.stack([x, x], axis))
    same(xp.flip(a), np.flip(x))
    same(xp.flip(a, axis=axis), np.flip(x, axis))
    shift = data.draw(st.integers(-5, 5))
    same(xp.roll(a, shift), np.roll(x, shift))
    same(xp.roll(a, shift, axis=axis), np.roll(x, shift, axis))
    same(xp.roll(a, (shift, 1), axis=(axis, 0)), np.roll(x, (shift, 1), (axis, 0)))
    order = tuple(data.draw(st.permutations(range(x.ndim))))
    same(xp.permute_dims(a, order), np.transpose(x, order))
    same(xp.moveaxis(a, axis, 0), np.moveaxis(x, axis, 0))
    same(xp.expand_dims(a, axis=axis), np.expand_dims(x, axis))
    same(xp.expand_dims(a), x[None])
    same(xp.squeeze(xp.expand_dims(a, axis=axis), axis), x)
    same(xp.reshape(a, (-1,)) if x.size else a, x.reshape(-1) if x.size else x)
    same(xp.reshape(a, x.shape[::-1], copy=True), x.reshape(x.shape[::-1]))
    times = data.draw(st.integers(0, 3))
    same(xp.repeat(a, times), np.repeat(x, times))
    same(xp.repeat(a, times, axis=axis), np.repeat(x, times, axis))
    counts = np.arange(x.shape[axis])
    same(xp.repeat(a, ours(counts), axis=axis), np.repeat(x, counts, axis))
    repetitions = tuple(data.draw(st.lists(st.integers(0, 2), max_size=3)))
    same(xp.tile(a, repetitions), np.tile(x, repetitions))
    parts = xp.unstack(a, axis=axis)
    assert isinstance(parts, tuple) and len(parts) == x.shape[axis]
    for i, part in enumerate(parts):
        same(part, np.take(x, i, axis))
    same(xp.broadcast_to(a, (2, *x.shape)), np.broadcast_to(x, (2, *x.shape)))
    first, second = xp.broadcast_arrays(a, xp.ones((2, *x.shape)))
    assert first.shape == second.shape == (2, *x.shape) and first.dtype == a.dtype


def test_joined_arrays_are_promoted():
    a, b = xp.ones(2, dtype="int8"), xp.ones(2, dtype="int16")
    assert xp.concat([a, b]).dtype == xp.stack([a, b]).dtype == xp.int16
    for wrong in (2, -3):
        with pytest.raises((ValueError, IndexError)):
            xp.squeeze(xp.ones((1, 1)), wrong)
    with pytest.raises(ValueError, match="squeeze"):
        xp.squeeze(xp.ones((1, 2)), 1)
    for bad in (-4, 3):
        with pytest.raises((ValueError, IndexError)):
            xp.expand_dims(xp.ones((1, 1)), axis=bad)


# --- indexing, searching, sorting, sets


@few
@given(arrays(min_ndim=1, min_side=1), st.data())
def test_taking(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    places = np.asarray(data.draw(st.lists(st.integers(0, x.shape[axis] - 1), max_size=4)), "int32")
    same(xp.take(ours(x), ours(places), axis=axis), np.take(x, places, axis))
    shape = list(x.shape)
    shape[axis] = 2
    along = np.random.default_rng(0).integers(0, x.shape[axis], shape).astype("int32")
    same(xp.take_along_axis(ours(x), ours(along), axis=axis), np.take_along_axis(x, along, axis))


@both_modes
@few
@given(data=st.data())
def test_searching(wide, data):
    with purax.config.override(enable_x64=wide):
        x = data.draw(arrays(dtypes=tuple(REAL), min_ndim=1, min_side=1))
        index = defaults()["integral"]
        axis = data.draw(axes_of(x))
        keepdims = data.draw(st.booleans())
        a = ours(x)
        same(xp.argmax(a, axis=axis, keepdims=keepdims), np.argmax(x, axis, keepdims=keepdims), index)
        same(xp.argmin(a, axis=axis, keepdims=keepdims), np.argmin(x, axis, keepdims=keepdims), index)
        same(
            xp.count_nonzero(a, axis=axis, keepdims=keepdims),
            np.count_nonzero(x, axis, keepdims=keepdims),
            index,
        )
        for result, expected in zip(xp.nonzero(a), np.nonzero(x), strict=True):
            same(result, expected, index)
        other = data.draw(filled(x.shape, x.dtype.name))
        same(xp.where(a > ours(other), a, ours(other)), np.where(x > other, x, other))
        same(xp.where(a > 0, a, 1), np.where(x > 0, x, np.asarray(1, x.dtype)))
        if x.dtype != "uint64":
            keys = np.sort(x, axis=None)
            for side in ("left", "right"):
                same(xp.searchsorted(ours(keys), a, side=side), np.searchsorted(keys, x, side), index)
            order = np.argsort(x, axis=None, kind="stable").astype("int32")
            flat = x.reshape(-1)
            same(
                xp.searchsorted(ours(flat), a, sorter=ours(order)),
                np.searchsorted(flat, x, sorter=order),
                index,
            )


@both_modes
@few
@given(data=st.data())
def test_sorting(wide, data):
    with purax.config.override(enable_x64=wide):
        x = data.draw(arrays(dtypes=tuple(REAL), min_ndim=1))
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        a = ours(x)
        ascending = np.argsort(x, axis, kind="stable")
        same(xp.sort(a, axis=axis), np.sort(x, axis))
        same(xp.sort(a, axis=axis, stable=False), np.sort(x, axis))
        same(xp.sort(a, axis=axis, descending=True), np.flip(np.sort(x, axis), axis))
        same(xp.argsort(a, axis=axis), ascending, defaults()["integral"])
        # Stable and descending: equal elements keep their order.
        backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
        descending = np.flip(x.shape[axis] - 1 - backwards, axis)
        same(xp.argsort(a, axis=axis, descending=True), descending, defaults()["integral"])
        loose = xp.argsort(a, axis=axis, descending=True, stable=False)
        np.testing.assert_array_equal(
            np.take_along_axis(x, np.asarray(loose), axis), np.flip(np.sort(x, axis), axis)
        )


@both_modes
@few
@given(data=st.data())
def test_sets(wide, data):
    with purax.config.override(enable_x64=wide):
        x = data.draw(arrays(special=True))
        a, index = ours(x), defaults()["integral"]
        everything, counts = xp.unique_all(a), xp.unique_counts(a)
        inverse, values = xp.unique_inverse(a), xp.unique_values(a)
        assert (everything._fields, counts._fields, inverse._fields) == (
            ("values", "indices", "inverse_indices", "counts"), ("values", "counts"), ("values", "inverse_indices"),
        )  # fmt: skip
        for result in (everything.values, counts.values, inverse.values, values):
            assert result.dtype == a.dtype and result.ndim == 1
        assert everything.inverse_indices.shape == inverse.inverse_indices.shape == x.shape
        for result in (everything.indices, everything.inverse_indices, everything.counts, counts.counts):
            assert result.dtype == index
        same(everything.values[everything.inverse_indices], x)
        same(xp.reshape(a, (-1,))[everything.indices], np.asarray(everything.values))
        assert int(xp.sum(everything.counts)) == int(xp.sum(counts.counts)) == x.size
        is_nan = np.isnan(x) if x.dtype.kind in "fc" else np.zeros(x.shape, bool)
        assert values.size == is_nan.sum() + len(set(x[~is_nan].tolist()))  # NaN are unlike each other


# --- statistics and truth


@both_modes
@few
@given(data=st.data())
def test_sums_and_products(wide, data):
    with purax.config.override(enable_x64=wide):
        x = data.draw(arrays(dtypes=tuple(NUMERIC), max_side=3))
        default = defaults()
        dtype = x.dtype
        if dtype.name in INTEGERS and dtype.itemsize < default["integral"].itemsize:
            dtype = default["integral"] if dtype.name in SIGNED else np.dtype(f"u{default['integral'].name}")
        axis, keepdims = data.draw(axes_of(x)), data.draw(st.booleans())
        a = ours(x)
        for name in ("sum", "prod"):
            expected = getattr(np, name)(x, axis, keepdims=keepdims, dtype=dtype)
            same(getattr(xp, name)(a, axis=axis, keepdims=keepdims), expected, dtype, 1e-5)
            wider = "complex128" if x.dtype.kind == "c" else "float64"
            expected = getattr(np, name)(x, axis, dtype=wider)
            same(getattr(xp, name)(a, axis=axis, dtype=wider), expected, tolerance=1e-12)
        several = tuple(range(x.ndim))[:2]
        same(xp.sum(a, axis=several), np.sum(x, several, dtype=dtype), dtype, 1e-5)
        if x.ndim:
            along = data.draw(st.integers(-x.ndim, x.ndim - 1))
            for name, ufunc in (("cumulative_sum", np.cumsum), ("cumulative_prod", np.cumprod)):
                expected = ufunc(x, along, dtype)
                function = getattr(xp, name)
                same(function(a, axis=along), expected, dtype, 1e-5)
                start = np.full_like(
                    np.take(expected, [0] if x.shape[along] else [], along), name == "cumulative_prod"
                )
                if x.shape[along]:
                    same(
                        function(a, axis=along, include_initial=True),
                        np.concatenate([start, expected], along),
                        dtype,
                        1e-5,
                    )
                same(function(a, axis=along, dtype=wider), ufunc(x, along, wider), tolerance=1e-12)


@few
@given(arrays(dtypes=tuple(REAL), min_side=1), st.booleans(), st.data())
def test_extremes_means_and_deviations(x, keepdims, data):
    axis = data.draw(axes_of(x))
    a = ours(x)
    for name in ("max", "min"):
        same(
            getattr(xp, name)(a, axis=axis, keepdims=keepdims), getattr(np, name)(x, axis, keepdims=keepdims)
        )
    if x.dtype.kind == "f":
        same(xp.mean(a, axis=axis, keepdims=keepdims), np.mean(x, axis, keepdims=keepdims), tolerance=1e-5)
        count = x.size if axis is None else x.shape[axis]
        for correction in (0, 1, 0.5) if count > 1 else (0,):
            for name in ("var", "std"):
                expected = getattr(np, name)(x, axis, ddof=correction, keepdims=keepdims)
                result = getattr(xp, name)(a, axis=axis, correction=correction, keepdims=keepdims)
                same(result, expected, x.dtype, 1e-5)


def test_statistics_of_special_values():
    assert np.isnan(xp.max(xp.asarray([1.0, np.nan]))) and np.isnan(xp.min(xp.asarray([np.nan, 1.0])))
    assert xp.sum(xp.asarray([])).item() == 0 and xp.prod(xp.asarray([])).item() == 1
    with pytest.warns(RuntimeWarning) if False else np.errstate(all="ignore"):
        assert np.isnan(xp.mean(xp.asarray([])))
    for dtype in COMPLEX:
        assert xp.mean(xp.asarray([1j, 3], dtype=dtype)).dtype == dtype


@few
@given(arrays(), st.booleans(), st.data())
def test_truth(x, keepdims, data):
    axis = data.draw(axes_of(x))
    for name in ("all", "any"):
        same(
            getattr(xp, name)(ours(x), axis=axis, keepdims=keepdims),
            getattr(np, name)(x, axis, keepdims=keepdims),
        )
    several = tuple(range(x.ndim))
    same(xp.all(ours(x), axis=several), np.all(x, several))


@few
@given(arrays(dtypes=tuple(NUMERIC), min_ndim=1, max_ndim=2, min_side=1), st.data())
def test_differences(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = data.draw(st.integers(0, 2))
    same(xp.diff(ours(x), axis=axis, n=n), np.diff(x, n, axis))
    same(xp.diff(ours(x), axis=axis, prepend=ours(x)), np.diff(x, 1, axis, x))
    same(xp.diff(ours(x), axis=axis, append=ours(x)), np.diff(x, 1, axis, append=x))


# --- linear algebra and transforms


def matrices(dtypes=(*FLOATS, *COMPLEX), rows=(1, 4), square=False):
    """A stack of well-conditioned matrices."""

    @st.composite
    def draw_one(draw):
        stack = tuple(draw(st.lists(st.integers(0, 2), max_size=2)))
        m = draw(st.integers(*rows))
        n = m if square else draw(st.integers(*rows))
        dtype = draw(st.sampled_from(dtypes))
        generator = np.random.default_rng(draw(st.integers(0, 99)))
        x = generator.normal(size=(*stack, m, n)) + 1j * generator.normal(size=(*stack, m, n))
        x = x + 3 * np.eye(m, n)
        return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)

    return draw_one()


@few
@given(matrices(), st.data())
def test_products(x, data):
    a = ours(x)
    close = 1e-4
    other = np.swapaxes(x, -1, -2)
    same(xp.matmul(a, ours(other)), x @ other, tolerance=close)
    same(
        a @ ours(other[..., 0]) if x.ndim == 2 else a @ ours(other),
        x @ (other[..., 0] if x.ndim == 2 else other),
        tolerance=close,
    )
    same(xp.matrix_transpose(a), other)
    same(xp.linalg.matrix_transpose(a), other)
    axis = data.draw(st.integers(-x.ndim, -1))
    same(xp.vecdot(a, a, axis=axis), np.sum(np.conj(x) * x, axis), tolerance=close)
    same(xp.linalg.vecdot(a, a, axis=axis), np.sum(np.conj(x) * x, axis), tolerance=close)
    if x.ndim == 2:
        same(xp.tensordot(a, ours(other), axes=1), np.tensordot(x, other, 1), tolerance=close)
        same(xp.tensordot(a, a, axes=2), np.tensordot(x, x, 2), tolerance=close)
        same(xp.linalg.tensordot(a, a, axes=((0,), (0,))), np.tensordot(x, x, ((0,), (0,))), tolerance=close)
        same(xp.linalg.outer(a[0], a[0]), np.outer(x[0], x[0]), tolerance=close)
    same(xp.linalg.diagonal(a, offset=1), np.diagonal(x, 1, -2, -1))
    same(xp.linalg.trace(a), np.trace(x, 0, -2, -1), tolerance=close)
    same(
        xp.linalg.trace(a, offset=-1, dtype="complex128"),
        np.trace(x, -1, -2, -1, "complex128"),
        tolerance=close,
    )
    for order in (2, 1, 0, -1, 3, math.inf, -math.inf):
        expected = np.linalg.vector_norm(x, axis=-1, ord=order)
        same(xp.linalg.vector_norm(a, axis=-1, ord=order), expected, tolerance=close)
    same(xp.linalg.vector_norm(a, keepdims=True), np.linalg.vector_norm(x, keepdims=True), tolerance=close)
    for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        same(xp.linalg.matrix_norm(a, ord=order), np.linalg.matrix_norm(x, ord=order), tolerance=close)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_integers(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    same(xp.matmul(ours(x), ours(x.T)), x @ x.T)
    same(xp.vecdot(ours(x), ours(x)), np.vecdot(x, x))
    same(xp.tensordot(ours(x), ours(x.T), axes=1), np.tensordot(x, x.T, 1))
    same(xp.linalg.cross(ours(x), ours(x[::-1])), np.linalg.cross(x, x[::-1]))
    same(xp.linalg.matrix_power(ours(x[:, :2]), 3), np.linalg.matrix_power(x[:, :2], 3))


@few
@given(matrices(square=True))
def test_square_matrices(x):
    a = ours(x)
    close = 2e-3 if x.dtype.name in ("float32", "complex64") else 1e-9
    same(xp.linalg.det(a), np.linalg.det(x), tolerance=close)
    same(xp.linalg.inv(a), np.linalg.inv(x), tolerance=close)
    sign, logabsdet = xp.linalg.slogdet(a)
    expected = np.linalg.slogdet(x)
    same(sign, expected.sign, tolerance=close)
    same(logabsdet, expected.logabsdet, tolerance=close)
    assert xp.linalg.slogdet(a)._fields == ("sign", "logabsdet")
    right = x[..., :1]
    same(xp.linalg.solve(a, ours(right)), np.linalg.solve(x, right), tolerance=close)
    same(xp.linalg.solve(a, ours(right[..., 0]) if x.ndim == 2 else ours(right)),
         np.linalg.solve(x, right[..., 0] if x.ndim == 2 else right), tolerance=close)  # fmt: skip
    for n in (0, 1, 2, -1):
        same(xp.linalg.matrix_power(a, n), np.linalg.matrix_power(x, n), tolerance=close)
    hermitian = x + np.conj(np.swapaxes(x, -1, -2))
    values, vectors = xp.linalg.eigh(ours(hermitian))
    same(values, np.linalg.eigvalsh(hermitian), tolerance=close)
    same(xp.linalg.eigvalsh(ours(hermitian)), np.linalg.eigvalsh(hermitian), tolerance=close)
    assert vectors.dtype == x.dtype
    np.testing.assert_allclose(hermitian @ np.asarray(vectors), np.asarray(vectors) * np.asarray(values)[..., None, :],
                               rtol=close, atol=10 * close)  # fmt: skip
    positive = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1], dtype=x.dtype)
    lower = xp.linalg.cholesky(ours(positive))
    same(lower, np.linalg.cholesky(positive), tolerance=close)
    same(
        xp.linalg.cholesky(ours(positive), upper=True),
        np.conj(np.swapaxes(np.asarray(lower), -1, -2)),
        tolerance=close,
    )


@few
@given(matrices())
def test_decompositions(x):
    a = ours(x)
    close = 1e-3 if x.dtype.name in ("float32", "complex64") else 1e-9
    k = min(x.shape[-2:])
    for mode, inner in (("reduced", k), ("complete", x.shape[-2])):
        q, r = xp.linalg.qr(a, mode=mode)
        assert q.shape == (*x.shape[:-1], inner) and r.shape == (*x.shape[:-2], inner, x.shape[-1])
        same(q @ r, x, tolerance=close)
    assert xp.linalg.qr(a)._fields == ("Q", "R")
    for full in (True, False):
        u, s, vh = xp.linalg.svd(a, full_matrices=full)
        assert u.shape[-1] == (x.shape[-2] if full else k) and vh.shape[-2] == (x.shape[-1] if full else k)
        same(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, tolerance=close)
        assert s.dtype == np.real(x).dtype and u.dtype == vh.dtype == x.dtype
    assert xp.linalg.svd(a)._fields == ("U", "S", "Vh")
    same(xp.linalg.svdvals(a), np.linalg.svdvals(x), tolerance=close)
    same(xp.linalg.pinv(a), np.linalg.pinv(x), tolerance=10 * close)
    same(xp.linalg.pinv(a, rtol=1e-3), np.linalg.pinv(x, rtol=1e-3), tolerance=10 * close)
    rank = xp.linalg.matrix_rank(a)
    assert rank.shape == x.shape[:-2] and xp.isdtype(rank.dtype, "integral")
    np.testing.assert_array_equal(np.asarray(rank), np.linalg.matrix_rank(x))


@few
@given(arrays(dtypes=tuple(COMPLEX), min_ndim=1, max_ndim=3, min_side=1), st.data())
def test_transforms(x, data):
    a = ours(x)
    close = 1e-4
    real = np.real(x).copy()
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = data.draw(st.none() | st.integers(1, 6))
    norm = data.draw(st.sampled_from(["backward", "ortho", "forward"]))
    options = {"n": n, "axis": axis, "norm": norm}
    for name in ("fft", "ifft", "hfft"):
        if name == "hfft" and n is None and x.shape[axis] == 1:
            continue
        expected = getattr(np.fft, name)(x, **options)
        same(getattr(xp.fft, name)(a, **options), expected, tolerance=close)
    if n is not None or x.shape[axis] > 1:
        same(xp.fft.irfft(a, **options), np.fft.irfft(x, **options), tolerance=close)
    same(xp.fft.rfft(ours(real), **options), np.fft.rfft(real, **options), tolerance=close)
    same(xp.fft.ihfft(ours(real), **options), np.fft.ihfft(real, **options), tolerance=close)
    same(xp.fft.fftn(a, norm=norm), np.fft.fftn(x, norm=norm), tolerance=close)
    same(xp.fft.ifftn(a, axes=(axis,), norm=norm), np.fft.ifftn(x, axes=(axis,), norm=norm), tolerance=close)
    same(
        xp.fft.rfftn(ours(real), s=(3,), axes=(axis,)),
        np.fft.rfftn(real, s=(3,), axes=(axis,)),
        tolerance=close,
    )
    same(xp.fft.irfftn(a, s=(4,), axes=(axis,)), np.fft.irfftn(x, s=(4,), axes=(axis,)), tolerance=close)
    same(xp.fft.fftshift(a, axes=axis), np.fft.fftshift(x, axis))
    same(xp.fft.ifftshift(a), np.fft.ifftshift(x))


@both_modes
def test_frequencies(wide):
    with purax.config.override(enable_x64=wide):
        for n in (1, 4, 5):
            for name in ("fftfreq", "rfftfreq"):
                expected = getattr(np.fft, name)(n, 0.5)
                same(getattr(xp.fft, name)(n, d=0.5), expected, defaults()["real floating"], 1e-6)
                same(getattr(xp.fft, name)(n, d=0.5, dtype="float64"), expected, tolerance=1e-15)
