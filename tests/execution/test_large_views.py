"""Eager operations on views of large arrays: they take no copy of a view first, and give what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.execution import eager
from purax.execution.transposed_views import orders_of, untransposed

N = 1 << 18


@pytest.fixture
def no_streaming(monkeypatch):
    """Large arrays go to compiled programs unless they are views, as those of megabytes do."""
    monkeypatch.setattr(eager, "streaming_limit", lambda: 1)
    eager.clear_plans()
    yield
    eager.clear_plans()


def array(shape, dtype=np.float32):
    numbers = np.random.default_rng(3).uniform(1, 2, shape).astype(dtype)
    return px.block_until_ready(jnp.asarray(numbers) * 1)


VIEWS = {
    "part": lambda x: x.ravel()[1 : N + 1],
    "every other": lambda x: x.ravel()[: 2 * N : 2],
    "backwards": lambda x: x[::-1],
    "columns": lambda x: x[:, 3:],
    "rows": lambda x: x[::3],
    "broadcast": lambda x: jnp.broadcast_to(x[:1], x.shape),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_in_order_of_memory_are_read_in_place(name, no_streaming):
    x = array((1024, 600))
    view = VIEWS[name](x)
    assert eager.is_large_view(view) and not eager.is_large_view(x)
    result = view - view * 3
    np.testing.assert_allclose(result, np.asarray(view) * np.float32(-2), rtol=1e-6)
    assert view._buffer is None, "the view was copied for a program"


def test_an_array_that_is_no_part_of_another_is_handed_to_programs(no_streaming):
    memory = np.empty(4 * N + 64, np.uint8)
    unaligned = memory[-memory.ctypes.data % 64 + 4 :][: 4 * N].view(np.float32)
    unaligned[:] = 1
    x = jnp.asarray(unaligned)
    assert not eager.is_large_view(x)


REDUCTIONS = {
    "sum": (jnp.sum, np.sum),
    "max": (jnp.max, np.max),
    "all": (lambda x, axis: jnp.all(x > 1.001, axis), lambda x, axis: np.all(x > 1.001, axis)),
}


@pytest.mark.parametrize("axes", [(2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_transposes(name, axes, no_streaming):
    ours, numpys = REDUCTIONS[name]
    view = array((40, 50, 12), np.float32).transpose(axes)
    for axis in (0, 2, (0, 1)):
        expected = numpys(np.asarray(view), axis)
        result = ours(view, axis)
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=2e-5)


def test_products_of_transposes_copy_neither(no_streaming):
    x = array((700, 40))
    view = x.T
    expected = np.asarray(x, np.float64).T @ np.asarray(x, np.float64)
    np.testing.assert_allclose(view @ x, expected, rtol=1e-5)
    np.testing.assert_allclose(view @ view.T, expected, rtol=1e-5)
    assert view._buffer is None, "the transpose was copied for a program"
    gradient = px.grad(lambda x: (x.T @ x).sum())(x)
    np.testing.assert_allclose(gradient, 2 * np.sum(np.asarray(x), 1, keepdims=True) + np.zeros((1, 40)), rtol=1e-5)


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1), (1, 2, 0)])
def test_the_order_of_a_transpose_is_found(axes):
    x = array((30, 50, 40))
    view = x.transpose(axes)
    orders = orders_of([view, x])
    assert orders == (axes, None)
    np.testing.assert_array_equal(untransposed(view, axes), np.asarray(x))
    assert orders_of([x, view[:, ::-1]]) is None
    assert orders_of([jnp.broadcast_to(x[:, :1], x.shape)]) is None
