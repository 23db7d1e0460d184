"""Kernels compiled by Triton, on a GPU, against the same kernels as XLA programs and against formulas."""

from __future__ import annotations

import numpy as np
import pytest

import purax
from purax import lax
from purax import numpy as jnp
from purax import pallas as pl
from purax.pallas import triton

S = purax.ShapeDtypeStruct
pytestmark = pytest.mark.skipif(purax.default_backend() not in ("gpu", "cuda"), reason="needs a GPU")


def floats(*shape: int, seed: int = 0, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32)).astype(dtype)


def close(got, want, tolerance: float) -> None:
    got, want = (np.asarray(x.astype(jnp.float32)) for x in (got, want))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * float(np.abs(want).max()))


def add_kernel(x_ref, y_ref, o_ref):
    part = pl.ds(pl.program_id(0) * 1024, 1024)
    mask = pl.program_id(0) * 1024 + jnp.arange(1024) < x_ref.shape[0]
    x = triton.load(x_ref.at[part], mask=mask, other=0.0)
    y = triton.load(y_ref.at[part], mask=mask, other=0.0)
    triton.store(o_ref.at[part], x + y, mask=mask)


def add(x, y, interpret=False):
    call = pl.pallas_call(add_kernel, S(x.shape, x.dtype), grid=(pl.cdiv(x.size, 1024),), interpret=interpret)
    return call(x, y)


def softmax_kernel(x_ref, o_ref, *, size):
    row = pl.program_id(0)
    columns = jnp.arange(pl.next_power_of_2(size))
    part, mask = (row, pl.ds(0, columns.size)), columns < size
    x = triton.load(x_ref.at[part], mask=mask, other=-jnp.inf).astype(jnp.float32)
    e = jnp.exp(x - jnp.max(x))
    triton.store(o_ref.at[part], (e / jnp.sum(e)).astype(o_ref.dtype), mask=mask)


def softmax(x, interpret=False):
    def kernel(x_ref, o_ref):
        softmax_kernel(x_ref, o_ref, size=x.shape[1])

    return pl.pallas_call(kernel, S(x.shape, x.dtype), grid=x.shape[:1], interpret=interpret)(x)


