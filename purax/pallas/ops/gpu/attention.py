"""Attention of many heads on arrays (batch, length, heads, size)."""

from __future__ import annotations

import dataclasses
from typing import Any

from purax import numpy as jnp
from purax.pallas.ops.formulas import attention, both, causal_mask


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of blocks, which make no difference here."""

    block_q: int
    block_k: int
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Those that are taken without others."""
        return cls(128, 128, 32, 32, 32, 32)


def segment_mask(q_segment_ids: Any, kv_segment_ids: Any) -> Any:
    """Which keys are of the segment of a query."""
    return q_segment_ids[..., :, None] == kv_segment_ids[..., None, :]


def mha(
    q: Any,
    k: Any,
    v: Any,
    segment_ids: Any = None,
    sm_scale: float = 1.0,
    causal: bool = False,
    block_sizes: BlockSizes | None = None,
    backward_pass_impl: str = "triton",
    num_warps: int | None = None,
    num_stages: int = 2,
    grid: tuple[int, ...] | None = None,
    interpret: bool = False,
    debug: bool = False,
    return_residuals: bool = False,
) -> Any:
    """Attention; with `return_residuals` the logarithm of its sums, too."""
    mask = causal_mask(q.shape[1], k.shape[1]) if causal else None
    if segment_ids is not None:
        mask = both(mask, segment_mask(segment_ids, segment_ids)[:, None])
    heads = [jnp.swapaxes(x, 1, 2) for x in (q, k, v)]
    out, logsumexp = attention(*heads, mask=mask, scale=sm_scale)
    out = jnp.swapaxes(out, 1, 2)
    return (out, (logsumexp,)) if return_residuals else out


def mha_reference(
    q: Any, k: Any, v: Any, segment_ids: Any = None, sm_scale: float = 1.0, causal: bool = False
) -> Any:
    """The same as `mha`."""
    return mha(q, k, v, segment_ids, sm_scale, causal)
