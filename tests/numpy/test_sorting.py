"""Sorting, searching, and choosing elements agree with NumPy in value and with jax in type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import purax
import purax.numpy as jnp
from purax.xla.array import from_numpy
from tests.numpy.agreement import agree, canonical, values

pytestmark = pytest.mark.sampled(2)

DTYPES = ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64")
SPECIAL = np.array([3.0, np.nan, -0.0, 0.0, np.inf, -np.inf, np.nan, -1.0], np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort(dtype):
    for shape, axis in (((5,), -1), ((3, 4), 0), ((3, 4), None), ((2, 3, 4), 1), ((0,), 0), ((2, 0), 0)):
        x = values(shape, dtype)
        if dtype != "bool":  # with repeated elements
            x = np.round(x / 8 if dtype[0] in "iu" else x).astype(dtype)
        agree("sort", x, axis=axis)
        agree("argsort", x, axis=axis, numpy_kwargs={"axis": axis, "stable": True})
        got = np.asarray(jnp.sort(from_numpy(x), axis=axis, descending=True))
        np.testing.assert_array_equal(got, np.flip(np.sort(x, axis=axis), axis or 0))


def test_special_values_are_sorted_with_nan_last():
    agree("sort", SPECIAL, jit=True)
    agree("argsort", SPECIAL, numpy_kwargs={"stable": True}, jit=True)
    agree("sort", SPECIAL, descending=True, oracle="jax")
    agree("argsort", SPECIAL, descending=True, oracle="jax", jit=True)
    agree("argsort", np.array([1, 1, 0, 0]), descending=True, oracle="jax")
    agree("argsort", np.array([1, 1, 0, 0]), dtype="int16", numpy_kwargs={"stable": True})
    complex_values = SPECIAL.astype(np.complex64)
    complex_values.imag = np.roll(SPECIAL, 1)
    agree("sort", complex_values, oracle="jax")


def test_lexsort():
    x, y = np.array([2, 1, 2, 1, 0]), np.array([1.0, 1, 0, 0, np.nan])
    agree("lexsort", (x, y))
    agree("lexsort", [y, x])
    agree("lexsort", np.stack([x, x[::-1]]))
    agree("lexsort", (values((3, 4), "int8") // 20, values((3, 4), "int8", 1) // 20), axis=0)
    agree("lexsort", (1, 2), oracle="jax")
    with pytest.raises(TypeError, match="len > 0"):
        jnp.lexsort(())
    with pytest.raises(ValueError, match="same shape"):
        jnp.lexsort((from_numpy(x), from_numpy(y[:2])))


@pytest.mark.parametrize("kth", [0, 2, -1])
def test_partition(kth):
    x = values((3, 5), "float32")
    parts, order = (np.asarray(f(from_numpy(x), kth)) for f in (jnp.partition, jnp.argpartition))
    expected = np.sort(x)
    np.testing.assert_array_equal(parts[:, kth], expected[:, kth])
    np.testing.assert_array_equal(np.sort(parts), expected)
    np.testing.assert_array_equal(np.take_along_axis(x, order, 1)[:, kth], expected[:, kth])
    assert (parts[:, :kth] <= parts[:, kth, None]).all()


def test_sort_errors():
    x = from_numpy(np.arange(3))
    with pytest.raises(TypeError, match="kind"):
        jnp.sort(x, kind="quicksort")
    with pytest.raises(ValueError, match="kth=3 is out of bounds"):
        jnp.partition(x, 3)
    with pytest.raises(TypeError, match="kth must be an integer"):
        jnp.partition(x, (1, 2))
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.sort(3.0)
    agree("sort_complex", np.array([3, 1, 2]))


# --- searching


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
def test_searchsorted(side, method):
    for vector in (
        np.array([1.0, 2, 2, 5, np.inf, np.nan]),
        np.array([1, 2, 2, 5]),
        np.array([]),
        np.array([True]),
    ):
        for queries in (
            2,
            np.array([[0, 2], [5, 3]]),
            np.array([np.nan, -np.inf, np.inf, 2.5]),
            np.array([]),
        ):
            both = {"side": side}
            jit = vector.size == 6 and np.shape(queries) in ((4,), (2, 2))
            agree("searchsorted", vector, queries, **both, method=method, numpy_kwargs=both, jit=jit)


def test_searchsorted_with_sorter_and_dtypes():
    x = np.array([3, 1, 2])
    agree("searchsorted", x, 2, sorter=np.argsort(x), numpy_kwargs={"sorter": np.argsort(x)})
    for dtype in ("float16", "bfloat16", "int8", "uint8"):
        agree("searchsorted", np.array([1, 2, 2, 5], dtype), np.array([2, 3], dtype))
    with pytest.raises(ValueError, match="1-dimensional"):
        jnp.searchsorted(from_numpy(np.ones((2, 2))), 1)
    with pytest.raises(ValueError, match="side must be"):
        jnp.searchsorted(from_numpy(x), 1, side="middle")
    with pytest.raises(ValueError, match="method must be"):
        jnp.searchsorted(from_numpy(x), 1, method="guess")


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    x = np.array([0.5, 1, 2, 3, 9, np.nan])
    for bins in (np.array([1.0, 2, 3]), np.array([3.0, 2, 1]), np.array([2.0]), np.array([])):
        agree("digitize", x, bins, right=right, jit=bins.size == 3)


def test_bincount():
    x = np.array([3, 1, 2, 1])
    agree("bincount", x, types=False)
    agree("bincount", x, minlength=8, types=False)
    agree("bincount", x, weights=np.array([0.5, 1, 2, 4]), types=False)
    agree("bincount", x, weights=np.array([1, 2, 3, 4]), types=False)
    agree("bincount", x, length=3, expected=[np.array([0, 2, 1])], jit=True)
    agree("bincount", x, length=6, minlength=8, expected=[np.array([0, 2, 1, 1, 0, 0])])
    agree("bincount", x.astype("uint8"), types=False)
    agree("bincount", np.array([True, False, True]), types=False, expected=[np.array([1, 2])])
    agree("bincount", np.array([], int), types=False)
    with pytest.raises(ValueError, match="must not be negative, got -1"):
        jnp.bincount(from_numpy(np.array([-1, 2])))
    with pytest.raises(TypeError, match="integer type"):
        jnp.bincount(1.5)
    with pytest.raises(TypeError, match="length=n"):
        purax.jit(jnp.bincount)(from_numpy(x))


# --- places of true elements


def padded(x: np.ndarray, size: int, fill) -> np.ndarray:
    """The first `size` entries, and `fill` beyond the last."""
    missing = max(size - len(x), 0)
    return np.concatenate([x[:size], np.full((missing, *x.shape[1:]), fill, x.dtype)])


@pytest.mark.parametrize("shape", [(4,), (2, 3), (0, 3), (2, 0), (2, 2, 2)])
@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "where"])
def test_nonzero(name, shape):
    x = values(shape, "bool")
    agree(name, x, types=False)
    agree(name, x.astype("float32"), types=False)
    found = getattr(np, name)(x)
    for size in (0, 1, 3, 9):
        for fill in (None, -1):
            filled = (fill or 0) if x.size else 0  # as in jax
            expected = [padded(one, size, filled) for one in (found if isinstance(found, tuple) else [found])]
            agree(name, x, size=size, fill_value=fill, expected=expected, jit=size == 3 and fill is not None)
    if name == "nonzero":
        expected = [padded(one, 5, i if x.size else 0) for i, one in enumerate(found)]
        agree(name, x, size=5, fill_value=tuple(range(len(shape))), expected=expected)
    with pytest.raises(TypeError, match=r"size=n"):
        purax.jit(getattr(jnp, name))(from_numpy(x))


def test_nonzero_of_scalars():
    with pytest.raises(ValueError, match="scalar"):
        jnp.nonzero(3.0)
    agree("argwhere", 3.0, types=False)
    agree("argwhere", 0.0, types=False)
    agree("argwhere", 2.0, size=3, expected=[np.zeros((3, 0))])


def test_compress_and_extract():
    x = np.array([[3, 1, 2], [1, 5, 4]])
    agree("extract", x > 2, x, types=False)
    agree("extract", x > 2, x, size=5, fill_value=-1, expected=[np.array([3, 5, 4, -1, -1])], jit=True)
    agree("extract", x > 2, x, size=2, expected=[np.array([3, 5])])
    agree("compress", np.array([False, True]), x, axis=0, types=False)
    agree("compress", np.array([False, True]), x, types=False)
    agree("compress", np.array([True, False, True, False]), np.arange(3), types=False)
    agree(
        "compress",
        np.array([False, True]),
        x,
        axis=1,
        size=2,
        fill_value=9,
        expected=[np.array([[1, 9], [5, 9]])],
        jit=True,
    )
    with pytest.raises(ValueError, match="out of bounds: it is true at 3"):
        jnp.compress(from_numpy(np.array([True, False, False, True])), from_numpy(np.arange(3)))
    with pytest.raises(ValueError, match="1D"):
        jnp.compress(from_numpy(x > 2), from_numpy(x))


# --- choosing


def test_select():
    x = np.array([3, 1, 2, 4])
    agree("select", [x > 2, x > 1], [x, x * 10.0])
    agree("select", [x > 2, x > 1], [x, x * 10], default=5.5, jit=True)
    agree("select", [x > 2, np.array([True, False, False, True])], [1, 2])
    agree("select", [np.array([[True], [False]])], [np.arange(3)], np.array([[7], [8]]))
    with pytest.raises(ValueError, match="length equal"):
        jnp.select([x > 2], [x, x])
    with pytest.raises(ValueError, match="non-empty"):
        jnp.select([], [])


def test_choose():
    choices = [np.arange(3), 10 * np.arange(3)]
    agree("choose", np.array([0, 1, 1]), choices, types=False)
    agree("choose", np.array([0, 1, 2]), choices, mode="clip", jit=True)
    agree("choose", np.array([0, -1, 2]), choices, mode="wrap", jit=True)
    agree("choose", np.array([0, 1]), [1, 2.5], types=False)
    agree("choose", np.array([0, 1]), np.array([1, 2]), types=False)
    agree("choose", 1, [np.ones((2, 3)), np.zeros((2, 3))], mode="clip")
    with pytest.raises(ValueError, match="between 0 and 2, but there are 2"):
        jnp.choose(from_numpy(np.array([0, 2])), [1, 2])
    with pytest.raises(TypeError, match="mode='wrap'"):
        purax.jit(lambda a: jnp.choose(a, [1, 2]))(from_numpy(np.array([0, 1])))
    with pytest.raises(ValueError, match="integer typed"):
        jnp.choose(from_numpy(np.array([0.0])), [1, 2])


def test_piecewise():
    x = np.array([3.0, 1.0, 2.0, 4.0], np.float32)
    agree("piecewise", x, [x < 2, x >= 3], [-1, 1])
    agree("piecewise", x, [x < 2, x >= 3], [lambda v: -v, lambda v: v * 1.5, 7], jit=True)
    agree("piecewise", x, np.stack([x < 2, x > 3]), [1, 2])
    agree("piecewise", x, [x < 2], [lambda v, b, c=0: v * b + c], 10, c=5)
    agree("piecewise", x.astype("int32"), [x < 3], [lambda v: v * 1.5])
    with pytest.raises(ValueError, match="either 1 or 2 functions"):
        jnp.piecewise(from_numpy(x), [from_numpy(x < 2)], [1, 2, 3])


# --- taking and putting


def taken(x: np.ndarray, indices: np.ndarray, axis: int | None, mode: str | None, fill=None) -> np.ndarray:
    """`jnp.take` in terms of NumPy's."""
    indices = indices.astype(np.int64)
    if mode in ("clip", "wrap"):
        return np.take(x, indices, axis, mode=mode)
    size = x.size if axis is None else x.shape[axis]
    outside = (indices >= size) | (indices < -size)
    result = np.array(np.take(x, np.where(outside, 0, indices), axis))
    if fill is None:
        kinds = {
            "b": True,
            "i": np.iinfo(x.dtype).min if x.dtype.kind == "i" else 0,
            "f": np.nan,
            "c": np.nan,
        }
        fill = np.iinfo(x.dtype).max if x.dtype.kind == "u" else kinds[x.dtype.kind]
    place = (slice(None),) * (axis or 0)
    result[(*place, outside) if result.ndim else ()] = fill if outside.any() or result.ndim else result
    return result


