"""Compiled maxima and minima of many numbers keep NaN, whatever computes the operand and the reduction."""

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.config import config

SHAPES = (
    ((4096,), 0),
    ((512, 8), 0),
    ((8, 512), 1),
    ((300, 400), 0),
    ((300, 400), 1),
    ((300, 400), None),
    ((9, 70, 80), 1),
)
OPERANDS = {
    "argument": lambda x: x,
    "product": lambda x: x * 1.5,
    "exponential": jnp.exp,
    "transpose": lambda x: x.T,
    "transposed product": lambda x: jnp.swapaxes(x * 2, 0, -1),
}


@pytest.mark.parametrize("are_native", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_is_kept(are_native, dtype):
    with purax.enable_x64(True), config.override(native_kernels=are_native):
        for shape, axis in SHAPES:
            x = np.random.default_rng(0).normal(size=shape).astype(dtype)
            x.flat[x.size // 2] = np.nan

            def extrema(x, axis=axis):
                operands = [f(x) for f in OPERANDS.values()]
                return [(y, jnp.max(y, axis), jnp.min(y, axis)) for y in operands]

            for name, (operand, largest, smallest) in zip(OPERANDS, purax.jit(extrema)(x), strict=True):
                operand = np.asarray(operand)
                np.testing.assert_array_equal(largest, operand.max(axis), err_msg=f"{name} {shape} {axis}")
                np.testing.assert_array_equal(smallest, operand.min(axis), err_msg=f"{name} {shape} {axis}")
                assert np.isnan(np.asarray(largest)).sum() == 1
