"""`jnp.top_k` finds what a stable sort puts in front, largest or smallest, with NaN above all numbers."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

ARRAYS = {
    "nan": np.array([[3, 1, np.nan, 2.0], [5, 5, 1, 0]], np.float32),
    "ties": np.array([[1, 1, 1], [2, 0, 2]]),
    "unsigned": np.array([[1, 200, 3], [0, 255, 255]], np.uint8),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("mode", ["largest", "smallest"])
@pytest.mark.parametrize("axis", [0, -1])
def test_elements_and_places(name, mode, axis):
    x, k = jnp.asarray(ARRAYS[name]), 2
    for run in (jnp.top_k, px.jit(jnp.top_k, static_argnums=1, static_argnames=("mode", "axis"))):
        values, places = run(x, k, mode=mode, axis=axis)
        order = jnp.argsort(x, axis, descending=mode == "largest")
        wanted = jnp.take(order, jnp.arange(k), axis)
        np.testing.assert_array_equal(places, wanted)
        np.testing.assert_array_equal(values, jnp.take_along_axis(x, wanted, axis))


def test_gradients_and_mistakes():
    gradient = px.grad(lambda x: jnp.top_k(x, 2, mode="smallest")[0].sum())(jnp.arange(4.0))
    assert gradient.tolist() == [1, 1, 0, 0]
    x = jnp.ones((2, 4))
    for k, options, message in (
        (9, {}, r"no larger than size along axis; got k=9 with shape=\(2, 4\) and axis=1"),
        (-1, {}, "must be nonnegative, got -1"),
        (1, {"mode": "x"}, "'largest' or 'smallest', got 'x'"),
        (1, {"axis": 2}, "axis 2"),
    ):
        with pytest.raises((ValueError, IndexError), match=message):
            jnp.top_k(x, k, **options)