@pytest.mark.parametrize("mode", [None, "fill", "clip", "wrap"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8", "bool", "complex64"])
def test_take(mode, dtype):
    x = values((3, 4), dtype)
    for indices in (
        np.array([0, -1, 2]),
        np.array([[0, 7], [-5, 1]]),
        np.array(1),
        np.array([], int),
        np.array([2], "uint8"),
    ):
        for axis in (None, 0, 1):
            jit = indices.shape == (2, 2) and axis == 1 and dtype in ("float32", "uint8")
            agree("take", x, indices, axis=axis, mode=mode, expected=[taken(x, indices, axis, mode)], jit=jit)
    if mode == "fill":
        agree("take", x, np.array([90]), mode=mode, fill_value=1, expected=[np.array([1])])


def test_take_of_little():
    agree("take", 3.0, 0)
    agree("take", np.array([]), np.array([], int))
    agree("take", np.ones((2, 0)), np.array([1]), axis=0)
    with pytest.raises(IndexError, match="empty axis"):
        jnp.take(from_numpy(np.array([], np.float32)), 0)
    with pytest.raises(TypeError, match="integer type"):
        jnp.take(from_numpy(np.ones(3)), 0.5)
    with pytest.raises(NotImplementedError, match="raise"):
        jnp.take(from_numpy(np.ones(3)), 0, mode="raise")


@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [((2, 3), [[0], [1]], 1), ((2, 3), [[0], [1]], 0), ((2, 3), [[0, 1, 5]], 0), ((2, 3), [[0, -1, -2]], 0),
     ((2, 3), [0, 5], None), ((2, 3), [[0, 1]], 1), ((1, 3), [[0, 1], [2, 2]], 1), ((2, 3), [[0, -1, -3]], 0)],
)  # fmt: skip
def test_take_along_axis(shape, indices, axis):
    x, indices = values(shape, "float32"), np.array(indices)
    size = x.size if axis is None else shape[axis]
    outside = (indices >= size) | (indices < -size)
    inside = np.where(outside, 0, indices)
    expected = np.where(outside, np.nan, np.take_along_axis(x, inside, axis))
    agree("take_along_axis", x, indices, axis, expected=[expected], jit=axis == 0)
    clipped = np.clip(np.where(indices < 0, indices + size, indices), 0, size - 1)
    agree("take_along_axis", x, indices, axis, mode="clip", expected=[np.take_along_axis(x, clipped, axis)])


def test_take_along_axis_errors():
    x = from_numpy(np.ones((2, 3)))
    with pytest.raises(ValueError, match="same number of dimensions"):
        jnp.take_along_axis(x, from_numpy(np.array([0])), 1)
    with pytest.raises(ValueError, match="incompatible shapes"):
        jnp.take_along_axis(x, from_numpy(np.zeros((3, 2), np.int32)), 1)
    with pytest.raises(TypeError, match="integer type"):
        jnp.take_along_axis(x, from_numpy(np.zeros((2, 1), np.float32)), 1)


def test_put():
    x, m = np.array([3, 1, 2, 4]), np.array([[3, 1, 2], [1, 5, 4]])

    def written(function, array, *arguments, **keywords):
        result = array.copy()
        function(result, *arguments, **keywords)
        return [result]

    new = np.array([8, 9])
    agree("put", x, np.array([0, -1]), new, inplace=False, expected=written(np.put, x, [0, -1], new))
    agree(
        "put",
        m,
        np.array([0, -1, 2]),
        new,
        inplace=False,
        expected=written(np.put, m, [0, -1, 2], new),
        jit=True,
    )
    for mode in ("clip", "wrap"):
        expected = written(np.put, m, [0, 10], 8, mode=mode)
        agree("put", m, np.array([0, 10]), 8, mode=mode, inplace=False, expected=expected)
    agree("place", m, m > 2, new, inplace=False, expected=written(np.place, m, m > 2, new), jit=True)
    agree("place", m, m > 2, 8, inplace=False, expected=written(np.place, m, m > 2, 8))
    index = np.array([[0], [1]])
    expected = written(np.put_along_axis, m, index, 9, 1)
    agree("put_along_axis", m, index, 9, axis=1, inplace=False, expected=expected, jit=True)
    expected = written(np.put_along_axis, m, np.array([0, 1]), 9, None)
    agree("put_along_axis", m, np.array([0, 1]), 9, axis=None, inplace=False, expected=expected)
    for mode, expected in ((None, [[9, 1, 2], [9, 5, 4]]), ("clip", [[9, 1, 9], [9, 5, 9]])):
        agree(
            "put_along_axis",
            m,
            np.array([[0, 7]]),
            9,
            axis=1,
            inplace=False,
            mode=mode,
            expected=[np.array(expected)],
        )
    for name, arguments in (
        ("put", (0, 1)),
        ("place", (x > 1, 1)),
        ("put_along_axis", (np.array([0]), 1, 0)),
    ):
        with pytest.raises(ValueError, match="inplace=False"):
            getattr(jnp, name)(x, *arguments)
    with pytest.raises(ValueError, match="same size"):
        jnp.place(m, x > 2, 1, inplace=False)
    with pytest.raises(ValueError, match="empty array"):
        jnp.place(m, m > 2, np.array([]), inplace=False)


# --- sets


def sized(x: np.ndarray, size: int, axis: int | None, fill, equal_nan: bool = True) -> list:
    """`jnp.unique` with a size, in terms of NumPy's."""
    found, index, inverse, counts = np.unique(x, True, True, True, axis, equal_nan=equal_nan)
    rows = np.moveaxis(found, axis or 0, 0)
    rows = padded(rows, size, rows[0] if fill is None else fill)
    shape = x.shape if axis is None else (x.shape[axis],)
    return [
        np.moveaxis(rows, 0, axis or 0), padded(index, size, index[0]), inverse.reshape(shape), padded(counts, size, 0)
    ]  # fmt: skip


FULL = {"return_index": True, "return_inverse": True, "return_counts": True}


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"]
)
def test_unique(dtype):
    x = values((3, 4), dtype)
    if dtype[0] in "iu":
        x = x // 20
    elif dtype != "bool":
        x = np.round(x / 3).astype(dtype) + np.zeros((), dtype)  # no -0
    plain = x.astype(np.float32) if dtype == "bfloat16" else x
    agree("unique", x, types=False)
    agree("unique", x, **FULL, types=False)
    agree("unique", x, axis=1, **FULL, expected=list(np.unique(plain, True, True, True, 1)), types=False)
    for size in (1, 3, 9):
        jit = size == 3 and dtype == "float32"
        agree("unique", x, size=size, **FULL, expected=sized(plain, size, None, None), jit=jit)
        agree(
            "unique", x, size=size, axis=0, fill_value=1, **FULL, expected=sized(plain, size, 0, 1), jit=jit
        )


