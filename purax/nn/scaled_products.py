"""Products of matrices whose blocks have scales, as quantized networks use them."""

from __future__ import annotations

from typing import Any

import purax.numpy as jnp
from purax.core.array import Array
from purax.core.source import located
from purax.lax import dot_general
from purax.typing import ArrayLike


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: Any = jnp.float32,
) -> Array:
    """The product lhs rhsᵀ of a batch of matrices, each block of whose rows is multiplied by a scale.

    Args:
        lhs: shape (B, M, K), often of 8 or 4 bits.
        rhs: shape (B, N, K).
        lhs_scales: shape (B, M, K / block): scale j belongs to the columns from j * block on.
        rhs_scales: shape (B, N, K / block), where the block may be another one.
        preferred_element_type: the dtype of the result; it is computed in float32, or float64 where that is asked for.

    Returns:
        An array of shape (B, M, N).

    >>> import purax.numpy as jnp
    >>> from purax import nn
    >>> a, b = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[4.0, 5.0, 6.0]]])
    >>> nn.scaled_matmul(a, b, jnp.full((1, 1, 1), 0.5), jnp.full((1, 1, 1), 0.5))
    Array([[[8.]]], dtype=float32)
    """
    operands = [jnp.asarray(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    shapes = [x.shape for x in operands]
    if any(x.ndim != 3 for x in operands):
        raise located(
            ValueError, f"scaled_matmul requires all inputs to be 3-dimensional arrays, got shapes {shapes}"
        )
    if shapes[0][0] != shapes[1][0] or shapes[0][2] != shapes[1][2]:
        raise located(
            ValueError,
            "scaled_matmul requires lhs (B, M, K) and rhs (B, N, K) with equal B and K, but got shapes "
            f"{shapes[0]} and {shapes[1]}",
        )
    for name, shape, scales in (("lhs", shapes[0], shapes[2]), ("rhs", shapes[1], shapes[3])):
        if shape[:2] != scales[:2] or not scales[2] or shape[2] % scales[2]:
            raise located(
                ValueError,
                f"scaled_matmul requires {name}_scales of shape {shape[:2]} and a divisor of {shape[2]}, but got "
                f"shape {scales}",
            )
    dtype = jnp.float64 if jnp.dtype(preferred_element_type) == jnp.float64 else jnp.float32

    def scaled(x: Array, scales: Array) -> Array:
        batch, rows, columns = x.shape
        blocks = x.astype(dtype).reshape(batch, rows, scales.shape[2], -1)
        return (blocks * scales.astype(dtype)[..., None]).reshape(batch, rows, columns)

    product = dot_general(
        scaled(operands[0], operands[2]),
        scaled(operands[1], operands[3]),
        (((2,), (2,)), ((0,), (0,))),
        preferred_element_type=dtype,
    )
    return product.astype(preferred_element_type)