def layer_norm(x, g, b, interpret=False):
    def kernel(x_ref, g_ref, b_ref, o_ref):
        x = x_ref[...].astype(jnp.float32)
        mean = jnp.mean(x, -1, keepdims=True)
        centered = x - mean
        scale = lax.rsqrt(jnp.mean(centered * centered, -1, keepdims=True) + 1e-5)
        o_ref[...] = (centered * scale * g_ref[...] + b_ref[...]).astype(o_ref.dtype)

    rows = pl.BlockSpec((4, x.shape[1]), lambda i: (i, 0))
    whole = pl.BlockSpec((x.shape[1],), lambda i: (0,))
    call = pl.pallas_call(
        kernel,
        S(x.shape, x.dtype),
        grid=(x.shape[0] // 4,),
        in_specs=[rows, whole, whole],
        out_specs=rows,
        interpret=interpret,
    )
    return call(x, g, b)


def matmul(x, y, bm=64, bn=64, bk=32, interpret=False):
    def kernel(x_ref, y_ref, o_ref):
        def body(k, total):
            at = pl.ds(k * bk, bk)
            return total + triton.dot(x_ref[:, at], y_ref[at, :])

        total = lax.fori_loop(0, x.shape[1] // bk, body, jnp.zeros((bm, bn), jnp.float32))
        o_ref[...] = total.astype(o_ref.dtype)

    call = pl.pallas_call(
        kernel,
        S((x.shape[0], y.shape[1]), x.dtype),
        grid=(x.shape[0] // bm, y.shape[1] // bn),
        in_specs=[
            pl.BlockSpec((bm, x.shape[1]), lambda i, j: (i, 0)),
            pl.BlockSpec((x.shape[1], bn), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=3),
        interpret=interpret,
    )
    return call(x, y)


def attention(q, k, v, causal=False, block=64, interpret=False):
    heads, length, size = q.shape

    def kernel(q_ref, k_ref, v_ref, o_ref):
        i = pl.program_id(1)
        q = q_ref[...]

        def body(j, carry):
            total, largest, norm = carry
            at = pl.ds(j * block, block)
            scores = triton.dot(q, k_ref[at, :], trans_b=True)
            if causal:
                rows = i * block + lax.broadcasted_iota(jnp.int32, scores.shape, 0)
                columns = j * block + lax.broadcasted_iota(jnp.int32, scores.shape, 1)
                scores = jnp.where(rows >= columns, scores, -1e30)
            new = jnp.maximum(largest, scores.max(-1))
            weights = jnp.exp(scores - new[:, None])
            shrink = jnp.exp(largest - new)
            total = total * shrink[:, None] + triton.dot(weights.astype(v_ref.dtype), v_ref[at, :])
            return total, new, norm * shrink + weights.sum(-1)

        first = (
            jnp.zeros((block, size), jnp.float32),
            jnp.full((block,), -1e30, jnp.float32),
            jnp.zeros((block,), jnp.float32),
        )
        total, _, norm = lax.fori_loop(0, i + 1 if causal else length // block, body, first)
        o_ref[...] = (total / norm[:, None]).astype(o_ref.dtype)

    rows = pl.BlockSpec((None, block, size), lambda h, i: (h, i, 0))
    keys = pl.BlockSpec((None, length, size), lambda h, i: (h, 0, 0))
    call = pl.pallas_call(
        kernel,
        S(q.shape, q.dtype),
        grid=(heads, length // block),
        in_specs=[rows, keys, keys],
        out_specs=rows,
        interpret=interpret,
    )
    return call(q, k, v)


def attention_formula(q, k, v, causal=False):
    scores = jnp.einsum("hqd,hkd->hqk", q.astype(jnp.float32), k.astype(jnp.float32), precision="highest")
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -jnp.inf)
    weights = purax.nn.softmax(scores)
    return jnp.einsum("hqk,hkd->hqd", weights, v.astype(jnp.float32), precision="highest").astype(q.dtype)


def test_vectors_are_added_up_to_their_end():
    x, y = floats(100_000), floats(100_000, seed=1)
    close(add(x, y), x + y, 1e-6)
    assert "__gpu$xla.gpu.triton" in purax.jit(add).lower(x, y).as_text()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("size", [128, 1000])
def test_softmax(dtype, size):
    x = floats(512, size, dtype=dtype)
    close(
        softmax(x),
        purax.nn.softmax(x.astype(jnp.float32)).astype(dtype),
        1e-5 if dtype == "float32" else 1e-2,
    )


def test_layer_norm():
    x, g, b = floats(256, 1024), floats(1024, seed=1), floats(1024, seed=2)
    close(layer_norm(x, g, b), layer_norm(x, g, b, interpret=True), 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_matmul(dtype):
    x, y = floats(512, 256, dtype=dtype), floats(256, 384, seed=1, dtype=dtype)
    want = jnp.dot(x.astype(jnp.float32), y.astype(jnp.float32), precision="highest").astype(dtype)
    close(matmul(x, y), want, 1e-2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_flash_attention(causal, dtype):
    q, k, v = (floats(4, 512, 64, seed=i, dtype=dtype) / 3 for i in range(3))
    close(attention(q, k, v, causal), attention_formula(q, k, v, causal), 2e-2)


def test_atomic_adds():
    def kernel(bin_ref, o_ref):
        triton.atomic_add(o_ref, (bin_ref[...],), jnp.ones((256,), jnp.float32))

    bins = jnp.asarray(np.random.default_rng(0).integers(0, 16, 1024).astype(np.int32))
    block = pl.BlockSpec((256,), lambda i: i)
    call = pl.pallas_call(
        lambda b, zero, o: kernel(b, o),
        S((16,), jnp.float32),
        grid=(4,),
        in_specs=[block, pl.BlockSpec((16,), lambda i: 0)],
        out_specs=pl.BlockSpec((16,), lambda i: 0),
        input_output_aliases={1: 0},
    )
    close(call(bins, jnp.zeros(16)), jnp.bincount(bins, length=16).astype(jnp.float32), 1e-6)


FUNCTIONS = {
    "exp": jnp.exp,
    "log": lambda x: jnp.log(jnp.abs(x) + 1),
    "tanh": jnp.tanh,
    "sqrt": lambda x: jnp.sqrt(jnp.abs(x)),
    "logistic": purax.nn.sigmoid,
    "gelu": purax.nn.gelu,
    "power": lambda x: jnp.abs(x) ** 2.5,
    "cube": lambda x: x**3,
    "sign": jnp.sign,
    "floor": jnp.floor,
    "clip": lambda x: jnp.clip(x, -0.5, 0.5),
    "remainder": lambda x: x % 0.7,
    "integers": lambda x: ((x * 10).astype(jnp.int32) // 3 % 4).astype(jnp.float32),
    "bits": lambda x: lax.bitcast_convert_type(
        lax.bitcast_convert_type(x, jnp.int32) & 0x7FFFFFFF, jnp.float32
    ),
    "erf": lax.erf,
    "isnan": lambda x: jnp.isnan(jnp.log(x)).astype(jnp.float32),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    def kernel(x_ref, o_ref):
        o_ref[...] = FUNCTIONS[name](x_ref[...])

    x = floats(1024)
    block = pl.BlockSpec((256,), lambda i: i)
    call = pl.pallas_call(kernel, S((1024,), jnp.float32), grid=(4,), in_specs=[block], out_specs=block)
    close(call(x), FUNCTIONS[name](x), 1e-5)
    assert "__gpu$xla.gpu.triton" in purax.jit(call).lower(x).as_text()


def test_loops_branches_and_edges():
    def kernel(x_ref, o_ref):
        x = x_ref[...]

        def goes_on(state):
            return jnp.max(state[1]) > 1.0

        count, x = lax.while_loop(goes_on, lambda state: (state[0] + 1, state[1] * 0.5), (0, x))
        x = lax.cond(count > 2, lambda: x + 1, lambda: x)
        o_ref[...] = x + count.astype(jnp.float32)

        @pl.when(pl.program_id(0) == 1)
        def _():
            o_ref[...] = -o_ref[...]

    x = floats(200) * 10
    block = pl.BlockSpec((128,), lambda i: i)

    def run(x, interpret):
        # The block at the end is filled up with zeros on the GPU, and with NaN elsewhere.
        x = jnp.pad(x, (0, 56))
        call = pl.pallas_call(
            kernel, S((200,), jnp.float32), grid=2, in_specs=[block], out_specs=block, interpret=interpret
        )
        return call(x)

    close(run(x, False), run(x, True), 1e-6)


def test_derivatives_and_batches_are_those_of_the_program_over_the_grid():
    x, g, b = floats(64, 128), floats(128, seed=1), floats(128, seed=2)
    gradient = purax.grad(lambda x: (layer_norm(x, g, b) ** 2).sum())(x)
    want = purax.grad(lambda x: (layer_norm(x, g, b, interpret=True) ** 2).sum())(x)
    close(gradient, want, 1e-5)
    close(purax.vmap(softmax)(x.reshape(2, 32, 128)), purax.nn.softmax(x).reshape(2, 32, 128), 1e-5)
