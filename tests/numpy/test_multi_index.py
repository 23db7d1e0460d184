"""`ravel_multi_index` and `unravel_index` against NumPy, and against jax on types and positions out of bounds."""

from __future__ import annotations

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import purax
import purax.numpy as jnp
from purax.errors import ConcretizationTypeError


@st.composite
def places(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    count = draw(st.integers(0, 4))
    flat = draw(st.lists(st.integers(0, int(np.prod(shape)) - 1), min_size=count, max_size=count))
    return shape, np.array(flat, draw(st.sampled_from(["int32", "uint8", "int64", "int16"])))


@settings(max_examples=100)
@given(places(), st.sampled_from("CF"), st.booleans())
def test_there_and_back(case, order, compiled):
    shape, flat = case
    parts = np.unravel_index(flat, shape)
    transform = purax.jit if compiled and flat.size < 2 else (lambda f: f)
    ours = transform(lambda i: jnp.unravel_index(i, shape))(jnp.asarray(flat))
    for x, y in zip(ours, parts, strict=True):
        np.testing.assert_array_equal(x, y)
    expected = np.ravel_multi_index(parts, shape, order=order)
    np.testing.assert_array_equal(jnp.ravel_multi_index(ours, shape, order=order), expected)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_modes(mode, order):
    shape = (2, 3, 4)
    inside = (np.array([[0], [1]]), np.array([0, 2]), np.int8(3))
    outside = (np.array([-1, 5, 1]), np.array([3, -4, 7]), np.array([4, 100, -9]))
    for index in (inside, outside):
        try:
            expected = np.ravel_multi_index(index, shape, mode=mode, order=order)
        except ValueError:
            with pytest.raises(ValueError, match=r"multi_index\[\d\] has the position .* axis of size"):
                jnp.ravel_multi_index(index, shape, mode=mode, order=order)
            continue
        ours = jnp.ravel_multi_index(index, shape, mode=mode, order=order)
        np.testing.assert_array_equal(ours, expected)
        if mode != "raise":
            compiled = purax.jit(lambda *i: jnp.ravel_multi_index(i, shape, mode=mode, order=order))(*index)
            np.testing.assert_array_equal(compiled, expected)
            assert ours.dtype == jax_numpy.ravel_multi_index(index, shape, mode=mode, order=order).dtype


def test_computed_positions_are_clipped_as_in_jax():
    flat = np.array([0, 5, 6, 100, -1, -6, -7, -100], np.int32)
    ours = purax.jit(lambda i: jnp.unravel_index(i, (2, 3)))(flat)
    theirs = jax.jit(lambda i: jax_numpy.unravel_index(i, (2, 3)))(flat)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == y.dtype


def test_types():
    """Positions keep their dtype; where it does not hold the result, a wider one does."""
    assert [x.dtype for x in jnp.unravel_index(jnp.int8(3), (20, 20))] == [np.int8, np.int8]
    assert jnp.ravel_multi_index((jnp.uint8(19), jnp.uint8(19)), (20, 20)).item() == 399  # jax has 143
    assert jnp.ravel_multi_index((jnp.int32(2**16), jnp.int32(1)), (2**17, 2**17)).item() == 2**33 + 1
    assert jnp.ravel_multi_index((1, 2), (2, 3), dtype="int16").dtype == np.int16
    assert jnp.unravel_index(0, ()) == ()
    assert jnp.ravel_multi_index((), ()).item() == 0


REFUSED = [
    (lambda: jnp.unravel_index(6, (2, 3)), ValueError, r"position 6.*shape \(2, 3\)"),
    (lambda: jnp.unravel_index(0, (0, 3)), ValueError, "position 0"),
    (
        lambda: jnp.unravel_index(jnp.ones(2), (2, 3)),
        TypeError,
        r"indices must be integers, got f32\[2\]",
    ),
    (lambda: jnp.unravel_index(1, (2.5,)), TypeError, "shape must be integers"),
    (lambda: jnp.unravel_index(1, (-2,)), ValueError, "negative size"),
    (lambda: jnp.ravel_multi_index((1,), (2, 3)), ValueError, "1 arrays.*2 sizes"),
    (lambda: jnp.ravel_multi_index((1, 1), (2, 3), mode="cut"), ValueError, "mode.*cut"),
    (lambda: jnp.ravel_multi_index((1, 1), (2, 3), order="K"), ValueError, "order.*K"),
    (lambda: jnp.ravel_multi_index((1, 1), (20, 30), dtype="int8"), ValueError, "int8 does not hold.*600"),
    (
        lambda: purax.jit(lambda i: jnp.ravel_multi_index((i, 1), (2, 3)))(1),
        ConcretizationTypeError,
        "mode='wrap'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_wrong_arguments_are_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
