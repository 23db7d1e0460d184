"""What an attention computes: its options, and its formulas with all logits at hand.

With logits s = scale · q kᵀ + bias, where hidden ones are `hidden_logit`, an attention gives o = P v with
P = exp(s − m) / l, where m is the largest logit of a row and l the sum of exp(s − m) over it. From o, m and l follow
the derivatives without a sum over rows: P is known where s is. m is a constant, by which no result changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from purax import lax
from purax import numpy as jnp
from purax.core.avals import ShapedArray


@dataclass(frozen=True)
class Form:
    """The options of an attention. Its operands are query, key, value, and those of bias, mask and lengths it has.

    Attributes:
        scale: of the logits.
        is_causal: whether a position sees no later ones.
        before: how many positions before its own a position sees; None for all.
        after: the same for those after it.
        has_bias: whether an operand is added to the logits, of shape (1 or B, 1 or N, 1 or T, 1 or S).
        has_mask: whether an operand of such a shape says which logits count.
        has_query_lengths: whether an operand (B,) says how many positions of the query count; only kernels care.
        has_key_lengths: whether an operand (B,) says how many positions of the key count.
        kernel: "cudnn" if that shall compute it or fail, "cudnn or tiles" if only where it is there, else None.
    """

    scale: Any
    is_causal: bool = False
    before: int | None = None
    after: int | None = None
    has_bias: bool = False
    has_mask: bool = False
    has_query_lengths: bool = False
    has_key_lengths: bool = False
    kernel: str | None = None

    @property
    def count(self) -> int:
        """How many operands there are."""
        return 3 + self.has_bias + self.has_mask + self.has_query_lengths + self.has_key_lengths

    def named(self, operands: Sequence[Any]) -> Operands:
        """The operands by what they are."""
        rest = iter(operands[3:])
        return Operands(
            *operands[:3],
            *(
                next(rest) if has else None
                for has in (self.has_bias, self.has_mask, self.has_query_lengths, self.has_key_lengths)
            ),
        )

    def sees(self, rows: Any, columns: Any) -> Any:
        """Whether the positions `rows` of the query see the positions `columns` of the key; None if all do."""
        seen = None
        after = self.after if not self.is_causal else 0 if self.after is None else min(0, self.after)
        if after is not None:
            seen = columns <= rows + np.int32(after)
        if self.before is not None:
            near = columns >= rows - np.int32(self.before)
            seen = near if seen is None else seen & near
        return seen


@dataclass(frozen=True)
class Operands:
    """The operands of an attention, None for those that it does not have."""

    query: Any
    key: Any
    value: Any
    bias: Any = None
    mask: Any = None
    query_lengths: Any = None
    key_lengths: Any = None

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int]:
        """Batch, length of the query, length of the key, heads of the query, heads of the key, width."""
        batch, length, heads, width = self.query.shape
        return batch, length, self.key.shape[1], heads, self.key.shape[2], width


def wide(dtype: Any) -> np.dtype:
    """The dtype that logits and sums are computed in."""
    return np.dtype(jnp.promote_types(dtype, np.float32))


def scale_in(form: Form, dtype: Any) -> Any:
    """The scale of the logits in their dtype."""
    return dtype.type(form.scale) if isinstance(form.scale, (int, float)) else form.scale


def hidden_logit(dtype: Any) -> Any:
    """What stands for a logit that does not count: so small that it weighs nothing beside others, yet a number, so
    that a row of nothing else has weights, too, all equal."""
    return dtype.type(-0.7 * float(np.finfo(dtype).max))


def result_avals(form: Form, operands: Operands, with_sums: bool) -> list[ShapedArray]:
    """The types of o, of shape (B, T, N, H), and of m and l, of shape (B, N, T)."""
    batch, length, _, heads, _, _ = operands.sizes
    out = ShapedArray((batch, length, heads, operands.value.shape[3]), operands.value.dtype)
    sums = ShapedArray((batch, heads, length), wide(operands.query.dtype))
    return [out, sums, sums] if with_sums else [out]


def products(x: Any, y: Any, form: Form, dtype: Any) -> Any:
    """x yᵀ · scale for each head, of shape (B, N, T, S)."""
    batch, length, heads, width = x.shape
    key_length, key_heads = y.shape[1], y.shape[2]
    grouped = x.reshape(batch, length, key_heads, heads // key_heads, width)
    out = jnp.einsum("btkgh,bskh->bkgts", grouped, y, preferred_element_type=dtype)
    return out.reshape(batch, heads, length, key_length) * scale_in(form, dtype)


def visible(form: Form, operands: Operands) -> Any:
    """Which logits count, of a shape that spreads to (B, N, T, S); None for all."""
    _, length, key_length, *_ = operands.sizes
    rows, columns = np.arange(length, dtype=np.int32)[:, None], np.arange(key_length, dtype=np.int32)
    seen = form.sees(rows, columns)
    if operands.mask is not None:
        seen = operands.mask if seen is None else operands.mask & seen
    if operands.key_lengths is not None:
        counts = columns < operands.key_lengths[:, None, None, None]
        seen = counts if seen is None else seen & counts
    return seen


def logits(form: Form, operands: Operands) -> Any:
    """The logits, of shape (B, N, T, S)."""
    dtype = wide(operands.query.dtype)
    out = products(operands.query, operands.key, form, dtype)
    if operands.bias is not None:
        out = (out + operands.bias).astype(dtype)
    seen = visible(form, operands)
    return out if seen is None else jnp.where(seen, out, hidden_logit(dtype))


def weighted(weights: Any, value: Any) -> Any:
    """The sums of values (B, T, N, H) that weights (B, N, T, S) give."""
    batch, heads, length, key_length = weights.shape
    key_heads = value.shape[2]
    weights = weights.reshape(batch, key_heads, heads // key_heads, length, key_length)
    return jnp.einsum("bkgts,bskh->btkgh", weights, value).reshape(batch, length, heads, value.shape[3])


def attention(form: Form, operands: Operands, with_sums: bool) -> list[Any]:
    """[o], or [o, m, l]."""
    s = logits(form, operands)
    largest = lax.stop_gradient(jnp.max(s, axis=-1, keepdims=True))
    powers = jnp.exp(s - largest)
    total = jnp.sum(powers, axis=-1, keepdims=True)
    out = weighted((powers / total).astype(operands.value.dtype), operands.value)
    return [out, largest[..., 0], total[..., 0]] if with_sums else [out]


def _weights(form: Form, operands: Operands, m: Any, l: Any) -> Any:  # noqa: E741
    return jnp.exp(logits(form, operands) - m[..., None]) / l[..., None]


def tangent(form: Form, operands: Operands, results: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The tangents of o and l, given o, m and l and tangents of query, key, value and bias, None for zeros."""
    out, m, l = results  # noqa: E741
    dq, dk, dv, dbias = tangents
    dtype = m.dtype
    weights = _weights(form, operands, m, l)
    ds = jnp.zeros_like(weights)
    if dq is not None:
        ds = ds + products(dq, operands.key, form, dtype)
    if dk is not None:
        ds = ds + products(operands.query, dk, form, dtype)
    if dbias is not None:
        ds = (ds + dbias).astype(dtype)
    seen = visible(form, operands)
    moved = weights * (ds if seen is None else jnp.where(seen, ds, 0))
    sums = jnp.sum(moved, axis=-1)
    dout = weighted(moved, operands.value.astype(dtype)) - _by_row(sums) * out.astype(dtype)
    if dv is not None:
        dout = dout + weighted(weights, dv.astype(dtype))
    return [dout.astype(out.dtype), l * sums]


