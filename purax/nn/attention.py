"""Scaled dot-product attention: what it takes, and which formulation computes it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from purax import lax
from purax import numpy as jnp
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.nn import attention_form, cudnn_attention
from purax.nn.attention_call import attention_p
from purax.nn.attention_form import Form, Operands
from purax.nn.normalization import logsumexp, softmax
from purax.xla import client

# Tiles are as fast as all logits at once from some 512 × 512 of them on; a program with tiles takes 0.2 s longer to
# compile, which pays from a few million logits on (`bench/attention.py`).
_SHORTEST = 256  # positions
_FEWEST = 1 << 22  # logits
_SHORTEST_FOR_CUDNN = 128


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

    On CPUs long attentions are computed tile by tile, forwards and backwards, in memory that grows with T + S rather
    than T · S. On NVIDIA's GPUs cuDNN's kernels compute those of `bfloat16` and `float16` that they can.

    Args:
        query: of shape (batch, T, N, H), or without the batch.
        key: of shape (batch, S, K, H); the N heads of the query are divided among the K heads of key and value.
        value: of the shape of `key`.
        bias: added to the logits, broadcast to (batch, N, T, S).
        mask: which logits count, booleans broadcast likewise. A row without any has equal weights.
        scale: of the logits, 1/√H if not given.
        is_causal: whether position t sees only positions up to t.
        query_seq_lengths: how many positions of each query count, of shape (batch,); the results of the others are 0.
        key_value_seq_lengths: how many positions of each key count, likewise.
        local_window_size: how many positions before and after its own a position sees.
        implementation: "xla"; "cudnn", which fails where cuDNN cannot compute it; or None to choose.
        return_residual: whether to return the logsumexp of the logits too, of shape (batch, T, N); derivatives see a
            constant in it, as in jax.

    Returns:
        An array of the shape of `query`, or (array, residual).

    >>> import purax as px, purax.numpy as jnp
    >>> x = jnp.array([[1.0, 0.0], [0.0, 1.0]]).reshape(2, 1, 2)
    >>> px.nn.dot_product_attention(x, x, x, is_causal=True)[0]
    Array([[1., 0.]], dtype=float32)
    """
    if implementation not in (None, "xla", "cudnn"):
        raise located(
            ValueError,
            f"dot_product_attention: implementation is 'xla', 'cudnn' or None, got {shown(implementation)}",
        )
    query, key, value = jnp.asarray(query), jnp.asarray(key), jnp.asarray(value)
    shape = query.shape
    if query.ndim == 3:
        query, key, value = query[None], key[None], value[None]
    _check_operands(query, key, value, shape)
    batch, length, heads, width = query.shape
    before, after = _window(local_window_size)
    lengths = [
        _lengths(x, batch, name)
        for x, name in (
            (query_seq_lengths, "query_seq_lengths"),
            (key_value_seq_lengths, "key_value_seq_lengths"),
        )
    ]
    operands = Operands(
        query,
        key,
        value,
        _beside_logits(bias, query, key, "bias"),
        _beside_logits(mask, query, key, "mask"),
        *lengths,
    )
    form = Form(
        1 / math.sqrt(width) if scale is None and width else 1.0 if scale is None else scale,
        bool(is_causal),
        before,
        after,
        operands.bias is not None,
        operands.mask is not None,
        lengths[0] is not None,
        lengths[1] is not None,
    )
    chosen = _as_operation(form, operands, implementation, return_residual)
    residual = None
    if chosen is not None:
        given = [x for x in operands.__dict__.values() if x is not None]
        out, *sums = attention_p.bind(*given, form=chosen, with_sums=return_residual)
        if return_residual:
            residual = sums[0] + jnp.log(sums[1])
            without = cudnn_attention.rows_without_keys(form, operands) if chosen.kernel else None
            if without is not None:  # as of logits that do not count
                without = jnp.transpose(without[..., 0], (0, 2, 1))
                residual = jnp.where(without, attention_form.hidden_logit(residual.dtype), residual)
    else:
        logits = attention_form.logits(form, operands)
        out = attention_form.weighted(softmax(logits, axis=-1).astype(value.dtype), value)
        if return_residual:
            residual = logsumexp(logits, axis=-1)
    if lengths[0] is not None:
        counts = jnp.arange(length)[None, :, None, None] < lengths[0][:, None, None, None]
        out = jnp.where(counts, out, jnp.zeros_like(out))
        if residual is not None:  # as of logits that do not count
            hidden = attention_form.hidden_logit(residual.dtype)
            residual = jnp.where(jnp.transpose(counts[..., 0], (0, 2, 1)), residual, hidden)
    out = out.astype(query.dtype).reshape(shape)
    if residual is None:
        return out
    residual = lax.stop_gradient(residual)
    return out, jnp.transpose(residual, (0, 2, 1)).astype(query.dtype).reshape(shape[:-1])


