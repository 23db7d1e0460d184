"""Slices with traced bounds and a known length, and masked updates: as eager ones, differentiable, batchable."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

STARTS = jnp.array([0, 1, 3, 4, 7])
X = np.arange(48.0, dtype=np.float32).reshape(12, 4)
READS = {
    "i:i+n": lambda x, i: x[i : i + 3],
    "i-n:i": lambda x, i: x[i - 2 : i],
    "2i:2i+n": lambda x, i: x[2 * i : 2 * i + 4],
    "ki:k(i+1)": lambda x, i: x[i * 2 : (i + 1) * 2],
    "i:i+n, j": lambda x, i: x[i : i + 3, i - 2],
    "i:i+n, constant": lambda x, i: x[i : i + 3, 1],
    "..., i:i+n": lambda x, i: x[..., i - 2 : i],
    "two slices": lambda x, i: x[i : i + 3, i - 2 : i],
    "new axis": lambda x, i: x[:, None, i - 1 : i],
    "with a step": lambda x, i: x[i + 1 : i + 4, ::-1],
    "with positions": lambda x, i: x[i : i + 2, jnp.array([1, 0])],
    "through a variable": lambda x, i: (lambda stop: x[stop - 3 : stop])(i + 2),
    "constant - i": lambda x, i: x[8 - i : 10 - i],
    "a step": lambda x, i: x[i : i + 6 : 2],
    "a step that leaves a rest": lambda x, i: x[i : i + 6 : 4, i - 2],
    "backward": lambda x, i: x[i + 5 : i : -1],
    "backward by two": lambda x, i: x[i + 5 : i : -2, 1:3],
    "a quotient": lambda x, i: x[i // 2 : i // 2 + 2],
    "a remainder": lambda x, i: x[i % 3 : i % 3 + 2],
    "clipped twice": lambda x, i: x[jnp.clip(i, 0, 3) : jnp.clip(i, 0, 3) + 2],
    "looked up twice": lambda x, i: x[STARTS[i] : STARTS[i] + 2],
    "by max": lambda x, i: (lambda low: x[low : low + 2])(max(i - 3, 0)),
    "a sum of two": lambda x, i: (lambda j: x[i + j : j + i + 2])(i - 1),
    "in a scan": lambda x, i: px.lax.scan(lambda c, k: (c, x[k : k + 3].sum()), 0.0, i + jnp.arange(3))[1],
    "in a loop": lambda x, i: px.lax.fori_loop(0, 3, lambda k, a: a + x[k + i : k + i + 2], x[:2]),
    "get by two": lambda x, i: x.at[i : i + 4 : 2].get(),
    "get": lambda x, i: x.at[i : i + 2].get(),
}
WRITES = {
    "set": lambda x, i: x.at[i : i + 3].set(0.0),
    "add": lambda x, i: x.at[i - 2 : i].add(jnp.ones((2, 4))),
    "multiply": lambda x, i: x.at[2 * i : 2 * i + 4, 1].multiply(3.0),
    "max": lambda x, i: x.at[i : i + 2, i - 2].max(7.0),
    "set by two": lambda x, i: x.at[i : i + 6 : 2].set(0.0),
    "add by three, backward": lambda x, i: x.at[i + 6 : i : -3, i - 2].add(jnp.arange(2.0)),
    "multiply, backward": lambda x, i: x.at[i + 3 : i : -1].multiply(jnp.arange(1.0, 4.0)[:, None]),
    "divide by two": lambda x, i: x.at[i : i + 4 : 2, ::2].divide(4.0),
    "in a loop, set": lambda x, i: px.lax.fori_loop(
        0, 2, lambda k, a: a.at[k : k + 2].set(a[k + i : k + i + 2]), x
    ),
    "mask: set": lambda x, i: x.at[x > i].set(-1.0),
    "mask: add": lambda x, i: x.at[x > i].add(2.0),
    "mask: multiply": lambda x, i: x.at[x > i].multiply(x[0, 1]),
    "mask: min": lambda x, i: x.at[x > i].min(4.5),
    "mask: divide": lambda x, i: x.at[x > i].divide(4.0),
    "mask: power": lambda x, i: x.at[x > i].power(2.0),
    "mask: apply": lambda x, i: x.at[x > i].apply(jnp.sin),
    "mask of rows": lambda x, i: x.at[x[:, 0] > i].set(jnp.arange(4.0)),
    "mask of rows, column": lambda x, i: x.at[x[:, 0] > i, 1].set(5.0),
    "row, mask": lambda x, i: x.at[1, x[1] > i].set(0.0),
}


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_traced_slices_and_masks_equal_eager_ones(name):
    function = {**READS, **WRITES}[name]
    x, places = jnp.asarray(X), jnp.array([2, 3, 4])

    def slope(x, i):
        return px.grad(lambda x: (function(x, i) ** 2).sum())(x)

    wanted = np.stack([np.asarray(function(x, int(i))) for i in places])
    slopes = np.stack([np.asarray(slope(x, int(i))) for i in places])
    one, together, derivative = px.jit(
        lambda x, i: (function(x, i[0]), px.vmap(function, (None, 0))(x, i), px.vmap(slope, (None, 0))(x, i))
    )(x, places)
    np.testing.assert_allclose(one, wanted[0], rtol=1e-6)
    np.testing.assert_allclose(together, wanted, rtol=1e-6)
    np.testing.assert_allclose(derivative, slopes, rtol=1e-4)


def test_slices_in_python_loops():
    def moving_sum(x, n):
        total = jnp.zeros(2)
        i = 0
        while i < n:
            total = total + x[i : i + 2]
            x = x.at[i : i + 1].set(0.0)
            i += 1
        return total, x

    x = jnp.arange(6.0)
    for got, wanted in zip(px.jit(moving_sum)(x, 3), moving_sum(x, 3), strict=True):
        np.testing.assert_array_equal(got, wanted)