def _by_row(x: Any) -> Any:
    """Numbers of rows, of shape (B, N, T), beside results, of shape (B, T, N, H)."""
    return jnp.transpose(x, (0, 2, 1))[..., None]


def cotangent(
    form: Form, operands: Operands, results: Sequence[Any], cotangents: Sequence[Any], moving: Sequence[bool]
) -> list[Any]:
    """The cotangents of query, key, value and bias, those that are `moving`, given those of o and l."""
    out, m, l = results  # noqa: E741
    dtype = m.dtype
    by_out, by_l = cotangents[0].astype(dtype), cotangents[1]
    batch, length, key_length, heads, key_heads, _ = operands.sizes
    weights = _weights(form, operands, m, l)
    common = by_l * l - jnp.transpose(jnp.sum(by_out * out.astype(dtype), axis=-1), (0, 2, 1))
    ones = Form(1.0)
    by_s = weights * (products(by_out, operands.value.astype(dtype), ones, dtype) + common[..., None])
    seen = visible(form, operands)
    by_s = by_s if seen is None else jnp.where(seen, by_s, 0)

    def over_rows(x: Any, rows: Any) -> Any:
        x = x.reshape(batch, key_heads, heads // key_heads, length, key_length)
        rows = rows.astype(dtype).reshape(batch, length, key_heads, heads // key_heads, rows.shape[3])
        return jnp.einsum("bkgts,btkgh->bskh", x, rows)

    scale = scale_in(form, dtype)
    found = []
    for i, is_wanted in enumerate(moving):
        if not is_wanted:
            continue
        if i == 0:
            found.append((weighted(by_s, operands.key.astype(dtype)) * scale).astype(operands.query.dtype))
        elif i == 1:
            found.append((over_rows(by_s, operands.query) * scale).astype(operands.key.dtype))
        elif i == 2:
            found.append(over_rows(weights, by_out).astype(operands.value.dtype))
        else:
            bias = operands.bias
            axes = tuple(axis for axis in range(4) if bias.shape[axis] != by_s.shape[axis])
            found.append(jnp.sum(by_s, axis=axes, keepdims=True).astype(bias.dtype))
    return found
