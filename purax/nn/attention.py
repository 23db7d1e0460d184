"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core.array import Array
from purax.errors import shown
from purax.nn.normalization import logsumexp, softmax

_MASKED = -0.7 * float(np.finfo(np.float32).max)


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(query keyᵀ · scale + bias) value, for each head.

    Args:
        query: of shape (batch, T, N, H), or without the batch.
        key: of shape (batch, S, K, H); the N heads of the query are divided among the K heads of key and value.
        value: of the shape of `key`.
        bias: added to the logits, broadcast to (batch, N, T, S).
        mask: which logits count, broadcast likewise.
        scale: of the logits, 1/√H if not given.
        is_causal: whether position t sees only positions up to t.
        query_seq_lengths: how many positions of each query count; the results of the others are 0.
        key_value_seq_lengths: how many positions of each key count.
        local_window_size: how many positions before and after its own a position sees.
        implementation: "xla", or None to choose.
        return_residual: whether to return the logsumexp of the logits too, of shape (batch, T, N).

    Returns:
        An array of the shape of `query`, or (array, residual).
    """
    if implementation not in (None, "xla"):
        raise ValueError(
            f"dot_product_attention: implementation is None or 'xla', got {shown(implementation)}"
        )
    query, key, value = jnp.asarray(query), jnp.asarray(key), jnp.asarray(value)
    shape = query.shape
    if query.ndim == 3:
        query, key, value = query[None], key[None], value[None]
    if (
        not (query.ndim == key.ndim == value.ndim == 4)
        or key.shape != value.shape
        or query.shape[3] != key.shape[3]
    ):
        raise ValueError(
            "dot_product_attention needs query (B, T, N, H), key and value (B, S, K, H), with or without B; got "
            f"{shape}, {key.shape} and {value.shape}"
        )
    batch, length, heads, width = query.shape
    key_length, key_heads = key.shape[1], key.shape[2]
    if heads % key_heads:
        raise ValueError(
            f"dot_product_attention: the number of query heads, {heads}, must be a multiple of the number of "
            f"key heads, {key_heads}"
        )
    scale = 1 / math.sqrt(width) if scale is None else scale
    grouped = query.reshape(batch, length, key_heads, heads // key_heads, width)
    logits = jnp.einsum("btkgh,bskh->bkgts", grouped, key, preferred_element_type=np.float32)
    logits = logits.reshape(batch, heads, length, key_length) * scale
    if bias is not None:
        logits = logits + jnp.asarray(bias)
    visible = _visible(length, key_length, is_causal, local_window_size)
    if mask is not None:
        visible = jnp.asarray(mask) if visible is None else jnp.logical_and(mask, visible)
    if key_value_seq_lengths is not None:
        counts = (
            jnp.arange(key_length)[None, None, None, :]
            < jnp.asarray(key_value_seq_lengths)[:, None, None, None]
        )
        visible = counts if visible is None else jnp.logical_and(visible, counts)
    if visible is not None:
        logits = jnp.where(visible, logits, _MASKED)
    weights = softmax(logits.astype(jnp.promote_types(logits.dtype, np.float32)), axis=-1).astype(value.dtype)
    weights = weights.reshape(batch, key_heads, heads // key_heads, length, key_length)
    out = jnp.einsum("bkgts,bskh->btkgh", weights, value).reshape(batch, length, heads, width)
    if query_seq_lengths is not None:
        counts = jnp.arange(length)[None, :, None, None] < jnp.asarray(query_seq_lengths)[:, None, None, None]
        out = jnp.where(counts, out, jnp.zeros_like(out))
    out = out.astype(query.dtype).reshape(shape)
    if not return_residual:
        return out
    residual = jnp.transpose(logsumexp(logits, axis=-1), (0, 2, 1)).astype(np.float32)
    return out, residual.reshape(shape[:-1])


def _visible(length: int, key_length: int, is_causal: bool, window: Any) -> Array | None:
    """Which positions of the key each position of the query sees, or None for all."""
    if not is_causal and window is None:
        return None
    rows, columns = np.arange(length)[:, None], np.arange(key_length)[None, :]
    seen = np.ones((length, key_length), bool)
    if is_causal:
        seen &= columns <= rows
    if window is not None:
        before, after = (window, window) if isinstance(window, int) else window
        seen &= (columns >= rows - before) & (columns <= rows + after)
    return jnp.asarray(seen)
