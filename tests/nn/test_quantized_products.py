"""Products of operands rounded to few bits: near the exact ones, as near as the format is fine."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import nn
from purax.nn.quantized_products import quantize

GENERATOR = np.random.default_rng(0)
A = GENERATOR.normal(size=(3, 8, 64)).astype(np.float32)
B = GENERATOR.normal(size=(3, 16, 64)).astype(np.float32)
NUMBERS = (((2,), (2,)), ((0,), (0,)))
# Half a unit in the last of 3 bits, and of 1 bit, of a number; and half the smallest step of the format.
ERRORS = {"mxfp8": 2**-4, "nvfp4": 2**-2}
HALF_STEPS = {"mxfp8": 2**-10, "nvfp4": 2**-2}


def configs(mode):
    return [nn.get_scaled_dot_general_config(mode)] * 3


@pytest.mark.parametrize("mode", ERRORS)
def test_each_element_is_rounded_in_its_block(mode):
    config = configs(mode)[0]
    elements, scales = quantize(jnp.asarray(A), config)
    assert elements.dtype == config.data_type and scales.shape == (3, 8, 64 // config.block_size)
    back = elements.astype(jnp.float32).reshape(3, 8, -1, config.block_size) * scales[..., None]
    largest = np.abs(A.reshape(back.shape)).max(-1, keepdims=True)
    error = np.abs(np.asarray(back) - A.reshape(back.shape))
    half_step = HALF_STEPS[mode] * np.asarray(scales)[..., None]
    assert (error <= np.maximum(ERRORS[mode] * np.abs(A.reshape(back.shape)), half_step)).all()
    if mode == "mxfp8":  # powers of two, the least that let nothing overflow
        exponents = np.log2(np.asarray(scales))
        assert (exponents == np.round(exponents)).all()
        assert (largest[..., 0] <= 448 * np.asarray(scales)).all()
        assert (largest[..., 0] > 224 * np.asarray(scales)).all()


@pytest.mark.parametrize("mode", ERRORS)
def test_products_and_gradients_are_near_the_exact_ones(mode):
    def of(configs):
        return lambda a, b: nn.scaled_dot_general(a, b, NUMBERS, configs=configs)

    def compare(mine, exact):
        size = np.sqrt(np.mean(np.square(exact)))
        assert np.sqrt(np.mean(np.square(np.asarray(mine) - exact))) < 1.5 * ERRORS[mode] * size

    compare(px.jit(of(configs(mode)))(A, B), np.asarray(of(None)(A, B)))
    weights = GENERATOR.normal(size=(3, 8, 16)).astype(np.float32)
    functions = (of(configs(mode)), of(None))
    gradients = [px.grad(lambda a, b, f=f: (f(a, b) * weights).sum(), (0, 1))(A, B) for f in functions]
    for mine, exact in zip(*gradients, strict=True):
        compare(mine, np.asarray(exact))


def test_what_the_formats_hold_is_exact():
    x = jnp.ones((2, 64)) * jnp.array([[6.0], [-12.0]])  # whose scales are powers of two in both formats
    for mode in ERRORS:
        found = nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), jnp.bfloat16, configs(mode))
        assert found.dtype == jnp.bfloat16 and found.tolist() == [[2304, -4608], [-4608, 9216]]


def test_lengths_that_blocks_do_not_divide_and_mistakes():
    x = jnp.ones((2, 40))
    assert (
        nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs("mxfp8")).tolist()
        == [[40, 40]] * 2
    )
    with pytest.raises(ValueError, match="Unsupported mode: 'fp8'"):
        nn.get_scaled_dot_general_config("fp8")
    with pytest.raises(ValueError, match="configs are three"):
        nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs("mxfp8")[:2])
