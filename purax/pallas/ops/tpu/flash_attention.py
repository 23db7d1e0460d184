"""Attention of many heads on arrays (batch, heads, length, size)."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from purax.pallas.ops.formulas import LOWEST, attention, both, causal_mask


class SegmentIds(NamedTuple):
    """For each query and each key the number of its segment."""

    q: Any
    kv: Any


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of blocks, which make no difference here."""

    block_q: int
    block_k_major: int
    block_k: int
    block_b: int
    block_q_major_dkv: int | None = None
    block_k_major_dkv: int | None = None
    block_k_dkv: int | None = None
    block_q_dkv: int | None = None
    block_k_major_dq: int | None = None
    block_k_dq: int | None = None
    block_q_dq: int | None = None

    @classmethod
    def get_default(cls, *lengths: int) -> BlockSizes:
        """Those that are taken without others."""
        return cls(128, 128, 128, 1, 128, 128, 128, 128, 128, 128, 128)


def flash_attention(
    q: Any,
    k: Any,
    v: Any,
    ab: Any = None,
    segment_ids: SegmentIds | None = None,
    *,
    causal: bool = False,
    sm_scale: float = 1.0,
    block_sizes: BlockSizes | None = None,
    debug: bool = False,
) -> Any:
    """Attention, with a bias `ab` and segments."""
    return mha_reference(q, k, v, ab, segment_ids, causal, LOWEST, sm_scale)


def mha_reference(
    q: Any,
    k: Any,
    v: Any,
    ab: Any = None,
    segment_ids: SegmentIds | None = None,
    causal: bool = False,
    mask_value: float = LOWEST,
    sm_scale: float = 1.0,
) -> Any:
    """The same as `flash_attention`."""
    mask = causal_mask(q.shape[-2], k.shape[-2]) if causal else None
    if segment_ids is not None:
        mask = both(mask, (segment_ids.q[:, :, None] == segment_ids.kv[:, None, :])[:, None])
    bias = None if ab is None else ab * sm_scale  # as in jax, which scales after adding
    return attention(q, k, v, bias=bias, mask=mask, scale=sm_scale, mask_value=mask_value)[0]
