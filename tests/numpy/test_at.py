"""`x.at[index]` against NumPy's assignment and `ufunc.at` on generated indices, and against jax on types and modes."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import purax
import purax.numpy as jnp
from purax.numpy._indexing.write import OPERATIONS
from purax.xla.array import from_numpy
from tests.numpy.agreement import values
from tests.numpy.test_indexing import SHAPES, expected, indices, ours, split

pytestmark = pytest.mark.sampled(2)

UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@st.composite
def updates(draw, names=(*UFUNCS, "set"), dtypes=("float32", "int32")):
    """An array, an index that NumPy takes, values for it, and the name of an operation."""
    shape = draw(SHAPES)
    x = values(shape, draw(st.sampled_from(dtypes)))
    index = draw(indices(shape))
    target = expected(x, index)
    if target is None:
        return x, index, None, "set"
    cut = draw(st.integers(0, target.ndim))
    own = tuple(draw(st.sampled_from([n, n, 1])) for n in target.shape[cut:])
    return x, index, np.asarray(np.round(values(own, x.dtype.name, seed=3))), draw(st.sampled_from(names))


def model(x, index, y, name):
    """The update by NumPy, in double precision."""
    out = np.array(x, np.float64)
    if name == "set":
        out[index] = y
    else:
        UFUNCS[name].at(out, index, np.asarray(y, np.float64))
    return out.astype(x.dtype)


@settings(max_examples=300)
@given(updates())
def test_updating_is_numpys(case):
    x, index, y, name = case
    array = from_numpy(x.copy())
    if y is None:
        with pytest.raises((IndexError, ValueError)):
            array.at[ours(index)].set(0)
        return
    reference = model(x, index, y, name)
    value = from_numpy(y.copy())
    close(getattr(array.at[ours(index)], name)(value), reference, ("host", index, name))
    close(getattr(array.at[index], name)(y), reference, ("NumPy operands", index, name))
    # With a mode, nothing is left to NumPy; there is nothing out of bounds to drop.
    close(getattr(array.at[ours(index)], name)(value, mode="drop"), reference, ("operations", index, name))


def close(result, reference, what):
    assert result.shape == reference.shape, what
    assert result.dtype == reference.dtype, what
    np.testing.assert_allclose(np.asarray(result), reference, rtol=1e-5, atol=1e-5, err_msg=str(what))


@settings(max_examples=50)
@given(updates())
def test_updating_compiled_is_numpys(case):
    x, index, y, name = case
    if y is None:
        return
    reference = model(x, index, y, name)
    array, value = from_numpy(x.copy()), from_numpy(y)
    arrays, rebuild = split(index)
    result = purax.jit(lambda x, y, *a: getattr(x.at[rebuild(a)], name)(y))(array, value, *arrays)
    close(result, reference, (index, name))


@settings(max_examples=50)
@given(updates(dtypes=("float32",)))
def test_vmap_of_updates_is_a_loop(case):
    x, index, y, name = case
    if y is None:
        return
    xs = np.stack([x, x + 1])
    ys = np.stack([y, y - 2])
    both = np.stack([model(xs[i], index, ys[i], name) for i in range(2)])
    update = lambda x, y: getattr(x.at[index], name)(y)  # noqa: E731
    close(purax.vmap(update)(from_numpy(xs), from_numpy(ys)), both, (index, name))
    one = np.stack([model(x, index, ys[i], name) for i in range(2)])
    close(purax.vmap(update, (None, 0))(from_numpy(x), from_numpy(ys)), one, (index, name))
    arrays, rebuild = split(index)
    if arrays:
        doubled = [from_numpy(np.stack([np.asarray(a)] * 2)) for a in arrays]
        result = purax.vmap(lambda *a: getattr(from_numpy(x).at[rebuild(a)], name)(from_numpy(y)))(*doubled)
        close(result, np.stack([model(x, index, y, name)] * 2), (index, name))


@settings(max_examples=40)
@given(updates(names=("set", "add", "subtract", "multiply"), dtypes=("float32",)))
def test_derivatives_of_updates_are_differences(case):
    x, index, y, name = case
    if y is None:
        return
    step = 1e-3
    dx, dy = values(x.shape, "float32", seed=5), values(y.shape, "float32", seed=6)

    def f(x, y):
        return getattr(x.at[ours(index)], name)(y)

    operands, tangents = (
        (from_numpy(x), from_numpy(y)),
        (from_numpy(np.asarray(dx)), from_numpy(np.asarray(dy))),
    )
    _, tangent = purax.jvp(f, operands, tangents)
    wide = [np.asarray(a, np.float64) for a in (x, y, dx, dy)]

    def shifted(t):
        out = np.asarray(wide[0] + t * wide[2])
        if name == "set":
            out[index] = wide[1] + t * wide[3]
        else:
            UFUNCS[name].at(out, index, wide[1] + t * wide[3])
        return out

    difference = (shifted(step) - shifted(-step)) / (2 * step)
    np.testing.assert_allclose(np.asarray(tangent), difference, rtol=1e-2, atol=1e-2)
    weights = from_numpy(np.asarray(values(x.shape, "float32", seed=7)))
    _, pullback = purax.vjp(f, *operands)
    back = pullback(weights)
    forward = np.vdot(np.asarray(weights, np.float64), np.asarray(tangent, np.float64))
    backward = sum(
        np.vdot(np.asarray(g, np.float64), np.asarray(t)) for g, t in zip(back, tangents, strict=True)
    )
    np.testing.assert_allclose(forward, backward, rtol=1e-3, atol=1e-3)


# --- masks


@settings(max_examples=40)
@given(st.data())
def test_traced_masks(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    first = data.draw(st.integers(0, len(shape)))
    last = data.draw(st.integers(first, len(shape)))
    flat = data.draw(st.lists(st.booleans(), min_size=64, max_size=64))
    mask = np.asarray(np.resize(np.array(flat), shape[first:last]))
    before = tuple(data.draw(st.sampled_from([slice(None), slice(None, None, -1), 0])) for _ in shape[:first])
    after = tuple(data.draw(st.sampled_from([slice(None), slice(None, None, -1), -1])) for _ in shape[last:])
    if mask.ndim:
        index, none = (*before, mask, *after), (*before, np.zeros_like(mask), *after)
    else:
        index, none = (*before, bool(mask), *after), (*before, False, *after)
    x = values(shape, "float32")
    name = data.draw(st.sampled_from(["set", "add", "multiply", "max"]))
    # Values fit any number of elements: the axis of the mask, of size 0 if there are none, has size 1 in them.
    sizes = [n or 1 for n in x[none].shape]
    y = values(tuple(sizes[data.draw(st.integers(0, len(sizes))) :]), "float32", seed=4)
    reference = model(x, index, np.asarray(y), name)
    traced = from_numpy(mask)
    compiled = purax.jit(lambda x, m, y: getattr(x.at[(*before, m, *after)], name)(y))
    close(compiled(from_numpy(x), traced, from_numpy(np.asarray(y))), reference, (index, name))
    eager = getattr(from_numpy(x).at[(*before, traced, *after)], name)(from_numpy(np.asarray(y)), mode="drop")
    close(eager, reference, (index, name))


def test_masked_updates_under_jit():
    x = jnp.arange(6.0).reshape(2, 3)
    run = purax.jit(lambda f, x: f(x), static_argnums=0)
    assert run(lambda x: x.at[x > 2].set(0), x).tolist() == [[0, 1, 2], [0, 0, 0]]
    assert run(lambda x: x.at[x > 2].divide(2), x).tolist() == [[0, 1, 2], [1.5, 2, 2.5]]
    assert run(lambda x: x.at[x > 2].power(2), x).tolist() == [[0, 1, 2], [9, 16, 25]]
    assert run(lambda x: x.at[x > 2].apply(jnp.negative), x).tolist() == [[0, 1, 2], [-3, -4, -5]]
    assert run(lambda x: x.at[x[:, 0] > 2].set(x[0]), x).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert run(lambda x: x.at[:, x[0] > 0].min(jnp.ones((2, 1))), x).tolist() == [[0, 1, 1], [3, 1, 1]]
    assert run(lambda x: x.at[x[:, 0] > 2, 1].add(10), x).tolist() == [[0, 1, 2], [3, 14, 5]]
    gradient = run(purax.grad(lambda x: (x.at[x > 2].set(0) ** 2).sum()), x)
    assert gradient.tolist() == [[0, 2, 4], [0, 0, 0]]
    batched = purax.vmap(lambda row: row.at[row > 2].multiply(10))(x)
    assert batched.tolist() == [[0, 1, 2], [30, 40, 50]]
    big = purax.numpy.arange(40_000)
    assert int(big.at[big >= 39_999].set(-1).min()) == -1


def test_values_that_depend_on_the_number_of_true_elements():
    x = jnp.arange(6.0)
    mask = x > 2
    assert x.at[mask].set(jnp.array([7.0, 8.0, 9.0])).tolist() == [0, 1, 2, 7, 8, 9]
    with pytest.raises(ValueError, match=r"\(3,\) cannot be broadcast to \(n\).*jnp\.where"):
        purax.jit(lambda x, y: x.at[x > 2].set(y))(x, jnp.ones(3))
    with pytest.raises(NotImplementedError, match="traced mask"):
        purax.jit(lambda x: x.at[x[:, 0] > 2, x[0] < 1].set(1))(x[:, None])


# --- modes

MODES = """\
x.at[i].get(mode='fill')
x.at[i].get(mode='fill', fill_value=-1)
x.at[i].get(mode='clip')
x.at[i].get(mode='drop')
x.at[i].get(mode='promise_in_bounds')
x.at[i].get(wrap_negative_indices=False, mode='fill')
x.at[i, 1].get(mode='fill')
x.at[:, i].get(mode='fill')
x.at[i, ::2].get(mode='clip')
x.at[i].set(9, mode='drop')
x.at[i].set(9, mode='clip')
x.at[i].add(9, mode='clip')
x.at[i].max(9, mode='fill')
x.at[i].multiply(9, mode='promise_in_bounds')
x.at[i].add(1, wrap_negative_indices=False, mode='drop')
x.at[i, ::2].set(5, mode='drop')
x.at[i, 0].divide(2, mode='drop')""".split("\n")


@pytest.mark.parametrize(
    ("dtype", "i"),
    [
        *[(dtype, [1, 7, -1, -7]) for dtype in ("float32", "int32", "uint8", "bool")],
        *[("float32", i) for i in (7, -7)],
    ],
)
def test_modes_are_jaxs(dtype, i):
    x = values((5, 6), dtype)
    i = np.array(i, np.int32)
    cases = [
        s for s in MODES if dtype != "bool" or not any(f".{n}(" in s for n in ("add", "multiply", "divide"))
    ]
    if dtype in ("uint8", "bool"):
        cases = [s for s in cases if "-1" not in s]
    cases = [s for s in cases if dtype != "bool" or "9" not in s and "5" not in s]

    def program(x, i):
        return [eval(case, {"x": x, "i": i}) for case in cases]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = jax.jit(program)(x, i)
        array, places = from_numpy(x.copy()), from_numpy(i)
        static = int(i) if i.ndim == 0 else i
        for got in (program(array, places), program(array, static), purax.jit(program)(array, places)):
            for case, a, b in zip(cases, got, wanted, strict=True):
                close(a, np.asarray(b), case)


def test_unknown_modes_are_named():
    with pytest.raises(ValueError, match="'wrap'"):
        jnp.zeros(3).at[0].set(1.0, mode="wrap")
    with pytest.raises(ValueError, match="'wrap'"):
        jnp.zeros(3).at[0].get(mode="wrap")


def test_computed_positions_out_of_bounds_are_dropped():
    x = jnp.arange(5.0)
    f = purax.jit(
        lambda x, i: (x.at[i].set(9), x.at[i, None].add(1.0), x.at[i].apply(jnp.negative), x.at[i].divide(2))
    )
    for i in (5, -6):
        assert all(y.tolist() == [0, 1, 2, 3, 4] for y in f(x, i))
    assert [y.tolist()[3] for y in f(x, -2)] == [9, 4, -3, 1.5]


# --- types

TYPES = [
    line.split(": ", 1)
    for line in """\