def test_unique_of_special_values():
    agree("unique", SPECIAL, types=False)
    agree("unique", SPECIAL, equal_nan=False, types=False)
    for equal_nan in (True, False):
        expected = sized(SPECIAL, 9, None, None, equal_nan)
        agree("unique", SPECIAL, **FULL, equal_nan=equal_nan, size=9, expected=expected)
    agree("unique", np.array([]), types=False)
    agree("unique", np.ones((0, 2)), axis=0, types=False)
    agree("unique", 3, types=False)
    for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
        agree(name, np.array([[3, 1], [3, 2]]), types=False)
        agree(name, SPECIAL, types=False)
    agree("unique_counts", np.array([3, 1, 3]), size=3, expected=[np.array([1, 3, 1]), np.array([1, 2, 0])])
    assert jnp.unique_all(3).counts.shape == (1,)
    with pytest.raises(TypeError, match="size=n"):
        purax.jit(jnp.unique)(from_numpy(SPECIAL))
    with pytest.raises(ValueError, match="fill_value must be specified"):
        jnp.unique(from_numpy(np.array([])), size=2)


SETS = ("union1d", "intersect1d", "setdiff1d", "setxor1d")


@pytest.mark.parametrize("name", SETS)
def test_sets(name):
    pairs = [
        ([[3, 1, 2], [1, 5, 4]], [1, 5, 7]),
        ([1, 2], [8]),
        ([], [1]),
        ([1, 1], []),
        ([1.5, np.nan, 1.5], [2, 1.5]),
    ]
    for left, right in pairs:
        x, y = np.array(left), np.array(right)
        agree(name, x, y, types=False)
        found = canonical(getattr(np, name)(x, y))
        smallest = found[0] if found.size and name != "setdiff1d" else 0
        for size, fill_value in ((2, None), (7, None), (7, -1)):
            if x.size and y.size:
                expected = [padded(found, size, smallest if fill_value is None else fill_value)]
                jit = size == 2 and x.ndim == 2
                agree(name, x, y, size=size, fill_value=fill_value, expected=expected, jit=jit)
    with pytest.raises(TypeError, match="size=n"):
        purax.jit(getattr(jnp, name))(from_numpy(np.array([1, 2])), from_numpy(np.array([1])))


