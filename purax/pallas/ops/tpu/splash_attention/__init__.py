"""Attention with masks that are known beforehand."""

from purax.pallas.ops.tpu.splash_attention.splash_attention_kernel import (
    BlockSizes,
    QKVLayout,
    SegmentIds,
    make_splash_mha,
    make_splash_mha_single_device,
    make_splash_mqa,
    make_splash_mqa_single_device,
)
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import (
    CausalMask,
    ChunkedCausalMask,
    FullMask,
    LocalMask,
    Mask,
    MultiHeadMask,
    NumpyMask,
    make_causal_mask,
    make_local_attention_mask,
    make_random_mask,
)

__all__ = [
    "BlockSizes",
    "CausalMask",
    "ChunkedCausalMask",
    "FullMask",
    "LocalMask",
    "Mask",
    "MultiHeadMask",
    "NumpyMask",
    "QKVLayout",
    "SegmentIds",
    "make_causal_mask",
    "make_local_attention_mask",
    "make_random_mask",
    "make_splash_mha",
    "make_splash_mha_single_device",
    "make_splash_mqa",
    "make_splash_mqa_single_device",
]
