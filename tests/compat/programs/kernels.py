"""Kernels under jax's names, as the public tutorials write them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as plgpu


def add_kernel(x_ref, y_ref, o_ref):
    x, y = x_ref[...], y_ref[...]
    o_ref[...] = x + y


@jax.jit
def add(x: jax.Array, y: jax.Array) -> jax.Array:
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(add_kernel, out_shape=shape, interpret=True)(x, y)


print(add(jnp.arange(8), jnp.arange(8)))


def count_kernel(o_ref):
    i = pl.program_id(0)
    o_ref[i] = i


count = pl.pallas_call(count_kernel, jax.ShapeDtypeStruct((8,), jnp.int32), grid=(8,), interpret=True)
print(count())


def matmul_kernel(x_ref, y_ref, z_ref, *, activation):
    z_ref[...] = activation(x_ref[...] @ y_ref[...])


def matmul(x, y, *, activation):
    return pl.pallas_call(
        functools.partial(matmul_kernel, activation=activation),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype),
        grid=(2, 2),
        in_specs=[
            pl.BlockSpec((x.shape[0] // 2, x.shape[1]), lambda i, j: (i, 0)),
            pl.BlockSpec((y.shape[0], y.shape[1] // 2), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((x.shape[0] // 2, y.shape[1] // 2), lambda i, j: (i, j)),
        interpret=True,
    )(x, y)


k1, k2 = jax.random.split(jax.random.key(0))
x = jax.random.normal(k1, (4, 64, 64))
y = jax.random.normal(k2, (4, 64, 64))
z = jax.vmap(functools.partial(matmul, activation=jax.nn.relu))(x, y)
np.testing.assert_allclose(z, jax.nn.relu(jax.vmap(jnp.matmul)(x, y)), rtol=1e-5, atol=1e-5)
print(z.shape)


def accumulating_kernel(x_ref, y_ref, z_ref, acc_ref, *, nsteps):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == nsteps - 1)
    def _():
        z_ref[...] = acc_ref[...].astype(z_ref.dtype)


@functools.partial(jax.jit, static_argnames=["bm", "bk", "bn"])
def half_precision_matmul(x, y, *, bm=16, bk=32, bn=16):
    (m, k), (_, n) = x.shape, y.shape
    return pl.pallas_call(
        functools.partial(accumulating_kernel, nsteps=k // bk),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            in_specs=[
                pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
                pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
            grid=(m // bm, n // bn, k // bk),
        ),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        interpret=True,
    )(x, y)


a, b = x[0].astype(jnp.bfloat16), y[0].astype(jnp.bfloat16)
product = jnp.dot(a, b, preferred_element_type=jnp.float32)
np.testing.assert_allclose(half_precision_matmul(a, b).astype(jnp.float32), product, rtol=1e-2, atol=1e-2)
print(half_precision_matmul(a, b).dtype)


def take_block(indices, x_ref, o_ref):
    del indices
    o_ref[...] = x_ref[...]


grid_spec = pltpu.PrefetchScalarGridSpec(
    num_scalar_prefetch=1,
    grid=(1, 1),
    in_specs=[pl.BlockSpec((2, 4), lambda i, j, at: (at[0], at[1]))],
    out_specs=pl.BlockSpec((2, 4), lambda *_: (0, 0)),
)
take = pl.pallas_call(
    take_block, grid_spec=grid_spec, out_shape=jax.ShapeDtypeStruct((2, 4), jnp.int32), interpret=True
)
print(take(jnp.array([1, 2]), jnp.arange(64, dtype=jnp.int32).reshape(4, 16)))


def show_steps(shape, block_shape, grid, index_map=lambda i, j: (i, j)):
    def kernel(o_ref):
        number = 0
        for axis in range(len(grid)):
            number += pl.program_id(axis) * 10 ** (len(grid) - 1 - axis)
        o_ref[...] = jnp.full(o_ref.shape, number)

    print(
        pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct(shape, dtype=np.int32),
            grid=grid,
            in_specs=[],
            out_specs=pl.BlockSpec(block_shape, index_map),
            interpret=True,
        )()
    )


show_steps((7, 5), (2, 3), (4, 2))
show_steps((1, 2), (2, 3), (1, 1))
show_steps((4, 4), (2, 2), (2, 2, 3), lambda i, j, k: (i, j))
show_steps((4, 4), (4, 4), (2, 3), None)
show_steps((5, 4), (pl.Element(2), pl.Element(2)), (2, 2), lambda i, j: (2 * i, 2 * j))


def masked_kernel(x_ref, o_ref):
    at = pl.program_id(0) * 8
    mask = at + jnp.arange(8) < 10
    part = pl.ds(at, 8)
    x = plgpu.load(x_ref.at[part], mask=mask, other=0.0)
    plgpu.store(o_ref.at[part], x * 2, mask=mask)


masked = pl.pallas_call(masked_kernel, jax.ShapeDtypeStruct((10,), jnp.float32), grid=2, interpret=True)
print(masked(jnp.arange(10.0)))
print(pl.cdiv(10, 4), pl.next_power_of_2(10), pl.align_to(10, 8), pl.strides_from_shape((2, 3)))