def test_more_sets():
    m = np.array([[3, 1, 2], [1, 5, 4]])
    agree("intersect1d", m, np.array([5, 1, 7]), return_indices=True, types=False)
    expected = [np.array(one) for one in ([1, 5, -1, -1], [1, 4, 6, 6], [1, 0, 3, 3])]
    agree(
        "intersect1d", m, np.array([5, 1, 7]), return_indices=True, size=4, fill_value=-1, expected=expected
    )
    agree("setdiff1d", np.array([3, 1, 3]), np.array([1, 5, 7]), assume_unique=True, types=False)


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_isin(method):
    x = np.array([[3, 1, 2], [1, 5, 4]])
    for tests in (np.array([1, 5]), np.array([1, 5.5]), np.array([]), np.arange(0, 60, 3)):
        for invert in (False, True):
            jit = not invert and tests.size > 2
            agree("isin", x, tests, invert=invert, method=method, numpy_kwargs={"invert": invert}, jit=jit)
    agree("isin", np.array([np.nan, 1]), np.array([np.nan]), method=method, numpy_kwargs={})


@given(st.lists(st.integers(-3, 3)), st.lists(st.integers(-3, 3)))
def test_sets_agree_with_python_s(left, right):
    x, y = (from_numpy(np.array(one, np.int32)) for one in (left, right))
    a, b = set(left), set(right)
    for name, expected in (
        ("union1d", a | b),
        ("intersect1d", a & b),
        ("setdiff1d", a - b),
        ("setxor1d", a ^ b),
    ):
        assert getattr(jnp, name)(x, y).tolist() == sorted(expected), name


