"""Kernels as modules of Triton's dialect: they verify without a GPU, and what GPUs lack is refused with a way out."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax
from purax import lax
from purax import numpy as jnp
from purax import pallas as pl
from purax.pallas import mosaic_gpu, tpu, triton
from tests.on_device import test_pallas as kernels

S = purax.ShapeDtypeStruct
BLOCK = pl.BlockSpec((64,), lambda i: i)


def lowered(function, *args) -> str:
    """What a function becomes for a GPU; Triton's part was verified."""
    return purax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def operations(text: str) -> list[str]:
    return re.findall(r'\\(?:"|22)((?:tt|arith|scf|math)\.[\w.]+)\\(?:"|22)\(', text)


def simple(kernel, dtype=jnp.float32, grid=(4,), out=None, **options):
    shape = S((256,), out or dtype)
    return lowered(
        pl.pallas_call(kernel, shape, grid=grid, in_specs=[BLOCK], out_specs=BLOCK, **options),
        jnp.ones(256, dtype),
    )


PROGRAMS = {
    "add": (kernels.add, kernels.floats(1000), kernels.floats(1000)),
    "softmax": (kernels.softmax, kernels.floats(64, 100)),
    "layer_norm": (kernels.layer_norm, kernels.floats(64, 128), kernels.floats(128), kernels.floats(128)),
    "matmul": (kernels.matmul, kernels.floats(128, 64), kernels.floats(64, 128)),
    "attention": (kernels.attention, *(kernels.floats(2, 128, 64, dtype=jnp.bfloat16),) * 3),
    "causal": (lambda *a: kernels.attention(*a, causal=True), *(kernels.floats(2, 128, 64),) * 3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_verify(name):
    function, *args = PROGRAMS[name]
    text = lowered(function, *args)
    assert text.count("__gpu$xla.gpu.triton") == 1
    found = operations(text)
    assert "tt.load" in found and "tt.store" in found
    assert ("tt.dot" in found) == (name in ("matmul", "attention", "causal"))
    assert "scf.while" not in found  # loops that count are pipelined


@pytest.mark.parametrize("name", kernels.FUNCTIONS)
def test_functions_verify(name):
    def kernel(x_ref, o_ref):
        o_ref[...] = kernels.FUNCTIONS[name](x_ref[...]).astype(o_ref.dtype)

    assert "tt.store" in operations(simple(kernel))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "int8", "uint8", "int16", "int32", "uint32", "bool"]
)
def test_dtypes_verify(dtype):
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        y = ~x if dtype == "bool" else jnp.maximum(x + x, x * 3)
        o_ref[...] = jnp.where(y == x, y, x)

    assert "tt.store" in operations(simple(kernel, jnp.dtype(dtype)))


def test_reductions_conversions_and_shapes_verify():
    def kernel(x_ref, o_ref):
        x = x_ref[...].reshape(8, 8)
        y = x - x.sum(0) + x.max(1, keepdims=True) + x.min() + jnp.prod(x, 1)[:, None]
        y = y.T.astype(jnp.bfloat16).astype(jnp.float32) + lax.broadcasted_iota(jnp.float32, (8, 8), 1)
        y = jnp.where(jnp.any(y > 2, 1)[:, None], y, jnp.all(y < 1))
        o_ref[...] = y.reshape(64)

    found = operations(simple(kernel))
    assert found.count("tt.reduce") >= 7 and "tt.trans" in found and "tt.reshape" in found


def test_blocks_at_the_edge_are_masked():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def text(size):
        call = pl.pallas_call(kernel, S((size,), jnp.float32), grid=(4,), in_specs=[BLOCK], out_specs=BLOCK)
        return lowered(call, jnp.ones(size))

    assert "arith.cmpi" in operations(text(250))
    assert "arith.cmpi" not in operations(text(256))


