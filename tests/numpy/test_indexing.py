"""`x[index]` against NumPy, on generated shapes and indices: eager, by operations, compiled, under vmap and grad."""

from __future__ import annotations

import contextlib

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import purax
import purax.numpy as jnp
from purax.errors import NonConcreteBooleanIndexError
from purax.numpy._indexing import indexing
from purax.numpy._indexing.parsing import parse
from purax.xla.array import DeviceArray, from_numpy
from tests.numpy.agreement import values

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
BOUNDS = st.none() | st.integers(-6, 6)
SLICES = st.builds(slice, BOUNDS, BOUNDS, st.sampled_from([None, 1, 2, 3, -1, -2]))


@st.composite
def indices(draw, shape, allow_arrays=True):
    """An index, mostly valid, as a tuple of NumPy arrays and what else may stand between brackets."""
    block = draw(st.lists(st.integers(0, 3), max_size=2))
    parts: list = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        size = shape[axis]
        kind = draw(
            st.sampled_from(["int", "slice", "array", "array", "mask"] if allow_arrays else ["int", "slice"])
        )
        if kind == "slice" or not size:
            parts.append(draw(SLICES))
        elif kind == "int":
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "array":
            own = [draw(st.sampled_from([n, n, 1])) for n in block[draw(st.integers(0, len(block))) :]]
            count = int(np.prod(own))
            flat = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            dtype = draw(st.sampled_from([np.int32, np.int8, np.int64]))
            parts.append(np.array(flat, dtype).reshape(own))
        else:
            ndim = draw(st.integers(1, min(2, len(shape) - axis)))
            count = int(np.prod(shape[axis : axis + ndim]))
            flat = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            parts.append(np.array(flat, bool).reshape(shape[axis : axis + ndim]))
            axis += ndim - 1
        axis += 1
    for extra in draw(
        st.lists(st.sampled_from([None, None, True, False] if allow_arrays else [None]), max_size=2)
    ):
        parts.insert(draw(st.integers(0, len(parts))), extra)
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), ...)
    if len(parts) == 1 and draw(st.booleans()):
        return parts[0]
    return tuple(parts)


@st.composite
def arrays_and_indices(draw, allow_arrays=True):
    shape = draw(SHAPES)
    return values(shape, draw(st.sampled_from(["float32", "int32", "bool"]))), draw(
        indices(shape, allow_arrays)
    )


def ours(index):
    """The index with NumPy's arrays as ours."""
    if isinstance(index, tuple):
        return tuple(map(ours, index))
    return from_numpy(np.array(index)) if isinstance(index, np.ndarray) else index


def split(index):
    """The arrays of positions in an index, and a function that puts others in their places; masks stay."""
    parts = index if isinstance(index, tuple) else (index,)
    where = [i for i, part in enumerate(parts) if isinstance(part, np.ndarray) and part.dtype != bool]

    def rebuild(arrays):
        full = list(parts)
        for i, array in zip(where, arrays, strict=True):
            full[i] = array
        return tuple(full)

    return [from_numpy(np.array(parts[i])) for i in where], rebuild


def expected(x, index):
    """NumPy's result, or None if it refuses."""
    with contextlib.suppress(IndexError, ValueError):
        return np.asarray(x[index])
    return None


def check(result, reference, what):
    assert result.shape == reference.shape, what
    assert result.dtype == reference.dtype, what
    np.testing.assert_array_equal(np.asarray(result), reference, err_msg=str(what))


@settings(max_examples=400)
@given(arrays_and_indices())
def test_reading_is_numpys(case):
    x, index = case
    reference = expected(x, index)
    array = from_numpy(x.copy())
    if reference is None:
        with pytest.raises((IndexError, ValueError)):
            array[ours(index)]
        with pytest.raises((IndexError, ValueError)):
            purax.jit(lambda y: y[index])(array)
        return
    check(array[ours(index)], reference, ("host", index))
    check(array[index], reference, ("NumPy index", index))
    entries, operands = parse(x.shape, ours(index))
    check(indexing.run_read(array, entries, operands), reference, ("operations", index))


@settings(max_examples=60)
@given(arrays_and_indices())
def test_reading_compiled_is_numpys(case):
    x, index = case
    reference = expected(x, index)
    if reference is None:
        return
    array = from_numpy(x.copy())
    check(purax.jit(lambda y: y[index])(array), reference, ("known", index))
    arrays, rebuild = split(index)
    if arrays:
        check(purax.jit(lambda y, *a: y[rebuild(a)])(array, *arrays), reference, ("computed", index))


