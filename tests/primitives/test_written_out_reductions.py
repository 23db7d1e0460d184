"""Reductions over few elements and of wide rows, which are written out on the CPU, against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import purax
import purax.numpy as jnp

SHAPES = [
    ((5000, 3), 1),
    ((3, 5000), 0),
    ((700, 8, 2), 1),
    ((5000, 1), 1),
    ((19, 20_000), 0),
    ((2, 75, 20_001), 1),
]
REDUCTIONS = ("sum", "max", "min", "prod", "mean")


@pytest.mark.parametrize("shape, axis", SHAPES, ids=str)
def test_agree_with_numpy(shape, axis):
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)
    x[(0,) * x.ndim] = np.nan
    whole = np.random.default_rng(1).integers(-9, 9, shape)
    reduced = purax.jit(
        lambda x, n: (
            [getattr(jnp, name)(x, axis=axis) for name in REDUCTIONS],
            [jnp.sum(n, axis=axis), jnp.max(n, axis=axis), jnp.any(n > 8, axis=axis)],
            jnp.sum(x.astype(jnp.bfloat16), axis=axis),
        )
    )
    floats, integers, narrow = reduced(jnp.asarray(x), jnp.asarray(whole, dtype=jnp.int32))
    for name, have in zip(REDUCTIONS, floats, strict=True):
        np.testing.assert_allclose(
            have, getattr(np, name)(x.astype(np.float64), axis=axis), rtol=2e-6, err_msg=name
        )
    for have, want in zip(integers, (whole.sum(axis), whole.max(axis), (whole > 8).any(axis)), strict=True):
        np.testing.assert_array_equal(have, want)
    wanted = x.astype(ml_dtypes.bfloat16).astype(np.float64).sum(axis)
    assert narrow.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(narrow).astype(np.float64), wanted, rtol=5e-3)


def test_derivatives_of_distances():
    """Fused with what it reduces, and differentiated, the sum is the same."""
    points = np.random.default_rng(2).normal(size=(64, 3)).astype(np.float32)

    def distances(x):
        return jnp.sum(jnp.abs(x[:, None] - x[None]) ** 2, axis=-1)

    np.testing.assert_allclose(
        purax.jit(distances)(points), ((points[:, None] - points) ** 2).sum(-1), rtol=1e-5, atol=1e-6
    )
    gradient = purax.jit(purax.grad(lambda x: jnp.sum(distances(x))))(points)
    np.testing.assert_allclose(gradient, 4 * (64 * points - points.sum(0)), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "bfloat16", "float16", "int8", "uint32", "int64", "bool"]
)
def test_indices_along_short_axes(dtype):
    """Of equal elements the first, of NaN the first, whatever the place of the axis."""
    generator = np.random.default_rng(3)
    cases = []
    for shape in ((2000, 10), (3, 5000), (600, 16, 3), (5000, 2), (4200, 1)):
        x = generator.integers(-2, 3, shape).astype(float)
        if dtype in ("uint32", "bool"):
            x = np.abs(x)
        elif "float" in dtype:
            special = generator.choice([0.0, -0.0, np.nan, np.inf, -np.inf], shape)
            x = np.where(generator.random(shape) < 0.3, special, x)
        cases += [(x.astype(jnp.dtype(dtype)), axis) for axis in range(len(shape)) if shape[axis] <= 16]
    assert {shape.shape[axis] for shape, axis in cases} == {1, 2, 3, 10, 16}
    with purax.enable_x64(True):
        found = purax.jit(
            lambda xs: [
                (jnp.argmax(x, axis), jnp.argmin(x, axis, keepdims=True))
                for x, (_, axis) in zip(xs, cases, strict=True)
            ]
        )([x for x, _ in cases])
        for (x, axis), (largest, smallest) in zip(cases, found, strict=True):
            wide = x.astype(np.float64)
            np.testing.assert_array_equal(largest, np.argmax(wide, axis))
            np.testing.assert_array_equal(smallest, np.argmin(wide, axis, keepdims=True))


def test_indices_of_what_is_computed_on_the_way():
    x = np.random.default_rng(4).normal(size=(900, 10)).astype(np.float32)
    found = purax.jit(purax.vmap(lambda row: jnp.argmax(jnp.sin(row) + row**2)))(x)
    np.testing.assert_array_equal(found, np.argmax(np.sin(x) + x**2, 1))
