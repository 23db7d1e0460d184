"""The product of two matrices."""

from __future__ import annotations

from typing import Any

from purax import numpy as jnp


def matmul(
    x: Any, y: Any, *, block_shape: Any, block_k: int = 256, out_dtype: Any = None, debug: bool = False
) -> Any:
    """x @ y, summed in float32."""
    out = jnp.dot(x, y, preferred_element_type=jnp.float32)
    return out.astype(x.dtype if out_dtype is None else out_dtype)
