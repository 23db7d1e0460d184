"""Attention on the device that the tests run on, against the formula in float32: values, derivatives, all options."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

ON_GPU = px.devices()[0].platform == "gpu"
BATCH, LENGTH, HEADS, WIDTH = 2, 256, 4, 64

OPTIONS: dict[str, dict] = {
    "plain": {},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.3},
    "window": {"is_causal": True, "local_window_size": (40, 0)},
    "window without is_causal": {"local_window_size": (40, 0)},
    "bias": {"bias": (1, HEADS, LENGTH, LENGTH)},
    "bias of the batch": {"bias": (BATCH, 1, LENGTH, LENGTH)},
    "bias of positions": {"bias": (1, 1, 1, LENGTH)},
    "mask": {"mask": (BATCH, 1, LENGTH, LENGTH)},
    "mask and bias": {"mask": (1, HEADS, LENGTH, LENGTH), "bias": (1, HEADS, LENGTH, LENGTH)},
    "mask and causal": {"mask": (BATCH, 1, 1, LENGTH), "is_causal": True},
    "rows that see nothing": {"mask": (BATCH, HEADS, LENGTH, 1)},
    "rows that see nothing, of a window": {
        "mask": (1, HEADS, LENGTH, LENGTH),
        "bias": (1, HEADS, LENGTH, LENGTH),
        "local_window_size": (1, 0),
        "key_value_seq_lengths": [200, 0],
        "key_heads": 2,
    },
    "other lengths and causal": {"key_length": 384, "is_causal": True},
    "other lengths and a window": {"key_length": 384, "local_window_size": (30, 0)},
    "lengths": {"query_seq_lengths": [200, 256], "key_value_seq_lengths": [130, 17]},
    "length of keys": {"key_value_seq_lengths": [130, 0]},
    "lengths and causal": {
        "query_seq_lengths": [256, 3],
        "key_value_seq_lengths": [256, 100],
        "is_causal": True,
    },
    "grouped": {"key_heads": 2},
    "one key": {"key_heads": 1, "is_causal": True},
    "other lengths": {"key_length": 384},
    "narrow": {"width": 32, "is_causal": True},
    "wide": {"width": 128, "is_causal": True},
}


def arguments(options: dict, dtype: str) -> tuple[list, dict]:
    """Query, key, value and perhaps a bias; and the options as they are given to the function."""
    generator = np.random.default_rng(0)
    given = dict(options)
    key_length, key_heads = given.pop("key_length", LENGTH), given.pop("key_heads", HEADS)
    width = given.pop("width", WIDTH)
    shapes = [(BATCH, LENGTH, HEADS, width), *[(BATCH, key_length, key_heads, width)] * 2]
    shapes += [given.pop("bias")] if "bias" in given else []
    arrays = [jnp.asarray(generator.normal(size=shape).astype(np.float32)).astype(dtype) for shape in shapes]
    if "mask" in given:
        given["mask"] = jnp.asarray(generator.random(given["mask"]) < 0.7)
    for name in ("query_seq_lengths", "key_value_seq_lengths"):
        if name in given:
            given[name] = jnp.asarray(given[name], jnp.int32)
    return arrays, given


def results(arrays: list, **options) -> list:
    """The attention, and the derivatives of a function of it."""

    def forward(q, k, v, bias=None):
        return px.nn.dot_product_attention(q, k, v, bias, **options)

    def loss(*xs):
        return jnp.sum(jnp.sin(forward(*xs).astype(jnp.float32)))

    return [px.jit(forward)(*arrays), *px.jit(px.grad(loss, argnums=tuple(range(len(arrays)))))(*arrays)]


def errors(got: list, want: list) -> list[float]:
    """The largest difference of each result, relative to its largest element."""
    pairs = [(np.asarray(x).astype(np.float32), np.asarray(y)) for x, y in zip(got, want, strict=True)]
    assert all(np.isfinite(x).all() for x, _ in pairs)
    return [float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-3)) for x, y in pairs]


@pytest.mark.sampled(1 if ON_GPU else 3)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("implementation", ["cudnn", None])
def test_options(name, dtype, implementation):
    if implementation == "cudnn" and not ON_GPU:
        pytest.skip("cuDNN runs on GPUs")
    arrays, options = arguments(OPTIONS[name], dtype)
    want = results([x.astype(jnp.float32) for x in arrays], **options, implementation="xla")
    tolerance = 3e-2 if dtype == "bfloat16" else 4e-3
    found = errors(results(arrays, **options, implementation=implementation), want)
    assert max(found) < tolerance, found


@pytest.mark.skipif(not ON_GPU, reason="cuDNN runs on GPUs")
def test_a_window_over_fewer_keys_is_refused_and_left_to_others():
    (q, _, _), options = arguments({"local_window_size": (30, 0)}, "bfloat16")
    few = q[:, :128]
    with pytest.raises(NotImplementedError, match="as many positions of the key as of the query, not 128 and 256"):
        px.nn.dot_product_attention(q, few, few, implementation="cudnn", **options)
    assert jnp.isfinite(px.nn.dot_product_attention(q, few, few, **options)).all()


@pytest.mark.skipif(not ON_GPU, reason="cuDNN runs on GPUs")
@pytest.mark.parametrize("name", ["plain", "mask and causal", "rows that see nothing", "length of keys"])
def test_residuals(name):
    arrays, options = arguments(OPTIONS[name], "bfloat16")
    wide = [x.astype(jnp.float32) for x in arrays]

    def residual(xs, implementation):
        options_here = {**options, "implementation": implementation, "return_residual": True}
        return px.nn.dot_product_attention(*xs, **options_here)[1].astype(jnp.float32)

    got, want = residual(arrays, "cudnn"), residual(wide, "xla")
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-2, atol=2e-2)


@pytest.mark.skipif(not ON_GPU, reason="cuDNN runs on GPUs")
def test_cudnn_is_chosen_forwards_and_backwards():
    arrays, _ = arguments({}, "bfloat16")

    def loss(q, k, v):
        return px.nn.dot_product_attention(q, k, v, is_causal=True).astype(jnp.float32).sum()

    text = px.jit(px.grad(loss)).lower(*arrays).as_text()
    assert '"__cudnn$fmhaSoftmax"' in text or "@__cudnn$fmhaSoftmax(" in text
    assert "__cudnn$fmhaSoftmaxBackward" in text


@pytest.mark.skipif(not ON_GPU, reason="cuDNN runs on GPUs")
def test_batches_loops_and_checkpoints():
    arrays, _ = arguments({}, "bfloat16")
    stacked = [jnp.stack([x, -x]) for x in arrays]

    def attention(q, k, v, **options):
        return px.nn.dot_product_attention(q, k, v, is_causal=True, **options)

    many = px.jit(px.vmap(lambda *xs: attention(*xs, implementation="cudnn")))(*stacked)
    one = px.jit(lambda *xs: attention(*xs, implementation="xla"))(*(-x.astype(jnp.float32) for x in arrays))
    assert max(errors([many[1]], [one])) < 3e-2

    def loss(q, k, v, **options):
        def layer(x, _):
            return px.checkpoint(lambda x: attention(x, k, v, **options))(x), None

        return px.lax.scan(layer, q, None, length=3)[0].astype(jnp.float32).sum()

    got = px.jit(px.grad(lambda *xs: loss(*xs, implementation="cudnn"), argnums=(0, 1, 2)))(*arrays)
    wide = [x.astype(jnp.float32) for x in arrays]
    want = px.jit(px.grad(lambda *xs: loss(*xs, implementation="xla"), argnums=(0, 1, 2)))(*wide)
    assert max(errors(list(got), list(want))) < 5e-2