int32: x.at[0].set(1.5)
int32: x.at[0].add(1.5)
int32: x.at[0].set(True)
int32: x.at[0].divide(2)
int32: x.at[1:3].power(2)
int32: x.at[0].set(np.uint32(3))
int32: x.at[0].set(np.int64(3))
float32: x.at[0].set(1)
float32: x.at[0].set(np.float64(1))
float32: x.at[0:2].set([1, 2])
float32: x.at[0:2].set((1, 2))
bfloat16: x.at[0].set(1.5)
bfloat16: x.at[0].add(np.float32(1.1))
bool: x.at[0].set(False)
bool: x.at[0].set(2)
bool: x.at[0].max(False)
bool: x.at[0].min(False)
complex64: x.at[0].set(2)
complex64: x.at[1].multiply(1j)
complex64: x.at[1].min(2)
complex64: x.at[np.array([1, 1, 2])].add(1j)
uint8: x.at[np.array([1, 1])].add(200)
int8: x.at[1].subtract(100)
float16: x.at[1].divide(3)
float32: x.at[np.array([1, 1])].divide(2)
float32: x.at[np.array([1, 1])].power(2)
float32: x.at[np.array([1, 1])].apply(lambda v: v + 1)
float32: x.at[1:3].apply(lambda v: v.sum())""".split("\n")
]


@pytest.mark.parametrize(("dtype", "expression"), TYPES)
def test_types_values_and_warnings_are_jaxs(dtype, expression):
    x = values((4,), dtype) if dtype != "bfloat16" else values((4,), "float32").astype(jax_numpy.bfloat16)

    def run(library, array):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = eval(expression, {"x": array, "np": np, "jnp": library})
        return result, [w for w in caught if w.category is FutureWarning]

    wanted, their_warnings = run(jax_numpy, jax_numpy.asarray(x))
    for transform in (lambda f: f, purax.jit):
        got, our_warnings = None, None

        def f(y):
            nonlocal our_warnings
            result, our_warnings = run(jnp, y)
            return result

        got = transform(f)(from_numpy(x.copy()))
        assert bool(our_warnings) == bool(their_warnings)
        assert got.weak_type == wanted.weak_type
        assert got.dtype == wanted.dtype
        # jax divides by multiplying with the inverse: one unit in the last place off.
        tolerance = {"bfloat16": 1e-2, "float16": 1e-3}.get(dtype, 1e-6)
        ours, theirs = (np.asarray(a).astype(np.complex64) for a in (got, wanted))
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)


def test_a_conversion_leaves_other_elements_alone():
    x = jnp.array([2**24 + 1, 5, 2**30 + 1])
    with pytest.warns(FutureWarning, match="float32 .* int32"):
        assert x.at[1].set(2.5).tolist() == [2**24 + 1, 2, 2**30 + 1]
    with pytest.warns(FutureWarning):
        assert x.at[1].add(2.6).tolist() == [2**24 + 1, 7, 2**30 + 1]
    assert jnp.array([1, 2]).at[1].divide(2.5).tolist() == pytest.approx([1, 0.8])


def test_weak_arrays_stay_weak():
    x = jnp.asarray(2.0)
    for f in (
        lambda x: x.at[()].set(jnp.float32(3)),
        lambda x: x.at[...].add(1),
        lambda x: x.at[None].set(3.0),
    ):
        assert f(x).weak_type and purax.jit(f)(x).weak_type


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        (lambda x: x.at[0].set(jnp.ones(2)), ValueError, r"\(2,\) cannot be broadcast to the shape \(\)"),
        (lambda x: x.at[0].set(jnp.ones(1)), ValueError, r"\(1,\) cannot be broadcast to the shape \(\)"),
        (lambda x: x.at[0:2].set(jnp.ones(3)), ValueError, r"\(3,\) cannot be broadcast to the shape \(2,\)"),
        (lambda x: x.at[0:2].set(jnp.ones((1, 2))), ValueError, r"\(1, 2\) cannot be broadcast"),
        (lambda x: x.at[0].set(None), TypeError, "None"),
        (lambda x: x.at[0].set("a"), TypeError, "'a'"),
        (lambda x: x.astype(int).at[0].set(2**40), OverflowError, "too large"),
        (lambda x: (x > 1).at[0].add(True), TypeError, "bool"),
        (lambda x: x.at[0:2].apply(lambda v: jnp.stack([v, v])), TypeError, "scalar to a scalar"),
        (lambda x: x.at[0].apply(lambda v: jnp.stack([v, v])), TypeError, "scalar to a scalar"),
    ],
)
def test_bad_updates_are_explained(update, error, message):
    for f in (update, purax.jit(update)):
        with pytest.raises(error, match=message):
            f(jnp.arange(4.0))


# --- apply, divide, power


def test_apply_repeats_where_positions_repeat():
    x = jnp.arange(5.0)
    i = jnp.array([1, 1, 3, -2])

    def update(x, i):
        return x.at[i].apply(lambda v: 2 * v + 1)

    for f in (update, purax.jit(update)):
        assert f(x, i).tolist() == [0, 7, 2, 15, 4]
    assert (
        purax.jit(lambda x, i: x.at[i, i].apply(jnp.sin))(jnp.zeros((5, 5)), i).tolist()
        == np.zeros((5, 5)).tolist()
    )
    grad = purax.grad(lambda x: x.at[jnp.array([1, 3])].apply(jnp.square).sum())(x)
    assert grad.tolist() == [1, 2, 1, 6, 1]
    twice = purax.grad(lambda x: x.at[i].apply(jnp.square).sum())(x)
    assert twice.tolist() == [1, 4, 1, 108, 1]


def test_apply_sees_scalars():
    x = jnp.arange(6.0).reshape(2, 3)
    seen = []
    x.at[0].apply(lambda v: (seen.append(v.shape), v)[1])
    assert set(seen) == {()}
    assert x.at[:0].apply(jnp.sin).tolist() == x.tolist()


GRADIENTS = """\
x.at[1].power(3.)
x.at[1:3].divide(x[:2] + 2)
x.at[i].divide(x[:2] + 2, unique_indices=True)
x.at[i].max(x[:2] + 2)
x.at[0].max(x[0])
x.at[i].min(0.5)
x.at[i].set(x[2:4])
x.at[::-2].multiply(x[:3])
x.at[1:3].power(x[:2] + 1)
x[i] * x[-2:]
x.at[i].get(mode='fill', fill_value=3.) * 2
x.at[i].set(x[:2] ** 2, mode='drop')""".split("\n")


@pytest.mark.parametrize("expression", GRADIENTS)
def test_gradients_are_jaxs(expression):
    x = np.array([0.5, 1.5, -2.0, 3.0, 0.25], np.float32)
    i = np.array([3, 1], np.int32)
    weights = np.linspace(1, 2, 5, dtype=np.float32)

    def loss(x, i, w):
        y = eval(expression, {"x": x, "i": i})
        return (y * w[: y.shape[0]]).sum()

    wanted = np.asarray(jax.jit(jax.grad(loss))(x, i, weights))
    operands = [from_numpy(a.copy()) for a in (x, i, weights)]
    for f in (purax.grad(loss), purax.jit(purax.grad(loss))):
        np.testing.assert_allclose(np.asarray(f(*operands)), wanted, rtol=1e-5, atol=1e-6)


def test_large_updates_run_as_one_program():
    x = values((40_000,), "float32")
    i = np.random.default_rng(0).integers(-40_000, 40_000, 30_000).astype(np.int32)
    for name in OPERATIONS:
        if name in UFUNCS:
            close(getattr(from_numpy(x).at[from_numpy(i)], name)(2.0), model(x, i, np.float32(2), name), name)
    close(from_numpy(x).at[5:100:7].set(1.0), model(x, slice(5, 100, 7), np.float32(1), "set"), "stride")
    square, index = x.reshape(200, 200), (slice(3, None), slice(None, None, -2))
    close(from_numpy(square).at[index].add(1.0), model(square, index, np.float32(1), "add"), "strides")


def test_at_of_nothing_and_of_scalars():
    x = jnp.float32(3)
    assert float(x.at[()].set(2)) == 2 and float(x.at[...].add(2)) == 5
    assert jnp.arange(3).at[[],].set(1).tolist() == [0, 1, 2]
    assert purax.jit(lambda x, i: x.at[i].set(1))(jnp.zeros((0, 2)), jnp.array([0])).shape == (0, 2)
    assert jnp.arange(3).at[1:1].add(5).tolist() == [0, 1, 2]


def test_the_array_is_not_changed():
    x = jnp.zeros(3)
    y = x.at[0].set(1.0)
    assert x.tolist() == [0, 0, 0] and y.tolist() == [1, 0, 0]
    assert "IndexUpdateRef" in repr(x.at[0])


def test_random_keys_are_indexed():
    keys = purax.random.split(purax.random.key(0), 3)
    assert keys[1].shape == () and keys[1:].shape == (2,)
    words = purax.random.key_data(keys)
    assert purax.random.key_data(keys[jnp.array([2, 0])]).tolist() == words[jnp.array([2, 0])].tolist()
    swapped = keys.at[0].set(keys[2])
    assert purax.random.key_data(swapped)[0].tolist() == words[2].tolist()


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 2), (3, 3, 3), (1, 1), (0, 3), (2, 2, 2, 2)])
def test_fill_diagonal_is_numpys(shape):
    x = values(shape, "float32")
    for val in (1.5, np.array([1.0, 2.0, 3.0], np.float32), np.ones((2, 2), np.float32)):
        for wrap in (False, True):
            reference = x.copy()
            np.fill_diagonal(reference, val, wrap)
            close(jnp.fill_diagonal(from_numpy(x), val, wrap, inplace=False), reference, (shape, val, wrap))
    compiled = purax.jit(lambda x, v: jnp.fill_diagonal(x, v, inplace=False))(from_numpy(x), 1.5)
    np.fill_diagonal(x, 1.5)
    close(compiled, x, shape)


def test_fill_diagonal_explains():
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.fill_diagonal(jnp.zeros((2, 2)), 1.0)
    with pytest.raises(ValueError, match="at least 2 axes"):
        jnp.fill_diagonal(jnp.zeros(2), 1.0, inplace=False)
    with pytest.raises(ValueError, match="same size"):
        jnp.fill_diagonal(jnp.zeros((2, 2, 3)), 1.0, inplace=False)
    with pytest.raises(ValueError, match="no values"):
        jnp.fill_diagonal(jnp.zeros((2, 2)), jnp.zeros(0), inplace=False)
