# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Attention with masks that are known beforehand."""

from purax.pallas.ops.tpu.splash_attention.splash_attention_kernel import BlockSizes as BlockSizes
from purax.pallas.ops.tpu.splash_attention.splash_attention_kernel import QKVLayout as QKVLayout
from purax.pallas.ops.tpu.splash_attention.splash_attention_kernel import SegmentIds as SegmentIds
from purax.pallas.ops.tpu.splash_attention.splash_attention_kernel import make_splash_mha as make_splash_mha
from purax.pallas.ops.tpu.splash_attention.splash_attention_kernel import make_splash_mha_single_device as make_splash_mha_single_device
from purax.pallas.ops.tpu.splash_attention.splash_attention_kernel import make_splash_mqa as make_splash_mqa
from purax.pallas.ops.tpu.splash_attention.splash_attention_kernel import make_splash_mqa_single_device as make_splash_mqa_single_device
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import CausalMask as CausalMask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import ChunkedCausalMask as ChunkedCausalMask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import FullMask as FullMask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import LocalMask as LocalMask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import Mask as Mask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import MultiHeadMask as MultiHeadMask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import NumpyMask as NumpyMask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import make_causal_mask as make_causal_mask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import make_local_attention_mask as make_local_attention_mask
from purax.pallas.ops.tpu.splash_attention.splash_attention_mask import make_random_mask as make_random_mask

__all__ = ['BlockSizes', 'CausalMask', 'ChunkedCausalMask', 'FullMask', 'LocalMask', 'Mask', 'MultiHeadMask', 'NumpyMask', 'QKVLayout', 'SegmentIds', 'make_causal_mask', 'make_local_attention_mask', 'make_random_mask', 'make_splash_mha', 'make_splash_mha_single_device', 'make_splash_mqa', 'make_splash_mqa_single_device']