@settings(max_examples=60)
@given(arrays_and_indices())
def test_vmap_is_a_loop(case):
    x, index = case
    reference = expected(x, index)
    if reference is None:
        return
    batch = np.stack([x, x[...], x]) if x.dtype == bool else np.stack([x, x + 1, x - 1])
    out = purax.vmap(lambda y: y[index])(from_numpy(batch))
    check(out, np.stack([np.asarray(y[index]) for y in batch]), ("array", index))
    arrays, rebuild = split(index)
    if arrays and not any(part is False for part in rebuild(arrays)):
        pairs = [(np.asarray(a), np.asarray(a)[..., ::-1] if a.ndim else np.asarray(a)) for a in arrays]
        rolled = [from_numpy(np.stack(pair)) for pair in pairs]
        out = purax.vmap(lambda *a: from_numpy(x)[rebuild(a)])(*rolled)
        rows = [np.asarray(x[rebuild([np.asarray(a)[i] for a in rolled])]) for i in range(2)]
        check(out, np.stack(rows), ("positions", index))


@settings(max_examples=60)
@given(arrays_and_indices())
def test_gradient_counts_how_often_an_element_is_read(case):
    x, index = case
    x = x.astype(np.float32)
    reference = expected(x, index)
    if reference is None:
        return
    weights = values(reference.shape, "float32", seed=1)
    out, pullback = purax.vjp(lambda y: y[ours(index)], from_numpy(x))
    (gradient,) = pullback(from_numpy(weights))
    counts = np.zeros(x.shape, np.float64)
    np.add.at(counts, index, weights.astype(np.float64))
    np.testing.assert_allclose(np.asarray(gradient), counts, rtol=1e-6, atol=1e-6)
    _, tangent = purax.jvp(lambda y: y[ours(index)], (from_numpy(x),), (from_numpy(np.asarray(2 * x)),))
    np.testing.assert_array_equal(np.asarray(tangent), 2 * reference)


@settings(max_examples=200)
@given(arrays_and_indices(allow_arrays=False))
def test_basic_indices_of_traced_arrays_are_slices(case):
    x, index = case
    reference = expected(x, index)
    if reference is None:
        return
    jaxpr = purax.make_jaxpr(lambda y: y[index])(from_numpy(x.copy()))
    names = {eqn.primitive.name for eqn in jaxpr.jaxpr.eqns}
    assert names <= {"slice", "squeeze", "rev", "broadcast_in_dim"}, names
    (out,) = purax.core.jaxpr.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, from_numpy(x.copy()))
    check(out, reference, index)


def test_scalars_of_all_kinds_are_positions():
    x = jnp.arange(5.0)
    for i in (3, -2, np.int8(3), np.uint64(3), np.array(3), jnp.array(3), jnp.uint8(3)):
        assert float(x[i]) == 3.0
        assert float(purax.jit(lambda y, i=i: y[i])(x)) == 3.0
        assert x[i].shape == ()


def test_computed_scalars_wrap_and_clip_as_jax_does():
    x = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    for i in (0, 4, -1, -5, 5, 9, -6, -100):
        got = purax.jit(lambda y, i: (y[i], y[i, 1], y[:, i % 2], y[i, ::-1], y[None, i, :1]))(x, i)
        wanted = jax.jit(lambda y, i: (y[i], y[i, 1], y[:, i % 2], y[i, ::-1], y[None, i, :1]))(x, i)
        for a, b in zip(got, wanted, strict=True):
            check(a, np.asarray(b), i)