def _as_operation(
    form: Form, operands: Operands, implementation: str | None, return_residual: bool
) -> Form | None:
    """The form of the operation that computes an attention, or None where all logits at once do."""
    if implementation == "cudnn":
        reason = cudnn_attention.why_not(form, operands)
        if not isinstance(form.scale, (int, float)):
            reason = reason or "the scale must be a number that is known when the program is made"
        if reason:
            raise located(
                NotImplementedError,
                f"dot_product_attention: cuDNN cannot compute it: {reason}. Leave `implementation` out",
            )
        return replace(form, kernel="cudnn")
    if not isinstance(form.scale, (int, float)):
        return None
    arrays = (operands.query, operands.key, operands.value, operands.bias, operands.mask)
    sizes = operands.sizes
    if not all(isinstance(n, int) for n in sizes) or any(
        x is not None and x.aval.layout is not None for x in arrays
    ):
        return None
    batch, length, key_length, heads, _, _ = sizes
    if len({x.dtype for x in arrays[:3]}) > 1 or not jnp.issubdtype(operands.query.dtype, np.floating):
        return None
    if min(length, key_length) < min(_SHORTEST, _SHORTEST_FOR_CUDNN):
        return None
    platform = client.platform_of(client.default_device())
    if platform == "cpu":
        is_large = min(length, key_length) >= _SHORTEST and batch * heads * length * key_length >= _FEWEST
        return form if is_large else None
    if implementation is None and not return_residual and cudnn_attention.is_there():
        reason = cudnn_attention.why_not(form, operands) or cudnn_attention.why_not_backward(operands)
        return None if reason else replace(form, kernel="cudnn or tiles")
    return None


def _check_operands(query: Array, key: Array, value: Array, shape: tuple[int, ...]) -> None:
    if (
        not (query.ndim == key.ndim == value.ndim == 4)
        or key.shape != value.shape
        or query.shape[3] != key.shape[3]
        or query.shape[0] != key.shape[0]
    ):
        raise located(
            ValueError,
            "dot_product_attention needs query (B, T, N, H), key and value (B, S, K, H), with or without B; got "
            f"{shape}, {key.shape[query.ndim - len(shape) :]} and {value.shape[query.ndim - len(shape) :]}",
        )
    heads, key_heads = query.shape[2], key.shape[2]
    if not key_heads or heads % key_heads:
        raise located(
            ValueError,
            f"dot_product_attention: the number of query heads, {heads}, must be a multiple of the number of "
            f"key heads, {key_heads}",
        )


def _window(given: Any) -> tuple[int | None, int | None]:
    """How many positions before and after its own a position sees."""
    if given is None:
        return None, None
    sizes = (given, given) if isinstance(given, (int, np.integer)) else given
    is_pair = isinstance(sizes, (tuple, list)) and len(sizes) == 2
    if not is_pair or not all(isinstance(n, (int, np.integer)) for n in sizes):
        raise located(
            ValueError,
            "dot_product_attention: local_window_size is a number of positions, or two: before and after; got "
            f"{shown(given)}",
        )
    return int(sizes[0]), int(sizes[1])


def _lengths(given: Any, batch: int, name: str) -> Array | None:
    if given is None:
        return None
    lengths = jnp.asarray(given)
    if lengths.shape != (batch,) or not jnp.issubdtype(lengths.dtype, np.integer):
        raise located(
            ValueError,
            f"dot_product_attention: {name} are integers of shape ({batch},), one for each element of the batch; "
            f"got {lengths.aval.str_short()}",
        )
    return lengths.astype(np.int32)


def _beside_logits(given: Any, query: Array, key: Array, name: str) -> Array | None:
    """A bias or a mask with four axes, each of size 1 or that of the logits (B, N, T, S)."""
    if given is None:
        return None
    x = jnp.asarray(given)
    if name == "mask" and x.dtype != np.bool_:
        raise located(
            ValueError,
            f"dot_product_attention: mask is of booleans, True where a logit counts, got {x.aval.str_short()}; "
            "what is added to the logits is a bias",
        )
    wanted = (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    own = (1,) * (4 - x.ndim) + x.shape
    if len(own) > 4 or any(n not in (1, full) for n, full in zip(own, wanted, strict=False)):
        raise located(
            ValueError,
            f"dot_product_attention: {name} of shape {x.shape} does not broadcast to the logits (B, N, T, S) = "
            f"{wanted}",
        )
    return x.reshape(own)
