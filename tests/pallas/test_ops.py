"""Operations under the names of `jax.experimental.pallas.ops`, against jax's own formulas for them."""

from __future__ import annotations

import importlib
import warnings

import jax
import numpy as np
import pytest

import purax
from purax import numpy as jnp

JAX, OURS = "jax.experimental.pallas.ops.", "purax.pallas.ops."


def both(name: str):
    with warnings.catch_warnings():  # newer ones tell of a library that has them all
        warnings.filterwarnings("ignore", "jax.experimental.pallas.ops", DeprecationWarning)
        theirs = importlib.import_module(JAX + name)
    return theirs, importlib.import_module(OURS + name)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(got, want, tolerance=2e-5) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("segmented", [False, True])
def test_attention_of_gpus(causal, segmented):
    theirs, ours = both("gpu.attention")
    q, k, v = (floats(2, 16, 3, 8, seed=i) for i in range(3))
    segments = np.repeat(np.array([[0, 1], [2, 2]], np.int32), 8, 1) if segmented else None
    want = theirs.mha_reference(q, k, v, segments, sm_scale=0.5, causal=causal)
    close(ours.mha(q, k, v, segments, sm_scale=0.5, causal=causal), want)
    gradient = purax.grad(lambda q: ours.mha(q, k, v, segments, sm_scale=0.5, causal=causal).sum())(q)
    close(
        gradient,
        jax.grad(lambda q: theirs.mha_reference(q, k, v, segments, sm_scale=0.5, causal=causal).sum())(q),
        1e-4,
    )


def test_norms_and_softmax_of_gpus():
    x, w, b = floats(4, 16), floats(16, seed=1), floats(16, seed=2)
    centered = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    close(both("gpu.layer_norm")[1].layer_norm(x, w, b), centered / deviation * w + b)
    size = np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    close(both("gpu.rms_norm")[1].rms_norm(x, w, b), x / size * w + b)
    close(both("gpu.softmax")[1].softmax(x), jax.nn.softmax(x))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_flash_attention_of_tpus(causal, bias):
    theirs, ours = both("tpu.flash_attention")
    q, k, v = (floats(2, 3, 16, 8, seed=i) for i in range(3))
    ab = floats(2, 3, 16, 16, seed=4) if bias else None
    ids = np.repeat(np.array([[0, 1], [2, 2]], np.int32), 8, 1)
    want = theirs.mha_reference(q, k, v, ab, theirs.SegmentIds(ids, ids), causal=causal, sm_scale=0.5)
    got = ours.flash_attention(q, k, v, ab, ours.SegmentIds(ids, ids), causal=causal, sm_scale=0.5)
    close(got, want)


def test_products_of_groups():
    theirs, ours = both("tpu.megablox.gmm")
    x, m = floats(128, 128), floats(3, 128, 128, seed=1)
    sizes = np.array([40, 0, 88], np.int32)
    want = theirs.gmm(x, m, sizes, transpose_rhs=True, interpret=True)
    close(ours.gmm(x, m, sizes, transpose_rhs=True), want, 1e-4)
    y = floats(128, 128, seed=2)
    want = theirs.tgmm(x.T, y, sizes, interpret=True)
    got = ours.tgmm(x.T, y, sizes)
    close(np.asarray(got)[[0, 2]], np.asarray(want)[[0, 2]], 1e-4)


MASKS = {
    "causal": lambda m: m.CausalMask((16, 16)),
    "causal from 4 on": lambda m: m.CausalMask((16, 16), offset=4),
    "local": lambda m: m.LocalMask((16, 16), (3, 2), 0),
    "local before": lambda m: m.LocalMask((16, 16), (3, None), 2),
    "full": lambda m: m.FullMask((16, 16)),
    "chunks": lambda m: m.ChunkedCausalMask((16, 16), 4),
    "both": lambda m: m.CausalMask((16, 16)) & m.LocalMask((16, 16), (3, 2), 0),
    "either": lambda m: m.CausalMask((16, 16)) | m.LocalMask((16, 16), (3, 2), 0),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    theirs, ours = both("tpu.splash_attention.splash_attention_mask")
    np.testing.assert_array_equal(MASKS[name](ours)[:, :], MASKS[name](theirs)[:, :])
    stacked = ours.MultiHeadMask([MASKS[name](ours)] * 2)
    assert stacked.shape == (2, 16, 16)


@pytest.mark.parametrize("soft_cap", [None, 5.0])
@pytest.mark.parametrize("name", ["causal", "local"])
def test_splash_attention(name, soft_cap):
    theirs, ours = both("tpu.splash_attention.splash_attention_kernel")
    their_masks, our_masks = both("tpu.splash_attention.splash_attention_mask")
    q, k, v = (floats(4, 16, 8, seed=i) for i in range(3))
    ids = np.repeat(np.arange(2, dtype=np.int32), 8)
    mask = MASKS[name](their_masks)[:, :]
    kernel = ours.make_splash_mha(
        our_masks.MultiHeadMask([MASKS[name](our_masks)] * 4),
        head_shards=1,
        q_seq_shards=1,
        attn_logits_soft_cap=soft_cap,
    )
    got = purax.jit(lambda kernel, *a: kernel(*a))(kernel, q, k, v, ours.SegmentIds(ids, ids))
    for head in range(4):
        want = theirs.attention_reference(
            mask,
            *(x[head] for x in (q, k, v)),
            theirs.SegmentIds(ids, ids),
            attn_logits_soft_cap=soft_cap,
        )
        close(got[head], want)
    batched = purax.vmap(kernel)(jnp.stack([q, q]), jnp.stack([k, k]), jnp.stack([v, v]))
    assert batched.shape == (2, 4, 16, 8)
    grouped = kernel(q, k[:2], v[:2])
    close(grouped, kernel(q, jnp.repeat(k[:2], 2, 0), jnp.repeat(v[:2], 2, 0)))
    single = ours.make_splash_mqa_single_device(our_masks.MultiHeadMask([MASKS[name](our_masks)] * 4))
    assert single(q, k[0], v[0]).shape == q.shape


def test_a_mask_for_each_head_is_needed():
    _, ours = both("tpu.splash_attention.splash_attention_kernel")
    _, masks = both("tpu.splash_attention.splash_attention_mask")
    with pytest.raises(ValueError, match=r"MultiHeadMask\(\[mask\] \* heads\)"):
        ours.make_splash_mha(masks.CausalMask((16, 16)))
    with pytest.raises(TypeError, match="needs a Mask or an array of bools, got int"):
        ours.make_splash_mha(3)