def test_computed_positions_out_of_bounds_are_clipped():
    x = jnp.arange(5.0)
    i = jnp.array([4, 5, 100, -5, -6, -100])
    assert purax.jit(lambda y, i: y[i])(x, i).tolist() == [4, 4, 4, 0, 0, 0]
    assert purax.vmap(lambda i: x[i])(i).tolist() == [4, 4, 4, 0, 0, 0]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (5, "index 5 is out of bounds for axis 0 with size 5"),
        (-6, "index -6 is out of bounds for axis 0 with size 5"),
        ((slice(None), 3), "index 3 is out of bounds for axis 1 with size 3"),
        ((slice(None), np.array([0, -4])), "index -4 is out of bounds for axis 1 with size 3"),
        (np.array([[0, 7]]), "index 7 is out of bounds for axis 0 with size 5"),
        (2**70, "is out of bounds for axis 0 with size 5"),
    ],
)
def test_known_positions_out_of_bounds_raise(index, message):
    x, large = jnp.zeros((5, 3)), jnp.zeros((5, 3, 5000))
    for f in (lambda y: y[index], lambda y: y.at[index].set(1.0), lambda y: y.at[index].apply(jnp.sin)):
        for transformed in (f, purax.jit(f), purax.grad(lambda y, f=f: f(y).sum())):
            with pytest.raises(IndexError, match=message):
                transformed(x)
        with pytest.raises(IndexError, match=message):
            purax.vmap(f, 2)(large[:, :, :4])
        with pytest.raises(IndexError, match=message):
            f(large)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ([0, 1], TypeError, r"jnp\.array"),
        ([[0, 1], [0, 1]], TypeError, r"x\[tuple\(index\)\]"),
        ("a", TypeError, "string"),
        (1.0, TypeError, "integer or boolean"),
        (np.float32(1), TypeError, "integer or boolean"),
        (np.array([1.0]), TypeError, "float64"),
        (([1.0, 2.0],), TypeError, "float32"),
        (slice(1.0, 2), TypeError, "slices take integers"),
        (slice(None, None, 0), ValueError, "step"),
        ((0, 0, 0), IndexError, "too many indices"),
        ((..., ...), IndexError, "single ellipsis"),
        ({}, IndexError, "only integers, slices"),
        (np.array([True, False]), IndexError, "boolean index did not match"),
        ((np.array([0, 1]), np.array([0, 1, 2])), IndexError, "could not be broadcast"),
    ],
)
def test_bad_indices_are_explained(index, error, message):
    x = jnp.zeros((3, 4))
    for f in (lambda y: y[index], lambda y: y.at[index].set(1.0), purax.jit(lambda y: y[index])):
        with pytest.raises(error, match=message):
            f(x)


def test_lists_inside_of_a_tuple_are_arrays():
    x = np.arange(12).reshape(3, 4)
    for index in (
        ([0, 2],),
        ([0, 2], [1, -1]),
        (slice(None), [True, False, True, True]),
        ([[0], [1]], 1),
        ([],),
    ):
        check(from_numpy(x)[index].astype(x.dtype), x[index], index)
    i = jnp.array(1)
    assert purax.jit(lambda y, i: y[[0, i], 0])(jnp.arange(6).reshape(3, 2), i).tolist() == [0, 2]


def test_a_traced_mask_says_what_to_write():
    with pytest.raises(NonConcreteBooleanIndexError) as caught:
        purax.jit(lambda x: x[x > 0])(jnp.arange(3.0))
    for advice in ("jnp.where", ".at[x > 0].set", "size=", "Array boolean indices must be concrete"):
        assert advice in str(caught.value)
    with pytest.raises(NonConcreteBooleanIndexError):
        purax.vmap(lambda x: x[x > 0])(jnp.ones((2, 3)))
    assert purax.grad(lambda x: x[x > 1].sum())(jnp.arange(4.0)).tolist() == [0, 0, 1, 1]


def test_a_slice_of_unknown_length_says_what_to_write():
    for f in (lambda x, n: x[:n], lambda x, n: x[n:], lambda x, n: x[n : 2 * n], lambda x, n: x[::n]):
        hint = r"dynamic_slice_in_dim\(x, n,|jnp.arange\(x.shape\[0\]\) < n|bounds static"
        with pytest.raises(IndexError, match=hint) as caught:
            purax.jit(f)(jnp.arange(5.0), 2)
        assert "static" in str(caught.value)


@pytest.mark.parametrize(
    ("traced", "known"),
    [
        (lambda x, i: x[i : i + 3], lambda x, i: x[i : i + 3]),
        (lambda x, i: x[i - 2 : i], lambda x, i: x[i - 2 : i]),
        (lambda x, i: x[2 * i : 2 * i + 4], lambda x, i: x[2 * i : 2 * i + 4]),
        (lambda x, i: x[i * 2 + 1 : 3 + i + i], lambda x, i: x[i * 2 + 1 : 3 + i + i]),
        (lambda x, i: x[i : i + 3, i], lambda x, i: x[i : i + 3, i]),
        (lambda x, i: x[1, i : i + 2], lambda x, i: x[1, i : i + 2]),
        (lambda x, i: x[jnp.array([0, 2]), i : i + 2], lambda x, i: x[np.array([0, 2]), i : i + 2]),
        (lambda x, i: x[i : i + 2, None, ::-2], lambda x, i: x[i : i + 2, None, ::-2]),
        (lambda x, i: x[-2 - i : -i], lambda x, i: x[-2 - i : -i]),
    ],
)
def test_a_slice_of_provable_length_is_a_window(traced, known):
    x = np.arange(60.0, dtype=np.float32).reshape(12, 5)
    array = from_numpy(x)
    for i in (2, 3):
        reference = known(x, i)
        check(purax.jit(traced)(array, i), reference, i)
        weights = from_numpy(values(reference.shape, "float32"))
        gradient = purax.jit(purax.grad(lambda y, i, w=weights: (traced(y, i) * w).sum()))(array, i)
        wanted = purax.grad(lambda y, i=i, w=weights: (traced(y, i) * w).sum())(array)
        np.testing.assert_array_equal(np.asarray(gradient), np.asarray(wanted))
    places = jnp.array([2, 3])
    both = np.stack([known(x, 2), known(x, 3)])
    check(purax.vmap(lambda i: traced(array, i))(places), both, "vmap")
    check(purax.jit(purax.vmap(traced, (None, 0)))(array, places), both, "jit of vmap")


