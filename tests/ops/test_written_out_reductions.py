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
