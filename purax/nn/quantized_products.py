"""Products of arrays that are rounded to 8 or 4 bits on the way, a scale for each block of elements: `mxfp8`, `nvfp4`.

Scales follow the formats: a block of 32 elements of float8_e4m3fn with a power of two (OCP Microscaling), and one of 16
of float4_e2m1fn with a scale of float8_e4m3fn and one number for the whole array. The backward pass rounds likewise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import purax.numpy as jnp
from purax.control_flow.custom_vjp import custom_vjp
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.lax import dot_general
from purax.nn.scaled_products import scaled_matmul
from purax.typing import ArrayLike


@dataclass
class BlockScaleConfig:
    """How an array is rounded.

    Attributes:
        mode: "mxfp8" or "nvfp4".
        block_size: how many elements share a scale.
        data_type: of the elements.
        scale_type: of the scales.
        global_scale: a number that all scales are multiplied by, or None.
        infer_only: whether there is no backward pass.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool = False


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """How `scaled_dot_general` rounds an operand.

    Args:
        mode: "mxfp8" or "nvfp4".
        global_scale: for "nvfp4" the number that all scales are multiplied by; 1 when left out.

    >>> from purax import nn
    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        one = jnp.ones((1,), jnp.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, one)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu, None)
    raise located(ValueError, f"Unsupported mode: {shown(mode)}; there are 'mxfp8' and 'nvfp4'")


def quantize(x: Array, config: BlockScaleConfig) -> tuple[Array, Array]:
    """An array (…, K) as elements of few bits and scales (…, K / block); K is filled up with zeros.

    Args:
        x: the array.
        config: how it is rounded.
    """
    size = config.block_size
    missing = -x.shape[-1] % size
    padded = jnp.pad(x.astype(jnp.float32), [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    blocks = padded.reshape(*x.shape[:-1], -1, size)
    largest = jnp.finfo(config.data_type).max.astype(jnp.float32)
    wanted = jnp.max(jnp.abs(blocks), axis=-1) / largest
    if config.mode == "mxfp8":
        mantissa, exponent = jnp.frexp(wanted)  # the next power of two, so that no element overflows
        exponent = jnp.clip(jnp.where(mantissa == 0.5, exponent - 1, exponent), -127, 127)
        scales = jnp.ldexp(jnp.ones_like(wanted), exponent)
    else:
        limit = jnp.finfo(config.scale_type).max.astype(jnp.float32)
        scales = jnp.clip(wanted / jnp.asarray(config.global_scale).reshape(()), 0, limit)
        scales = scales.astype(config.scale_type).astype(jnp.float32)
        scales = scales * jnp.asarray(config.global_scale).reshape(())
    divisor = jnp.where(scales == 0, 1, scales)[..., None]
    elements = jnp.clip(blocks / divisor, -largest, largest).astype(config.data_type)
    return elements.reshape(*x.shape[:-1], -1), scales


def _product(lhs: Array, rhs: Array, configs: tuple[BlockScaleConfig, BlockScaleConfig], dtype: Any) -> Array:
    """lhs rhsᵀ for a batch of matrices, of rounded operands."""
    (a, a_scales), (b, b_scales) = quantize(lhs, configs[0]), quantize(rhs, configs[1])
    return scaled_matmul(a.astype(jnp.float32), b.astype(jnp.float32), a_scales, b_scales, dtype)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: Any = jnp.float32,
    configs: list[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """`lax.dot_general` of operands that are rounded to few bits, forwards and backwards.

    Args:
        lhs: an array.
        rhs: an array.
        dimension_numbers: as in `lax.dot_general`.
        preferred_element_type: the dtype of the result.
        configs: how the operands and the gradients are rounded, from `get_scaled_dot_general_config`: for lhs, rhs,
            and the cotangent. None rounds nothing.
        implementation: accepted, without effect: there is one.

    Returns:
        The product, as of `lax.dot_general`.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import nn
    >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = jnp.ones((2, 64))
    >>> nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
    Array([[64., 64.],
           [64., 64.]], dtype=float32)
    """
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    if configs is None:
        return dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    if len(configs) != 3:
        raise located(
            ValueError,
            f"scaled_dot_general: configs are three, for lhs, rhs and the cotangent, got {len(configs)}",
        )
    (lhs_contracted, rhs_contracted), (lhs_batch, rhs_batch) = dimension_numbers
    left, left_free = _as_matrices(lhs, lhs_contracted, lhs_batch)
    right, right_free = _as_matrices(rhs, rhs_contracted, rhs_batch)
    of_lhs, of_rhs, of_gradient = configs

    @custom_vjp
    def product(a: Array, b: Array) -> Array:
        return _product(a, b, (of_lhs, of_rhs), preferred_element_type)

    def forward(a: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
        return product(a, b), (a, b)

    def backward(kept: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
        a, b = kept
        by_a = _product(g, b.mT, (of_gradient, of_rhs), jnp.float32).astype(a.dtype)
        by_b = _product(g.mT, a.mT, (of_gradient, of_lhs), jnp.float32).astype(b.dtype)
        return by_a, by_b

    product.defvjp(forward, backward)
    batch = tuple(lhs.shape[i] for i in lhs_batch)
    return product(left, right).reshape(*batch, *left_free, *right_free)


def _as_matrices(x: Array, contracted: Any, batch: Any) -> tuple[Array, tuple[int, ...]]:
    """An array as a batch of matrices whose columns are contracted, and the sizes that its rows stand for."""
    free = [i for i in range(x.ndim) if i not in (*contracted, *batch)]
    sizes = tuple(x.shape[i] for i in free)
    count = math.prod(x.shape[i] for i in batch)
    columns = math.prod(x.shape[i] for i in contracted)
    return x.transpose(*batch, *free, *contracted).reshape(count, math.prod(sizes), columns), sizes
