"""Values and dtypes at the edges: booleans of numbers, fill values, arrays without elements, NaN, many decimals.

Each test is a law over all ways to compute one thing, with NumPy, Python or jax as what they must agree with.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import lax
from tests.against_jax import QUICKLY
from tests.test_public_surface import JAX_VERSION

NAN = float("nan")

TRUTHS = {
    "asarray": lambda x: jnp.asarray(x, dtype=bool),
    "list": lambda x: jnp.array([x], dtype=bool)[0],
    "NumPy's array": lambda x: jnp.asarray(np.array(x), dtype=bool),
    "NumPy's array by array": lambda x: jnp.array(np.array([x]), dtype=bool)[0],
    "array of an array": lambda x: jnp.array(jnp.asarray(x), dtype=bool),
    "astype": lambda x: jnp.asarray(x).astype(bool),
    "scalar": lambda x: jnp.bool_(x),
    "full": lambda x: jnp.full((2,), x, dtype=bool)[1],
    "full of an array": lambda x: jnp.full((2,), jnp.asarray(x), dtype=bool)[1],
    "full_like": lambda x: jnp.full_like(jnp.zeros(2, bool), x)[1],
    "lax.full": lambda x: lax.full((2,), x, bool)[1],
    "lax.full_like": lambda x: lax.full_like(jnp.zeros(2, bool), x)[1],
    "convert_element_type": lambda x: lax.convert_element_type(x, bool),
    "compiled": lambda x: purax.jit(lambda y: y.astype(bool))(jnp.asarray(x)),
    "compiled convert_element_type": lambda x: purax.jit(lambda y: lax.convert_element_type(y, bool))(
        jnp.asarray(x)
    ),
    "vmap": lambda x: purax.vmap(lambda y: y.astype(bool))(jnp.asarray([x]))[0],
    "cumsum": lambda x: jnp.cumsum(jnp.asarray([x]), dtype=bool)[0],
    "cumprod": lambda x: jnp.cumprod(jnp.asarray([x]), dtype=bool)[0],
    "nancumsum of a number": lambda x: jnp.nancumsum(jnp.asarray([x if x == x else 1.0]), dtype=bool)[0],
    "sum": lambda x: jnp.sum(jnp.asarray([x]), dtype=bool),
}


@pytest.mark.parametrize("way", TRUTHS)
def test_a_number_is_true_unless_it_is_zero(way):
    for x in (0, 2, 0.0, -0.0, 0.25, -1e-30, NAN, 0j, 1j, 0.5j, 3 + 0j, True, False):
        result = TRUTHS[way](x)
        assert result.dtype == bool and bool(result) == bool(x), f"{way} of {x}"


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running_truth_values_are_numpys(name):
    random = np.random.default_rng(0)
    for size, axis in itertools.product((0, 1, 7, 40), (None, 0, 1)):
        x = random.choice([0.0, 0.25, 0.5, 2.5, -0.3], (size, 3)).astype(np.float32)
        given = getattr(jnp, name)(jnp.asarray(x), axis=axis, dtype=bool)
        np.testing.assert_array_equal(given, getattr(np, name)(x, axis=axis, dtype=bool))


def test_a_complex_number_does_not_become_real_silently():
    for make in (
        lambda: jnp.full(2, 1j, dtype=float),
        lambda: jnp.full_like(jnp.ones(2), 1j),
        lambda: lax.full((2,), 1j, np.float32),
        lambda: lax.full_like(jnp.ones(2), 1j),
        lambda: jnp.asarray(1j, dtype=int),
        lambda: jnp.asarray([1j], dtype=float),
    ):
        with pytest.raises(TypeError, match=r"take x.real"):
            make()


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_put_is_numpys(mode):
    random = np.random.default_rng(1)
    for size, count in itertools.product((1, 3, 8), (0, 1, 5)):
        x, index = np.arange(float(size)), random.integers(-2 * size, 2 * size, count)
        expected = x.copy()
        np.put(expected, index, np.arange(10.0, 13.0), mode=mode)
        for put in (jnp.put, purax.jit(jnp.put, static_argnames=("mode", "inplace"))):
            given = put(jnp.asarray(x), jnp.asarray(index), jnp.arange(10.0, 13.0), mode=mode, inplace=False)
            np.testing.assert_array_equal(given, expected.astype(np.float32))


BINARY = "add subtract multiply hypot logaddexp logaddexp2 maximum true_divide arctan2 fmod heaviside".split()


@pytest.mark.parametrize("name", BINARY)
def test_numpy_scalars_and_python_numbers_promote_as_in_jax(name):
    scalars = [
        np.dtype(t).type(1) for t in ("bool", "uint8", "uint16", "int32", "float16", "float32", "float64")
    ]
    for scalar, number in itertools.product(scalars, (True, 3, 1.5)):
        for x, y in ((scalar, number), (number, scalar), (np.asarray([scalar]), number)):
            try:
                wanted = jax.eval_shape(lambda x=x, y=y: getattr(jax_numpy, name)(x, y))
            except TypeError:
                continue
            given = getattr(jnp, name)(x, y)
            assert given.dtype == wanted.dtype, f"{name}({x!r}, {y!r})"
            # Of arrays of integers and a number of Python it is weak since 0.11, as that of other functions was before.
            has_changed = name == "hypot" and scalar.dtype.kind in "bui" and jax.__version_info__ >= (0, 11)
            if not has_changed:
                assert given.weak_type == wanted.weak_type, f"{name}({x!r}, {y!r})"


FILLS = [None, -1, True, 1.5, NAN, 2j, np.uint8(3), np.float16(1.5), np.float64(2.5)]


@pytest.mark.parametrize("fill", FILLS, ids=repr)
@pytest.mark.parametrize("name", ["nonzero", "where", "flatnonzero", "argwhere"])
def test_fill_values_are_kept(name, fill):
    for x, size in ((np.eye(2, 3), 4), (np.ones((1, 2)), 1)):
        options = {"size": size} | ({} if fill is None else {"fill_value": fill})
        program = jax.jit(lambda x, options=options: getattr(jax_numpy, name)(x, **options))
        wanted = jax.tree.leaves(program.lower(x.astype(np.float32)).compile(QUICKLY)(x.astype(np.float32)))
        function = lambda x, options=options: getattr(jnp, name)(x, **options)  # noqa: E731
        for given in (function(jnp.asarray(x)), purax.jit(function)(jnp.asarray(x))):
            for mine, theirs in zip(purax.tree.leaves(given), wanted, strict=True):
                assert mine.dtype == theirs.dtype
                if jax.__version_info__ < (0, 11):  # which has the type of the fill, but never a weak one, since then
                    assert mine.weak_type == theirs.weak_type
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16"])
@pytest.mark.parametrize("name", ["setxor1d", "intersect1d"])
def test_sets_are_promoted_with_what_fills_them(name, dtype):
    a, b = np.array([1, 0, 1], dtype), np.array([1], dtype)
    for fill in (NAN, 1.5, 1, 1j, np.float32(2), np.int8(3), None):
        options = {"size": 4, "fill_value": fill}
        wanted = jax.eval_shape(lambda a, b, options=options: getattr(jax_numpy, name)(a, b, **options), a, b)
        for x, y in ((a, b), (a[:0], b), (a, b[:0])):
            given = getattr(jnp, name)(x, y, **options)
            assert (given.dtype, given.weak_type) == (wanted.dtype, wanted.weak_type), fill
            elements = getattr(np, name)(x, y)
            filled = np.full(4, (elements[:1] if elements.size else [0]) if fill is None else fill, wanted.dtype)
            filled[: elements.size] = elements
            np.testing.assert_array_equal(given, filled)


@pytest.mark.parametrize("name", ["log2", "log10", "log", "exp2", "gammasgn", "gammaln"])
def test_weak_types_of_functions_of_numbers(name):
    if jax.__version__ != JAX_VERSION:
        pytest.skip(f"compared with jax {JAX_VERSION}, this is {jax.__version__}")
    ours, theirs = (getattr(m.numpy, name, None) or getattr(m.scipy.special, name) for m in (purax, jax))
    for x in (2, 2.5, True, np.int8(2), np.ones(2, np.float16)):
        wanted = jax.eval_shape(theirs, x)
        for given in (ours(x), purax.eval_shape(ours, x)):
            assert (given.dtype, given.weak_type) == (wanted.dtype, wanted.weak_type), x


def test_a_size_that_nothing_tells_is_refused():
    for function in (jnp.reshape, purax.jit(jnp.reshape, static_argnums=1)):
        with pytest.raises(ValueError, match="any size fits for -1"):
            function(jnp.ones((0, 2)), (0, -1))
        assert function(jnp.ones((0, 2)), (-1, 2)).shape == (0, 2)


def test_complex_numbers_are_refused_by_name():
    for call in (
        lambda: jnp.pad(jnp.ones(2), 1, constant_values=1j),
        lambda: jnp.nan_to_num(jnp.ones(2), nan=1j),
    ):
        with pytest.raises(TypeError, match="the complex number 1j cannot become float32(.|\n)*test_values"):
            call()


EMPTY = {
    "softmax": lambda m: [m.nn.softmax(m.numpy.ones((2, 0))), m.nn.softmax(m.numpy.ones((0, 2)), axis=0)],
    "log_softmax": lambda m: [
        m.nn.log_softmax(m.numpy.ones((2, 0))),
        m.nn.log_softmax(m.numpy.ones((0, 3)), axis=None),
    ],
    "extract": lambda m: m.numpy.extract(np.zeros((0, 2), bool), m.numpy.ones((0, 2))),
    "compress": lambda m: m.numpy.compress(np.zeros(0, bool), m.numpy.ones((0, 2)), axis=0),
    "compress no axis": lambda m: m.numpy.compress(np.zeros(0, bool), m.numpy.ones(0)),
    "compress nothing": lambda m: m.numpy.compress(np.zeros(2, bool), m.numpy.ones((2, 0)), axis=0),
    "delete": lambda m: [
        m.numpy.delete(m.numpy.ones(0), np.zeros(0, int)),
        m.numpy.delete(m.numpy.ones((0, 2)), 1, axis=1),
    ],
    "delete slice": lambda m: m.numpy.delete(m.numpy.ones((0, 2)), slice(0, 2), axis=0),
    "insert": lambda m: [
        m.numpy.insert(m.numpy.ones(0), 0, 2.0),
        m.numpy.insert(m.numpy.ones(0), np.zeros(0, int), 2.0),
    ],
    "insert nothing": lambda m: [m.numpy.insert(m.numpy.ones(n), 0, m.numpy.ones(0)) for n in (0, 1, 3)],
    "insert rows": lambda m: [m.numpy.insert(m.numpy.ones((0, 2)), 0, 5.0, axis=axis) for axis in (0, 1)],
    "put_along_axis": lambda m: [
        m.numpy.put_along_axis(m.numpy.ones(shape), np.zeros(shape, int), 2.0, axis, inplace=False)
        for shape in ((0, 2), (2, 0), (0, 0))
        for axis in (0, 1)
    ],
    "put_along_axis flat": lambda m: m.numpy.put_along_axis(
        m.numpy.ones(0), np.zeros(0, int), 2.0, None, inplace=False
    ),
    "put": lambda m: m.numpy.put(m.numpy.ones(0), np.zeros(0, int), 2.0, inplace=False),
    "cov": lambda m: [m.numpy.cov(m.numpy.ones(shape)) for shape in ((0,), (0, 3), (3, 0), (0, 0))],
    "corrcoef": lambda m: [m.numpy.corrcoef(m.numpy.ones(shape)) for shape in ((0,), (3, 0))],
    "mode": lambda m: list(m.scipy.stats.mode(m.numpy.ones((0, 2), "float16"))),
    "take_along_axis": lambda m: m.numpy.take_along_axis(m.numpy.ones((2, 0)), np.zeros((2, 0), int), axis=1),
}


@pytest.mark.parametrize("name", EMPTY)
def test_arrays_without_elements(name):
    wanted = jax.tree.leaves(EMPTY[name](jax))
    for given in (EMPTY[name](purax), purax.jit(lambda: EMPTY[name](purax))()):
        for mine, theirs in zip(purax.tree.leaves(given), wanted, strict=True):
            assert isinstance(mine, purax.Array)
            assert (mine.shape, mine.dtype, mine.weak_type) == (theirs.shape, theirs.dtype, theirs.weak_type)
            np.testing.assert_array_equal(mine, theirs)


def test_distinct_parts_without_elements():
    for shape in ((2, 0), (0, 2), (3, 0, 2)):
        for axis in range(len(shape)):
            for dtype in (np.float32, np.int32):
                found = jnp.unique(jnp.ones(shape, dtype), True, True, True, axis=axis)
                # NumPy does not compare parts without elements; they are all equal.
                count = min(shape[axis], 1)
                assert found[0].shape == (*shape[:axis], count, *shape[axis + 1 :])
                assert [x.tolist() for x in found[1:]] == [[0] * count, [0] * shape[axis], [shape[axis]] * count]
                assert jnp.unique(jnp.ones(shape, dtype), axis=axis).shape == found[0].shape


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_determinants_of_16_bits(n, dtype):
    x = jnp.asarray(np.random.default_rng(n).uniform(-2, 2, (4, n, n)), dtype)
    wide = np.asarray(x.astype(np.float32), np.float64)
    tolerance = 4 * float(jnp.finfo(dtype).eps)
    wanted = np.linalg.slogdet(wide)
    for method in (None, "qr"):
        for slogdet in (jnp.linalg.slogdet, purax.jit(jnp.linalg.slogdet, static_argnames="method")):
            sign, logarithm = slogdet(x, method=method)
            assert sign.dtype == logarithm.dtype == dtype
            np.testing.assert_array_equal(sign.astype(np.float32), wanted[0])
            np.testing.assert_allclose(logarithm.astype(np.float32), wanted[1], tolerance, tolerance)
    determinant = jnp.linalg.det(x)
    assert determinant.dtype == dtype
    np.testing.assert_allclose(
        determinant.astype(np.float32), np.linalg.det(wide), 8 * tolerance, 8 * tolerance
    )


def test_round_to_any_number_of_decimals():
    x = np.array([1.2345, -7.5e5, 3e-7, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e30], np.float32)
    for decimals in (8, 20, 30, 36, 38, 40, 60, 308, 400, 10_000):
        for function in (jnp.round, purax.jit(jnp.round, static_argnums=1)):
            np.testing.assert_allclose(function(jnp.asarray(x), decimals), x, 2e-7, 1e-8)
            both = function(jnp.asarray(x + 1j), decimals)
            np.testing.assert_allclose(both.real, x, 2e-7, 1e-8)
            np.testing.assert_array_equal(both.imag, 1)
    for decimals in (-31, -37, -40, -400):
        wanted = np.where(np.isfinite(x), np.copysign(0, x), x)
        for function in (jnp.round, purax.jit(jnp.round, static_argnums=1)):
            np.testing.assert_array_equal(function(jnp.asarray(x), decimals), wanted)


def test_round_to_powers_of_ten_as_large_as_numbers_are():
    x = np.array([3e38, 1.4e38, 2.6e37, -7e37, 0.0, np.inf, -np.inf, np.nan], np.float32)
    for decimals in (-30, -36, -37, -38, -39):
        wanted = np.round(x.astype(np.float64), decimals).astype(np.float32)
        for function in (jnp.round, purax.jit(jnp.round, static_argnums=1)):
            np.testing.assert_allclose(function(jnp.asarray(x), decimals), wanted, 1e-6)


def test_traced_diagonals_and_shapes():
    for k in range(-4, 5):
        for n, m in ((3, 3), (2, 4), (4, 1)):
            np.testing.assert_array_equal(purax.jit(lambda k, n=n, m=m: jnp.tri(n, m, k))(k), np.tri(n, m, k))
            np.testing.assert_array_equal(
                purax.vmap(lambda k, n=n, m=m: jnp.tri(n, m, k))(jnp.array([k]))[0], np.tri(n, m, k)
            )
    flat = np.array([0, 5, 11, -1, -12])
    traced = purax.jit(lambda i, rows, columns: jnp.unravel_index(i, (rows, columns)))(flat, 3, 4)
    for given, wanted in zip(traced, np.unravel_index(flat % 12, (3, 4)), strict=True):
        np.testing.assert_array_equal(given, wanted)
    narrow = jnp.unravel_index(jnp.array([-1, 1], jnp.int8), (3, 400))
    assert [one.tolist() for one in narrow] == [[2, 0], [399, 1]]


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_complex_nan_is_never_lost(name):
    values = [1j, 2 + 0j, complex(NAN, 1), complex(1, NAN), complex(NAN, NAN), 3 - 1j]
    for x, y in itertools.product(values, values):
        function = getattr(jnp, name)
        both = [jnp.asarray(v, np.complex64) for v in (x, y)]
        reduce = jnp.max if name == "maximum" else jnp.min
        for given in (
            function(*both),
            purax.jit(function)(*both),
            reduce(both[0][None], initial=y),
            purax.jit(lambda a, y=y, reduce=reduce: reduce(a, initial=y))(both[0][None]),
            reduce(jnp.stack(both)),
        ):
            wanted = getattr(np, name)(np.complex64(x), np.complex64(y))
            assert np.isnan(given) == np.isnan(wanted) and (np.isnan(wanted) or given == wanted), f"{x}, {y}"


def test_interpolation_of_complex_values():
    x, places, values = np.linspace(-1, 4, 9), np.arange(4.0), np.array([1j, 2, 3 - 1j, 0.5])
    for ends in ({}, {"left": 2j}, {"right": 1 + 1j, "left": 3.0}):
        for fp in (values, values.real):
            wanted = np.interp(x, places, fp.astype(complex), **ends)
            for function in (jnp.interp, purax.jit(jnp.interp)):
                np.testing.assert_allclose(function(x, places, fp, **ends), wanted, 1e-6, 1e-6)