def test_gradients_go_to_the_chosen_elements():
    x = from_numpy(np.array([3.0, 1.0, 2.0], np.float32))
    weights = from_numpy(np.array([1.0, 10.0, 100.0], np.float32))
    np.testing.assert_array_equal(purax.grad(lambda v: (jnp.sort(v) * weights).sum())(x), [100, 1, 10])
    np.testing.assert_array_equal(purax.grad(lambda v: (jnp.unique(v) * weights).sum())(x), [100, 1, 10])
    np.testing.assert_array_equal(purax.grad(lambda v: jnp.take(v, jnp.array([0, 0, 2])).sum())(x), [2, 0, 1])
    np.testing.assert_array_equal(purax.grad(lambda v: jnp.extract(v > 1, v).sum())(x), [1, 0, 1])


def test_vmap_of_searches():
    rows = from_numpy(np.sort(values((3, 5), "float32")))
    queries = from_numpy(values((3, 2), "float32", 1))
    got = purax.vmap(jnp.searchsorted)(rows, queries)
    expected = [np.searchsorted(np.asarray(r), np.asarray(q)) for r, q in zip(rows, queries, strict=True)]
    np.testing.assert_array_equal(got, expected)
    counts = purax.vmap(lambda row: jnp.nonzero(row > 0, size=5, fill_value=-1)[0])(rows)
    assert (np.asarray(counts) >= 0).sum() == (np.asarray(rows) > 0).sum()


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint32", "int32", "float16", "bfloat16", "float32"]
)
def test_long_arrays_are_ordered_as_by_the_compiled_program(dtype):
    values = np.random.default_rng(0).integers(-(2**31), 2**31, (2, 3000)).astype(np.int32)
    x = jnp.asarray(values.view(np.uint32) if dtype == "uint32" else values % 199 - 99).astype(dtype)
    if dtype.startswith("float"):
        x = x.at[0, ::7].set(-0.0).at[0, 3::7].set(0.0).at[1, 5::9].set(np.nan)
    order = jnp.argsort(x, axis=1)
    np.testing.assert_array_equal(order, purax.jit(lambda x: jnp.argsort(x, axis=1))(x))
    np.testing.assert_array_equal(order, np.argsort(np.asarray(x), axis=1, kind="stable"))