def test_updates_of_windows():
    x = np.arange(10.0, dtype=np.float32)
    for i in (0, 3, 8):
        got = purax.jit(lambda y, i: (y.at[i : i + 2].set(7.0), y.at[i : i + 2].add(y[:2])))(x, i)
        first, second = x.copy(), x.copy()
        first[i : i + 2] = 7.0
        second[i : i + 2] += x[:2]
        check(got[0], first, i)
        check(got[1], second, i)


def test_results_keep_weak_types():
    x = jnp.asarray(2.0)
    assert x.weak_type
    for index in (None, ..., (), (None, None), False, True):
        f = lambda y, index=index: y[index]  # noqa: E731
        assert f(x).weak_type and purax.jit(f)(x).weak_type
        assert not f(jnp.float32(2)).weak_type


@pytest.mark.cpu_only("of an accelerator's memory nothing is kept on the host")
def test_a_small_part_does_not_keep_a_large_array():
    x = jnp.zeros((1000, 100))
    x.block_until_ready()
    assert x[0, :5].host_value().base is None
    assert float(x[-1, -1]) == 0.0


def test_large_arrays_run_as_one_program():
    x = values((40_000,), "float32")
    i = np.random.default_rng(0).integers(-40_000, 40_000, 30_000).astype(np.int32)
    check(from_numpy(x)[from_numpy(i)], x[i], "positions")
    check(from_numpy(x)[from_numpy(x > 0)], x[x > 0], "mask")
    check(
        from_numpy(x.reshape(200, 200))[::-3, None, 5:100:2],
        x.reshape(200, 200)[::-3, None, 5:100:2],
        "slices",
    )
    wide = i.astype(np.uint32) % 40_000
    check(from_numpy(x)[from_numpy(wide)], x[wide], "unsigned")


def test_narrow_positions_reach_far():
    x = from_numpy(np.arange(300, dtype=np.int32))
    for dtype in ("int8", "uint8", "int16", "uint16", "uint32"):
        i = from_numpy(np.array([100, 5], dtype))
        assert purax.jit(lambda y, i: y[i])(x, i).tolist() == [100, 5]
    i = from_numpy(np.array([-1, -128], np.int8))
    assert purax.jit(lambda y, i: y[i])(x, i).tolist() == [299, 172]
    assert x[i].tolist() == [299, 172]


def test_empty_arrays():
    x = jnp.zeros((0, 3))
    assert x[np.array([], int)].shape == (0, 3)
    assert x[:, np.array([0, 1])].shape == (0, 2)
    assert purax.jit(lambda y, i: y[:, i])(x, jnp.array([0, 1])).shape == (0, 2)
    with pytest.raises(IndexError, match="size 0"):
        x[0]
    with pytest.raises(IndexError, match="size 0"):
        purax.jit(lambda y, i: y[i])(x, 0)
    with pytest.raises(IndexError, match="size 0"):
        purax.jit(lambda y, i: y[i])(x, jnp.array([0]))


def test_the_place_of_broadcast_axes_is_numpys_and_jaxs():
    x = np.zeros((2, 3, 4, 5), np.float32)
    a = np.array([0, 1, 1])
    b = np.array([[0], [1]])
    for index in (
        (slice(None), a, ..., b),
        (0, slice(None), a),
        (slice(None), 0, a),
        (a, None, b),
        (None, a, None, 0),
        (0, ..., b),
        (slice(None), a, b),
        (slice(None), a, slice(None), b),
        (True, slice(None), 0),
        (slice(None), slice(None), 0, True),
        (0, slice(None), np.array(1)),
        (b, slice(1, None), a, None),
    ):
        shape = from_numpy(x)[ours(index)].shape
        theirs = jax.eval_shape(lambda y, index=index: y[index], x)
        assert shape == x[index].shape == theirs.shape, index


def test_concrete_results_are_concrete():
    assert type(jnp.arange(3)[0]) is DeviceArray
