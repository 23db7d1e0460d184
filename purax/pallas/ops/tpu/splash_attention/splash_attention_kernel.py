"""Attention with a mask that is known beforehand, on arrays (heads, length, size)."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from purax import numpy as jnp
from purax.core.source import located
from purax.pallas.ops.formulas import LOWEST, attention, both
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import Mask, MultiHeadMask
from purax.tree_util import register_pytree_node


class QKVLayout(enum.IntEnum):
    """Which axis of an array is the fastest, which makes no difference here."""

    HEAD_DIM_MINOR = 1
    SEQ_MINOR = 2


class SegmentIds(NamedTuple):
    """For each query and each key the number of its segment."""

    q: Any
    kv: Any


@dataclasses.dataclass(frozen=True)
class BlockSizes:
    """Sizes of blocks, which make no difference here."""

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    @property
    def has_backward_blocks(self) -> bool:
        return self.block_q_dkv is not None

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Those that are taken without others."""
        return cls(128, 128, 128, 128, 128, 128, 128, 128)


class SplashAttentionKernel:
    """Attention with a mask: a function of (heads, length, size) arrays, and of segments."""

    def __init__(self, mask: Any, is_mqa: bool, options: dict[str, Any]):
        self.mask, self._is_mqa, self._options = mask, is_mqa, options

    def __call__(
        self, q: Any, k: Any, v: Any, segment_ids: SegmentIds | None = None, sinks: Any = None
    ) -> Any:
        if not self._is_mqa and k.shape[0] != q.shape[0]:
            if q.shape[0] % k.shape[0]:
                raise located(
                    ValueError, f"{q.shape[0]} heads of queries are no multiple of {k.shape[0]} heads of keys"
                )
            k, v = (jnp.repeat(x, q.shape[0] // x.shape[0], 0) for x in (k, v))
        return attention_reference(self.mask, q, k, v, segment_ids, sinks, **self._options)

    def manual_sharding_spec(self, sharding: Any) -> Any:
        """How the mask is sharded in a `shard_map`: as the logits of the heads and queries."""
        spec = tuple(sharding.spec)
        return SplashAttentionKernel(
            type(sharding.spec)(*spec, *[None] * (3 - len(spec))), self._is_mqa, self._options
        )


register_pytree_node(
    SplashAttentionKernel,
    lambda kernel: ((kernel.mask,), (kernel._is_mqa, tuple(sorted(kernel._options.items())))),
    lambda rest, children: SplashAttentionKernel(children[0], rest[0], dict(rest[1])),
)


def attention_reference(
    mask: Any,
    q: Any,
    k: Any,
    v: Any,
    segment_ids: SegmentIds | None = None,
    sinks: Any = None,
    *,
    mask_value: float = LOWEST,
    save_residuals: bool = False,
    custom_type: str = "flash",
    attn_logits_soft_cap: float | None = None,
) -> Any:
    """Attention; with `save_residuals` the logarithm of its sums, too."""
    allowed = jnp.asarray(mask)
    if segment_ids is not None:
        allowed = both(allowed, segment_ids.q[:, None] == segment_ids.kv[None, :])
    out, logsumexp = attention(
        q, k, v, mask=allowed, soft_cap=attn_logits_soft_cap, mask_value=mask_value, sinks=sinks
    )
    return (out, (logsumexp,)) if save_residuals else out


def _make(
    mask: Any,
    *,
    is_mqa: bool,
    block_sizes: BlockSizes | None = None,
    head_shards: int = 1,
    q_seq_shards: int = 1,
    mask_value: float = LOWEST,
    attn_logits_soft_cap: float | None = None,
    save_residuals: bool = False,
    downcast_smem_data: bool = True,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> SplashAttentionKernel:
    if isinstance(mask, np.ndarray):
        array = mask
    elif isinstance(mask, Mask):
        array = mask.array()
    else:
        raise located(
            TypeError, f"splash attention needs a Mask or an array of bools, got {type(mask).__name__}"
        )
    if array.ndim != 3:
        raise located(
            ValueError,
            f"splash attention needs a mask for each head, (heads, queries, keys), got shape {array.shape}; write "
            f"`MultiHeadMask([mask] * heads)`",
        )
    options = {
        "mask_value": mask_value,
        "attn_logits_soft_cap": attn_logits_soft_cap,
        "save_residuals": save_residuals,
    }
    return SplashAttentionKernel(jnp.asarray(array), is_mqa, options)


def make_splash_mha(mask: Mask | np.ndarray, **options: Any) -> SplashAttentionKernel:
    """Attention with keys and values for each head, or for each of several heads."""
    return _make(mask, is_mqa=False, **options)


def make_splash_mqa(mask: Mask | np.ndarray, **options: Any) -> SplashAttentionKernel:
    """Attention with one head of keys and values for all heads of queries."""
    return _make(mask, is_mqa=True, **options)


def make_splash_mha_single_device(mask: Mask | np.ndarray, **options: Any) -> SplashAttentionKernel:
    """`make_splash_mha` on one device."""
    return _make(mask, is_mqa=False, **options)


def make_splash_mqa_single_device(mask: Mask | np.ndarray, **options: Any) -> SplashAttentionKernel:
    """`make_splash_mqa` on one device."""
    return _make(mask, is_mqa=True, **options)


def make_attention_reference(
    mask: Mask | np.ndarray, is_mqa: bool, backward_impl: str = "vanilla", **params: Any
) -> Callable:
    """The same without blocks."""
    masks = MultiHeadMask([mask]) if isinstance(mask, Mask) and len(mask.shape) == 2 else mask
    return _make(masks, is_mqa=is_mqa, **params)