def test_digitize_gives_int32_with_x64_too():
    with purax.enable_x64(True):
        for bins in (jnp.arange(3.0), jnp.arange(3.0)[::-1], jnp.zeros(0)):
            assert jnp.digitize(jnp.arange(4.0), bins).dtype == np.int32
            assert purax.jit(jnp.digitize)(jnp.arange(4.0), bins).dtype == np.int32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("size", [4, 60, 700, 5000])
def test_sort_keeps_the_order_of_zeros(size, dtype):
    x = np.random.default_rng(size).choice([0.0, -0.0, 1.0, -1.0, np.inf, np.nan], (3, size, 2))
    x = x.astype(jnp.dtype(dtype))
    for native in (True, False):
        for run in (lambda f: f, purax.jit):
            purax.config.update("native_kernels", native)
            try:
                result = np.asarray(run(lambda v: purax.lax.sort(v, dimension=1))(jnp.asarray(x, dtype)))
            finally:
                purax.config.update("native_kernels", True)
            order = np.argsort(np.asarray(x, np.float64), axis=1, kind="stable")
            wanted = np.take_along_axis(x, order, 1)
            np.testing.assert_array_equal(result.astype(np.float64), wanted.astype(np.float64))
            numbers = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(result[numbers]), np.signbit(wanted[numbers]))
