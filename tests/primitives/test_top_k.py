"""`top_k` of long axes, by the maxima of groups first, gives the elements and the order of a stable sort."""

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.primitives import sorting

GENERATOR = np.random.default_rng(5)
SHAPES = [((1000,), 5), ((3, 777), 7), ((100_003,), 10), ((70,), 1), ((2, 3, 129), 2), ((64,), 30)]


@pytest.fixture(autouse=True)
def by_groups(monkeypatch):
    """Axes of any length are long, and native kernels are off."""
    monkeypatch.setattr(sorting, "_LONG", 64)
    monkeypatch.setattr(sorting, "_LEAST_GROUP", 2)
    with px.config.override(native_kernels=False):
        yield


def numbers(dtype, shape):
    """Few different numbers, with the least of the dtype and special ones among them."""
    if jnp.issubdtype(dtype, jnp.floating):
        x = GENERATOR.standard_normal(shape).round(1)
        x.flat[::17] = np.nan
        x.flat[[1, 3, 5, 7]] = -0.0, -np.inf, np.inf, 0.0
    else:
        least = 0 if dtype == "bool" else np.iinfo(dtype).min
        x = np.where(GENERATOR.random(shape) < 0.4, least, GENERATOR.integers(0, 2, shape))
    return np.asarray(jnp.asarray(x, dtype))


@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16", "int32", "int8", "uint32", "uint8", "bool"]
)
def test_agrees_with_a_stable_sort(dtype):
    arrays = [numbers(dtype, shape) for shape, _ in SHAPES]
    found = px.jit(lambda arrays: [px.lax.top_k(x, k) for x, (_, k) in zip(arrays, SHAPES, strict=True)])(
        arrays
    )
    for x, (shape, k), (values, indices) in zip(arrays, SHAPES, found, strict=True):
        wanted, places = sorting.top_k_p.host(x, k=k, axis=len(shape) - 1)
        np.testing.assert_array_equal(indices, places)
        np.testing.assert_array_equal(np.signbit(np.float32(values)), np.signbit(np.float32(wanted)))
        np.testing.assert_array_equal(np.float32(values), np.float32(wanted))


def test_groups_are_used_and_are_differentiated_and_batched():
    x = GENERATOR.standard_normal((4, 900)).astype(np.float32)
    text = px.jit(lambda x: px.lax.top_k(x, 3)).lower(x).as_text()
    assert "stablehlo.pad" in text and "900" in text
    gradient = px.jit(px.grad(lambda x: px.lax.top_k(x, 3)[0].sum()))(x)
    wanted = np.zeros_like(x)
    np.put_along_axis(wanted, np.argsort(-x, axis=1)[:, :3], 1.0, axis=1)
    np.testing.assert_array_equal(gradient, wanted)
    np.testing.assert_array_equal(
        px.jit(px.vmap(lambda row: px.lax.top_k(row, 3)[1]))(x), np.argsort(-x, 1)[:, :3]
    )
