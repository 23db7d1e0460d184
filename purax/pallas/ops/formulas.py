"""Attention with masks, as a formula; what the operations of this package share."""

from __future__ import annotations

from typing import Any

from purax import numpy as jnp

LOWEST = -0.7 * 3.4028234663852886e38  # of masked logits


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    bias: Any = None,
    mask: Any = None,
    scale: float = 1.0,
    soft_cap: float | None = None,
    mask_value: float = LOWEST,
    sinks: Any = None,
) -> tuple[Any, Any]:
    """softmax(scale q kᵀ + bias) v over (..., T, size) and (..., S, size), and the logarithm of its sums.

    Args:
        q, k, v: queries, keys and values.
        bias: added to the logits.
        mask: where it is false, logits are `mask_value`.
        scale: of the logits.
        soft_cap: logits are bent to lie between its negative and it.
        mask_value: see `mask`.
        sinks: for each head one more logit, whose value is zero.
    """
    logits = jnp.einsum("...td,...sd->...ts", q, k, preferred_element_type=jnp.float32)
    if scale != 1.0:
        logits = logits * scale
    if bias is not None:
        logits = logits + bias
    if soft_cap is not None:
        logits = soft_cap * jnp.tanh(logits / soft_cap)
    if mask is not None:
        logits = jnp.where(mask, logits, mask_value)
    largest = jnp.max(logits, -1, keepdims=True)
    if sinks is not None:
        largest = jnp.maximum(largest, sinks[..., None, None])
    weights = jnp.exp(logits - largest)
    total = weights.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + jnp.exp(sinks[..., None, None] - largest)
    out = jnp.einsum(
        "...ts,...sd->...td", (weights / total).astype(v.dtype), v, preferred_element_type=jnp.float32
    )
    return out.astype(q.dtype), (jnp.log(total) + largest)[..., 0]


def causal_mask(rows: int, columns: int) -> Any:
    """Which keys a query may look at: those that are not later."""
    return jnp.arange(rows)[:, None] >= jnp.arange(columns)[None, :]


def both(x: Any, y: Any) -> Any:
    """The conjunction of two masks, either of which may be None."""
    return y if x is None else x if y is None else x & y
