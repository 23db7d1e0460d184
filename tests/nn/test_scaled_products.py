"""`scaled_matmul` is the product of the scaled matrices, for all dtypes that its operands have, with derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

generator = np.random.default_rng(0)


def reference(a, b, a_scales, b_scales):
    a, b, a_scales, b_scales = (np.asarray(x, np.float64) for x in (a, b, a_scales, b_scales))
    a = a * np.repeat(a_scales, a.shape[2] // a_scales.shape[2], 2)
    b = b * np.repeat(b_scales, b.shape[2] // b_scales.shape[2], 2)
    return np.einsum("bmk,bnk->bmn", a, b)


@pytest.mark.parametrize(
    "operand", ["float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int8"]
)
@pytest.mark.parametrize("blocks", [(1, 1), (4, 4), (8, 2)])
def test_scaled_matmul(operand, blocks):
    a, b = (jnp.asarray(generator.normal(size=(2, n, 16)) * 2).astype(operand) for n in (3, 5))
    scale = "float8_e8m0fnu" if operand.startswith("float8") else "float32"
    scales = [
        jnp.asarray(2.0 ** generator.integers(-2, 3, size=(2, n, k))).astype(scale)
        for n, k in zip((3, 5), blocks, strict=True)
    ]
    wanted = reference(*(x.astype("float32") for x in (a, b, *scales)))
    for function in (px.nn.scaled_matmul, px.jit(px.nn.scaled_matmul)):
        got = function(a, b, *scales)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    short = px.nn.scaled_matmul(a, b, *scales, preferred_element_type=jnp.bfloat16)
    assert short.dtype == jnp.bfloat16 and short.shape == (2, 3, 5)


def test_derivatives_and_batches():
    a, b, s, t = (
        generator.normal(size=shape).astype(np.float32)
        for shape in ((2, 3, 4), (2, 5, 4), (2, 3, 2), (2, 5, 1))
    )
    px.test_util.check_grads(px.nn.scaled_matmul, (a, b, s, t), order=1)
    got = px.vmap(px.nn.scaled_matmul, (0, None, 0, None))(np.stack([a, 2 * a]), b, np.stack([s, s]), t)
    np.testing.assert_allclose(got[1], 2 * reference(a, b, s, t), rtol=1e-4, atol=1e-4)


def test_wrong_shapes_are_refused():
    ones = np.ones
    for shapes, message in (
        (((2, 4), (3, 4), (2, 2), (3, 2)), "requires all inputs to be 3-dimensional"),
        (
            ((1, 2, 4), (1, 3, 5), (1, 2, 2), (1, 3, 1)),
            r"equal B and K, but got shapes \(1, 2, 4\) and \(1, 3, 5\)",
        ),
        (
            ((1, 2, 4), (1, 3, 4), (1, 2, 3), (1, 3, 1)),
            r"lhs_scales of shape \(1, 2\) and a divisor of 4.*\(1, 2, 3\)",
        ),
        (
            ((1, 2, 4), (1, 3, 4), (1, 2, 2), (1, 2, 2)),
            r"rhs_scales of shape \(1, 3\) and a divisor of 4.*\(1, 2, 2\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            px.nn.scaled_matmul(*map(ones, shapes))