def test_hints_and_parameters_are_passed_on():
    def kernel(x_ref, o_ref):
        x = triton.load(x_ref.at[...], cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
        triton.store(o_ref.at[...], x, eviction_policy="evict_first")

    text = simple(kernel, compiler_params=triton.CompilerParams(num_warps=8, num_stages=2))
    assert "num_warps = 8 : i32" in text and "num_stages = 2 : i32" in text and "grid_x = 4 : i32" in text
    assert "cache = 3 : i32, evict = 3 : i32, isVolatile = true" in text
    assert "cache = 1 : i32, evict = 2 : i32" in text


def test_atomics_verify():
    def kernel(x_ref, zero_ref, o_ref):
        triton.atomic_add(o_ref, (pl.ds(0, 64),), x_ref[...])
        triton.atomic_add(o_ref, (jnp.arange(64) // 2,), x_ref[...], mask=x_ref[...] > 0)

    whole = pl.BlockSpec((64,), lambda i: 0)
    call = pl.pallas_call(
        kernel,
        S((64,), jnp.float32),
        grid=(4,),
        in_specs=[BLOCK, whole],
        out_specs=whole,
        input_output_aliases={1: 0},
    )
    text = lowered(call, jnp.ones(256), jnp.zeros(64))
    assert operations(text).count("tt.atomic_rmw") == 2
    assert "output_operand_aliases" in text


@pytest.mark.parametrize("axes", [(0, None, 0), (None, 1, 0)])
def test_batches_lengthen_the_grid(axes):
    def kernel(x_ref, y_ref, z_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...] * z_ref[...] + pl.program_id(0)

    call = pl.pallas_call(kernel, S((256,), jnp.float32), grid=(4,), in_specs=[BLOCK] * 3, out_specs=BLOCK)
    shapes = [(256,) if axis is None else (3, 256) if axis == 0 else (256, 3) for axis in axes]
    args = [jnp.ones(shape) for shape in shapes]
    text = lowered(purax.vmap(call, in_axes=axes), *args)
    assert "grid_x = 12 : i32" in text and "tensor<3x256xf32>" in text
    twice = purax.vmap(purax.vmap(call, in_axes=axes), in_axes=(None, None, 0))
    text = lowered(twice, *args[:2], jnp.ones((2, 3, 256)))
    assert "grid_x = 24 : i32" in text and "tensor<2x3x256xf32>" in text
    np.testing.assert_array_equal(
        twice(*args[:2], jnp.ones((2, 3, 256)))[1, 2], np.repeat(np.arange(4.0) + 2, 64)
    )


def test_interpreted_kernels_are_programs():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    assert "triton" not in simple(kernel, interpret=True)


def copies(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def odd_sizes(x_ref, o_ref):
    o_ref[...] = jnp.concatenate([x_ref[:24] * 2, x_ref[24:]])


def writes_an_input(x_ref, o_ref):
    x_ref[...] = x_ref[...] + 1
    o_ref[...] = x_ref[...]


def sorts(x_ref, o_ref):
    o_ref[...] = jnp.sort(x_ref[...])


def multiplies_small_matrices(x_ref, o_ref):
    x = x_ref[...].reshape(8, 8)
    o_ref[...] = (x @ x).reshape(64)


REFUSED = [
    (odd_sizes, {}, "powers of two"),
    (writes_an_input, {}, "alias it to an output"),
    (sorts, {}, "is not lowered"),
    (multiplies_small_matrices, {}, "16 rows and columns at least"),
    (kernels.add_kernel, {"scratch_shapes": [tpu.VMEM((8,), jnp.float32)]}, "scratch memory"),
    (copies, {"compiler_params": mosaic_gpu.CompilerParams()}, "give `triton.CompilerParams`"),
    (copies, {"compiler_params": tpu.CompilerParams()}, "give `triton.CompilerParams`"),
]


@pytest.mark.parametrize("kernel, options, text", REFUSED)
def test_what_gpus_lack(kernel, options, text):
    with pytest.raises(NotImplementedError, match=f"(?s)for a GPU: .*{text}.*interpret=True") as caught:
        simple(kernel, **options)
    assert kernel.__name__ in str(caught.value)


def test_tpus_have_no_compiler_here():
    call = pl.pallas_call(lambda x_ref, o_ref: o_ref.set(x_ref[...]), S((64,), jnp.float32))
    with pytest.raises(NotImplementedError, match="not lowered for TPUs.*interpret=True"):
        purax.jit(call).trace(jnp.ones(64)).lower(lowering_platforms=("tpu",))
