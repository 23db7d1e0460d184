"""Reductions and statistics agree with NumPy in value and with jax in type, over dtypes, shapes, axes and masks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import purax
import purax.numpy as jnp
from purax.xla.array import from_numpy
from tests.numpy.agreement import agree, values

DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64")
SHAPES = ((), (4,), (2, 3), (0, 3), (2, 0), (2, 1, 3))
AXES = {0: (None, ()), 1: (None, 0), 2: (None, 0, -1, (0, 1)), 3: (None, 1, (0, 2), (-1, 0, 1))}


def shapes_and_axes(dtype: str):
    """All shapes and axes for one dtype of integers and one of floats, the most telling ones for the others."""
    for shape in SHAPES:
        for axis in AXES[len(shape)]:
            if dtype in ("int8", "float32") or (shape, axis) in (
                ((), None),
                ((2, 3), 0),
                ((2, 3), (0, 1)),
                ((0, 3), 0),
            ):
                yield shape, axis


SUMS = (
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "any",
    "all",
    "count_nonzero",
    "nansum",
    "nanprod",
    "nanmean",
    "nanvar",
    "nanstd",
)
EXTREMA = ("max", "min", "amax", "amin", "nanmax", "nanmin", "ptp")
ARGUMENTS = ("argmax", "argmin", "nanargmax", "nanargmin")


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums(name, dtype):
    for shape, axis in shapes_and_axes(dtype):
        x = values(shape, dtype, special=name.startswith("nan") and dtype != "complex64")
        if name == "prod" and np.dtype(dtype).kind in "iu":
            x = np.clip(x, 0, 3) if dtype[0] == "u" else np.clip(x, -3, 3)
        agree(name, x, axis=axis, keepdims=axis == 0)


@pytest.mark.parametrize("name", EXTREMA)
@pytest.mark.parametrize("dtype", DTYPES)
def test_extrema(name, dtype):
    if name == "ptp" and dtype == "bool":
        with pytest.raises(TypeError, match="truth values"):
            jnp.ptp(from_numpy(np.ones(3, bool)))
        return
    for shape, axis in shapes_and_axes(dtype):
        x = values(shape, dtype, special=name.startswith("nan") and dtype != "complex64")
        axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
        if any(shape[i] == 0 for i in axes):
            with pytest.raises(ValueError, match="zero-size array"):
                getattr(jnp, name)(from_numpy(x), axis=axis)
            continue
        agree(name, x, axis=axis, keepdims=axis == 0)


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_where_extrema_are(name, dtype):
    for shape in SHAPES:
        for axis in (None, *range(-1, len(shape))) if shape else (None,):
            x = values(shape, dtype)
            if name.startswith("nan") and np.dtype(dtype).kind in "fV" and shape == (2, 3):
                x[1, 2] = x[0, 1] = np.nan
            if x.size == 0 and (axis is None or shape[axis] == 0):
                with pytest.raises(ValueError, match="empty sequence"):
                    getattr(jnp, name)(from_numpy(x), axis=axis)
                continue
            agree(name, x, axis=axis, keepdims=axis == 0, types=dtype != "complex64")


@pytest.mark.parametrize(
    "special", [[np.nan, 1.0], [1.0, np.nan, np.nan], [-np.inf, np.nan], [0.0, -0.0], [-0.0, 0.0]]
)
@pytest.mark.parametrize(
    "name", ("argmax", "argmin", "max", "min", "sum", "prod", "any", "all", "mean", "var")
)
def test_special_values(name, special):
    agree(name, np.array(special, np.float32))


def test_all_nan():
    x = np.array([[np.nan, np.nan], [np.nan, 1]], np.float32)
    for name in ("nanmax", "nanmin", "nanmean", "nanvar", "nanstd"):
        agree(name, x, axis=1)
    for name in ("nanargmax", "nanargmin"):
        agree(name, x, axis=1, oracle="jax")
    agree("nanvar", x, axis=0, ddof=1)


MASKED = (
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "any",
    "all",
    "nansum",
    "nanprod",
    "nanmean",
    "nanvar",
    "nanstd",
)


@pytest.mark.parametrize("name", MASKED)
def test_masks(name):
    x = values((3, 4), "float32", special=name.startswith("nan"))
    for mask in (
        values((3, 4), "bool"),
        values((4,), "bool"),
        values((3, 1), "bool"),
        np.zeros((3, 4), bool),
        True,
    ):
        for axis in (None, 0, (0, 1)):
            agree(name, x, axis=axis, where=mask)


@pytest.mark.parametrize("name", ("sum", "prod", "max", "min", "nansum", "nanmax", "nanmin"))
@pytest.mark.parametrize("dtype", ("int32", "float32", "bool"))
def test_initial(name, dtype):
    initial = dtype == "bool" or 2
    for shape in ((2, 3), (0, 3)):
        agree(name, values(shape, dtype), axis=0, initial=initial)
        agree(name, values(shape, dtype), initial=initial, where=values((3,), "bool"), keepdims=True)


@pytest.mark.parametrize("name", ("sum", "prod", "mean", "nansum"))
@pytest.mark.parametrize("dtype", ("int8", "int32", "float16", "float32", "complex64"))
def test_requested_dtypes(name, dtype):
    agree(
        name,
        np.array([[1, 2, 3], [3, 1, 1]]),
        axis=1,
        dtype=dtype,
        oracle="jax" if name == "mean" else "numpy",
    )
    agree(name, np.array([1, 2, 0.5], np.float32), dtype=dtype, oracle="jax")


def test_requested_64_bits_are_honoured():
    total = jnp.sum(from_numpy(np.array([2**31 - 1, 1], np.int32)), dtype="int64")
    assert total.dtype == np.int64 and int(total) == 2**31
    assert jnp.mean(from_numpy(np.ones(3, np.float32)), dtype="float64").dtype == np.float64


@pytest.mark.parametrize("name", ("var", "std", "nanvar", "nanstd"))
@pytest.mark.parametrize("dtype", ("int32", "float32", "float16", "complex64"))
def test_degrees_of_freedom(name, dtype):
    x = values((3, 4), dtype)
    for ddof in (0, 1, 2, 2.5):
        agree(name, x, axis=0, ddof=ddof)
    if name in ("var", "std"):
        agree(name, x, axis=1, correction=1)
        agree(
            name,
            x,
            axis=0,
            mean=np.mean(x, axis=0, keepdims=True, dtype="complex64" if dtype[0] == "c" else "float32"),
        )
        with pytest.raises(ValueError, match="simultaneously"):
            getattr(jnp, name)(from_numpy(x), ddof=1, correction=1)


def test_too_many_degrees_of_freedom_give_nan():
    agree("var", np.arange(3.0), ddof=4, oracle="jax")
    agree("var", np.arange(3.0), ddof=3, oracle="jax")


def test_narrow_floats_are_averaged_in_float32():
    x = from_numpy(np.full(100_000, 10, np.float16))
    assert float(jnp.mean(x)) == 10.0
    assert float(jnp.var(x)) == 0.0


def test_dtypes_of_numbers():
    for name in ("sum", "prod", "mean", "max", "var", "any", "argmax"):
        for number in (1, 2.5, True, 1j) if name not in ("argmax",) else (1, 2.5, True):
            agree(name, number)


@pytest.mark.parametrize(
    "name", (*SUMS, *EXTREMA, *ARGUMENTS, "average", "median"),
)  # fmt: skip
def test_jit(name):
    x = values((3, 4), "float32", special=name.startswith("nan"))
    agree(name, x, axis=1, jit=True)


def test_average():
    x = values((2, 3), "float32")
    agree("average", x)
    agree("average", x.astype("int32"), axis=1)
    agree("average", x, axis=1, weights=np.array([1, 0, 2]), returned=True, numpy_kwargs=None)
    agree("average", x, axis=0, weights=values((2, 3), "float32", 5) ** 2, keepdims=True)
    agree("average", values((2, 3, 4), "float32"), axis=(2, 0), weights=np.abs(values((4, 2), "float32", 5)))
    agree("average", values((2, 3), "bool"), axis=0, returned=True, oracle="jax")
    agree("average", x.astype(np.float16), axis=0, weights=np.ones((2, 3), np.int8))
    with pytest.raises(ValueError, match="axis must be specified"):
        jnp.average(from_numpy(x), weights=from_numpy(np.ones(3, np.float32)))
    with pytest.raises(ValueError, match="consistent"):
        jnp.average(from_numpy(x), axis=0, weights=from_numpy(np.ones(3, np.float32)))


@pytest.mark.parametrize("dtype", ("int32", "float32", "complex64"))
def test_covariance(dtype):
    x, y = values((3, 6), dtype), values((2, 6), dtype, 1)
    for name in ("cov", "corrcoef"):
        agree(name, x, jit=name == "cov")
        agree(name, x, y)
        agree(name, x.T, rowvar=False)
        agree(name, x[0])
        agree(name, x[0], y[0])
    agree("cov", x, bias=True)
    agree("cov", x, ddof=2)
    weights, counts = np.abs(values((6,), "float32")), np.array([1, 2, 1, 0, 3, 1])
    agree("cov", x, fweights=counts)
    agree("cov", x, aweights=weights)
    agree("cov", x, fweights=counts, aweights=weights, ddof=0)
    agree("cov", x, fweights=counts, aweights=weights)


def test_errors_name_what_is_wrong():
    x = from_numpy(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="sum: axis 2 is out of bounds.*dimension 2"):
        jnp.sum(x, axis=2)
    with pytest.raises(ValueError, match="duplicate value"):
        jnp.sum(x, axis=(0, -2))
    with pytest.raises(TypeError, match="must be an integer"):
        jnp.sum(x, axis=1.0)
    with pytest.raises(TypeError, match="sum requires ndarray or scalar arguments"):
        jnp.sum([1, 2])
    with pytest.raises(NotImplementedError, match="out"):
        jnp.sum(x, out=x)
    with pytest.raises(ValueError, match="boolean array"):
        jnp.sum(x, where=x)
    with pytest.raises(ValueError, match="does not broadcast"):
        jnp.sum(x, where=from_numpy(np.ones((4, 2, 3), bool)))
    with pytest.raises(ValueError, match="specify 'initial'"):
        jnp.max(x, where=from_numpy(np.ones((2, 3), bool)))
    with pytest.raises(ValueError, match="must be a scalar"):
        jnp.sum(x, initial=x)
    with pytest.raises(ValueError, match="initial=2.5 is not a int32"):
        jnp.max(from_numpy(np.arange(3, dtype=np.int32)), initial=2.5)
    with pytest.raises(TypeError, match="floating point dtype"):
        jnp.var(x, dtype="int32")


@pytest.mark.parametrize("name", ("sum", "mean", "var", "prod", "max", "nansum", "nanmean", "std"))
def test_gradients_by_finite_differences(name):
    function = getattr(jnp, name)
    x = values((3, 4), "float64").astype(np.float64)
    direction = values((3, 4), "float64", 1).astype(np.float64)
    point, step = from_numpy(x), 1e-6

    def along_rows(y):
        return jnp.sum(function(y, axis=1) * from_numpy(np.array([1.0, -2.0, 0.5])))

    gradient = np.asarray(purax.grad(along_rows)(point))
    forth, back = (float(along_rows(from_numpy(x + sign * step * direction))) for sign in (1, -1))
    np.testing.assert_allclose((gradient * direction).sum(), (forth - back) / (2 * step), rtol=1e-5)


@pytest.mark.parametrize("name", ("sum", "mean", "var", "max", "argmin", "any", "nanmax"))
def test_vmap_is_a_loop(name):
    function = getattr(jnp, name)
    x = from_numpy(values((3, 4, 2), "float32"))
    batched = purax.vmap(lambda y: function(y, axis=0), in_axes=1, out_axes=1)(x)
    expected = np.stack([np.asarray(function(from_numpy(np.asarray(x)[:, i]), axis=0)) for i in range(4)], 1)
    np.testing.assert_allclose(np.asarray(batched), expected, rtol=1e-6)


@given(st.data())
def test_random_reductions(data):
    """Any shape, axes, mask and dtype: what a table of cases does not think of."""
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
    axes = data.draw(st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True, max_size=len(shape)))
    axis = tuple(data.draw(st.sampled_from((a, a - len(shape)))) for a in axes)
    dtype = data.draw(st.sampled_from(("int32", "float32", "bool", "uint8", "complex64")))
    name = data.draw(st.sampled_from(("sum", "mean", "var", "any", "all", "count_nonzero", "max", "min")))
    options = {"axis": axis, "keepdims": data.draw(st.booleans())}
    x = values(shape, dtype, seed=data.draw(st.integers(0, 99)))
    if name in ("max", "min"):
        options["initial"] = dtype == "bool" or 3
    if name != "count_nonzero" and data.draw(st.booleans()):
        options["where"] = values(shape, "bool", seed=data.draw(st.integers(0, 99)))
    agree(name, x, **options, types=False)


def test_the_first_nan_of_many_elements_is_the_extremum():
    """XLA's own maximum and minimum of so many elements may be a number though one is NaN."""
    generator = np.random.default_rng(0)
    for shape, axis in (((5000,), 0), ((70, 300), 1), ((3000, 7), 0)):
        x = generator.uniform(-3, 3, shape).astype(np.float32)
        x.flat[3] = np.inf
        find = purax.jit(lambda x, axis=axis: (jnp.argmax(x, axis), jnp.argmin(x, axis)))
        for place in (None, 0, x.size // 3, x.size - 1):
            y = x.copy()
            if place is not None:
                y.flat[place] = y.flat[x.size - 2] = np.nan
            for found, expected in zip(find(y), (np.argmax(y, axis), np.argmin(y, axis)), strict=True):
                np.testing.assert_array_equal(found, expected)


# What is left out, by `where` or as NaN, is not there for derivatives either.
LEAVING_OUT = {
    "nansum": lambda x, mask: jnp.nansum(x),
    "nanmean": lambda x, mask: jnp.nanmean(x),
    "nanvar": lambda x, mask: jnp.nanvar(x),
    "nanstd": lambda x, mask: jnp.nanstd(x, ddof=1),
    "nanprod": lambda x, mask: jnp.nanprod(x),
    "nanmedian": lambda x, mask: jnp.nanmedian(x),
    "nanquantile": lambda x, mask: jnp.nanquantile(x, 0.3),
    "nanmax": lambda x, mask: jnp.nanmax(x),
    "nancumsum": lambda x, mask: jnp.nancumsum(x)[-1],
    "nancumprod": lambda x, mask: jnp.nancumprod(x)[-1],
    "sum": lambda x, mask: jnp.sum(x, where=mask),
    "prod": lambda x, mask: jnp.prod(x, where=mask),
    "mean": lambda x, mask: jnp.mean(x, where=mask),
    "var": lambda x, mask: jnp.var(x, where=mask),
    "std": lambda x, mask: jnp.std(x, where=mask),
    "max": lambda x, mask: jnp.max(x, where=mask, initial=-9.0),
    "logsumexp": lambda x, mask: purax.nn.logsumexp(x, where=mask),
    "softmax": lambda x, mask: purax.nn.softmax(x, where=mask)[0],
    "log_softmax": lambda x, mask: purax.nn.log_softmax(x, where=mask)[0],
}


@pytest.mark.parametrize("name", LEAVING_OUT)
def test_derivatives_of_what_is_left_out_are_zero(name):
    function = LEAVING_OUT[name]
    x = np.array([1.0, np.nan, 3.0, 7.0], np.float32)
    mask = ~np.isnan(x)
    found = purax.grad(function)(jnp.asarray(x), jnp.asarray(mask))
    wanted = purax.grad(function)(jnp.asarray(x[mask]), jnp.asarray(mask[mask]))
    np.testing.assert_allclose(np.asarray(found)[mask], wanted, rtol=1e-5, atol=1e-7)
    assert found[1] == 0


def test_covariances_need_a_dtype_with_fractions_and_observations():
    for function in (jnp.cov, jnp.corrcoef):
        with pytest.raises(
            ValueError, match=f"{function.__name__}: dtype must be a floating or complex dtype, got int32"
        ):
            function(jnp.arange(3), dtype=np.int32)
    assert np.isnan(jnp.cov(jnp.zeros((3, 0)))).all() and jnp.cov(jnp.zeros((3, 0))).shape == (3, 3)
    assert jnp.cov(jnp.zeros((1, 0))).shape == () and jnp.cov(jnp.zeros((0, 3))).shape == (0, 0)
