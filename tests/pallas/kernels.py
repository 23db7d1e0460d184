"""Kernels written for either library: `build(m)` finds everything in `m` and returns a function of arrays.

`m` has `jnp`, `lax`, `pl`, `triton`, `tpu`, `ShapeDtypeStruct` (as `S`) and `call`, `pallas_call` in interpret mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A kernel and arguments for it.

    Attributes:
        name: of the kernel.
        build: makes the function.
        args: NumPy arrays.
        tolerance: relative; sums may be added up in another order.
    """

    name: str
    build: Callable[[Any], Callable[..., Any]]
    args: tuple[Any, ...]
    tolerance: float


CASES: list[Case] = []


def jax_namespace() -> Any:
    import jax
    from jax import lax
    from jax import numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu, triton

    call = functools.partial(pl.pallas_call, interpret=True)
    return SimpleNamespace(
        jnp=jnp, lax=lax, pl=pl, triton=triton, tpu=tpu, S=jax.ShapeDtypeStruct, call=call, jax=jax
    )


def purax_namespace() -> Any:
    import purax
    from purax import lax
    from purax import numpy as jnp
    from purax import pallas as pl
    from purax.pallas import tpu, triton

    return SimpleNamespace(
        jnp=jnp,
        lax=lax,
        pl=pl,
        triton=triton,
        tpu=tpu,
        S=purax.ShapeDtypeStruct,
        call=pl.pallas_call,
        jax=purax,
    )


def case(*args: Any, tolerance: float = 1e-6) -> Callable[[Callable], Callable]:
    def register(build: Callable) -> Callable:
        CASES.append(Case(build.__name__, build, args, tolerance))
        return build

    return register


def floats(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def integers(*shape: int, high: int = 10, seed: int = 0, dtype: Any = np.int32) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, size=shape).astype(dtype)


@case(floats(64), floats(64, seed=1))
def add_vectors(m):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    block = m.pl.BlockSpec((16,), lambda i: i)
    return m.call(kernel, m.S((64,), np.float32), grid=(4,), in_specs=[block, block], out_specs=block)


@case(floats(50))
def edge_blocks(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2 + m.pl.program_id(0)

    block = m.pl.BlockSpec((16,), lambda i: (i,))
    return m.call(kernel, m.S((50,), np.float32), grid=(4,), in_specs=[block], out_specs=block)


@case(floats(10, 7))
def edge_blocks_of_two_dimensions(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = m.jnp.tanh(x_ref[...])

    block = m.pl.BlockSpec((4, 3), lambda i, j: (i, j))
    return m.call(kernel, m.S((10, 7), np.float32), grid=(3, 3), in_specs=[block], out_specs=block)


@case(floats(10))
def sums_of_edge_blocks(m):
    def kernel(x_ref, o_ref):
        valid = m.pl.program_id(0) * 4 + m.jnp.arange(4) < 10
        o_ref[...] = m.jnp.full((1,), m.jnp.where(valid, x_ref[...], 0).sum())

    return m.call(
        kernel,
        m.S((3,), np.float32),
        grid=(3,),
        in_specs=[m.pl.BlockSpec((4,), lambda i: i)],
        out_specs=m.pl.BlockSpec((1,), lambda i: i),
    )


def _matmul(m, dtype=np.float32):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = m.jnp.dot(x_ref[...], y_ref[...]).astype(o_ref.dtype)

    return m.call(
        kernel,
        m.S((32, 48), dtype),
        grid=(2, 3),
        in_specs=[
            m.pl.BlockSpec((16, 24), lambda i, j: (i, 0)),
            m.pl.BlockSpec((24, 16), lambda i, j: (0, j)),
        ],
        out_specs=m.pl.BlockSpec((16, 16), lambda i, j: (i, j)),
    )


@case(floats(32, 24), floats(24, 48, seed=1), tolerance=1e-5)
def matmul(m):
    return _matmul(m)


@case(floats(32, 24), floats(24, 48, seed=1), tolerance=2e-2)
def matmul_to_half_precision(m):
    return _matmul(m, m.jnp.bfloat16)


@case(floats(32, 24), floats(24, 48, seed=1), tolerance=1e-5)
def matmul_accumulating_in_the_output(m):
    def kernel(x_ref, y_ref, o_ref):
        @m.pl.when(m.pl.program_id(2) == 0)
        def _():
            o_ref[...] = m.jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...] @ y_ref[...]

    return m.call(
        kernel,
        m.S((32, 48), np.float32),
        grid=(2, 3, 3),
        in_specs=[
            m.pl.BlockSpec((16, 8), lambda i, j, k: (i, k)),
            m.pl.BlockSpec((8, 16), lambda i, j, k: (k, j)),
        ],
        out_specs=m.pl.BlockSpec((16, 16), lambda i, j, k: (i, j)),
    )


@case(floats(32, 24), floats(24, 48, seed=1), tolerance=1e-5)
def matmul_accumulating_in_scratch(m):
    def kernel(x_ref, y_ref, o_ref, acc_ref):
        @m.pl.when(m.pl.program_id(2) == 0)
        def _():
            acc_ref[...] = m.jnp.zeros_like(acc_ref)

        acc_ref[...] += m.jnp.dot(x_ref[...], y_ref[...], preferred_element_type=m.jnp.float32)

        @m.pl.when(m.pl.program_id(2) == m.pl.num_programs(2) - 1)
        def _():
            o_ref[...] = m.jnp.maximum(acc_ref[...], 0).astype(o_ref.dtype)

    return m.call(
        kernel,
        m.S((32, 48), np.float32),
        grid_spec=m.tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            grid=(2, 3, 3),
            in_specs=[
                m.pl.BlockSpec((16, 8), lambda i, j, k: (i, k)),
                m.pl.BlockSpec((8, 16), lambda i, j, k: (k, j)),
            ],
            out_specs=m.pl.BlockSpec((16, 16), lambda i, j, k: (i, j)),
            scratch_shapes=[m.tpu.VMEM((16, 16), m.jnp.float32)],
        ),
        compiler_params=m.tpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )


@case(floats(24, 32), floats(24, 48, seed=1), tolerance=1e-5)
def matmul_with_the_sum_outermost(m):
    def kernel(x_ref, y_ref, o_ref):
        product = x_ref[...].T @ y_ref[...]
        first = m.pl.program_id(0) == 0

        @m.pl.when(first)
        def _():
            o_ref[...] = product

        @m.pl.when(m.jnp.logical_not(first))
        def _():
            o_ref[...] = o_ref[...] + product

    return m.call(
        kernel,
        m.S((32, 48), np.float32),
        grid=(3, 2),
        in_specs=[m.pl.BlockSpec((8, 16), lambda k, i: (k, i)), m.pl.BlockSpec((8, 48), lambda k, i: (k, 0))],
        out_specs=m.pl.BlockSpec((16, 48), lambda k, i: (i, 0)),
    )


@case(floats(24, 40), tolerance=1e-5)
def softmax(m):
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        e = m.jnp.exp(x - x.max(-1, keepdims=True))
        o_ref[...] = e / e.sum(-1, keepdims=True)

    rows = m.pl.BlockSpec((4, 40), lambda i: (i, 0))
    return m.call(kernel, m.S((24, 40), np.float32), grid=(6,), in_specs=[rows], out_specs=rows)


@case(floats(24, 40), tolerance=1e-5)
def softmax_with_masks(m):
    def kernel(x_ref, o_ref):
        row = m.pl.program_id(0)
        mask = m.jnp.arange(64) < 40
        part = (row, m.pl.ds(row * 0, 64))
        x = m.triton.load(x_ref.at[part], mask=mask, other=-m.jnp.inf)
        e = m.jnp.exp(x - x.max())
        m.triton.store(o_ref.at[part], e / e.sum(), mask=mask)

    return m.call(kernel, m.S((24, 40), np.float32), grid=24)


@case(floats(16, 40), floats(40, seed=1), floats(40, seed=2), tolerance=1e-5)
def layer_norm(m):
    def kernel(x_ref, g_ref, b_ref, o_ref, mean_ref):
        x = x_ref[...]
        mean = x.mean(-1)
        centered = x - mean[:, None]
        scale = m.lax.rsqrt((centered * centered).mean(-1) + 1e-5)
        o_ref[...] = centered * scale[:, None] * g_ref[...] + b_ref[...]
        mean_ref[...] = mean

    rows = m.pl.BlockSpec((8, 40), lambda i: (i, 0))
    all_of = m.pl.BlockSpec((40,), lambda i: (0,))
    return m.call(
        kernel,
        (m.S((16, 40), np.float32), m.S((16,), np.float32)),
        grid=(2,),
        in_specs=[rows, all_of, all_of],
        out_specs=(rows, m.pl.BlockSpec((8,), lambda i: (i,))),
    )


@case(floats(32, 48), tolerance=1e-5)
def column_sums(m):
    def kernel(x_ref, o_ref):
        @m.pl.when(m.pl.program_id(1) == 0)
        def _():
            o_ref[...] = m.jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...].sum(0)

    return m.call(
        kernel,
        m.S((48,), np.float32),
        grid=(3, 4),
        in_specs=[m.pl.BlockSpec((8, 16), lambda j, i: (i, j))],
        out_specs=m.pl.BlockSpec((16,), lambda j, i: (j,)),
    )


@case(floats(64), tolerance=1e-5)
def sum_of_all(m):
    def kernel(x_ref, o_ref):
        @m.pl.when(m.pl.program_id(0) == 0)
        def _():
            o_ref[0] = 0.0

        o_ref[0] += m.jnp.sum(x_ref[...])

    return m.call(
        kernel,
        m.S((1,), np.float32),
        grid=(8,),
        in_specs=[m.pl.BlockSpec((8,), lambda i: i)],
        out_specs=m.pl.BlockSpec((1,), lambda i: 0),
    )


@case(floats(64), tolerance=1e-5)
def cumulative_sum(m):
    def kernel(x_ref, o_ref, carry_ref):
        @m.pl.when(m.pl.program_id(0) == 0)
        def _():
            carry_ref[0] = 0.0

        sums = m.jnp.cumsum(x_ref[...]) + carry_ref[0]
        o_ref[...] = sums
        carry_ref[0] = sums[-1]

    block = m.pl.BlockSpec((8,), lambda i: i)
    return m.call(
        kernel,
        m.S((64,), np.float32),
        grid=(8,),
        in_specs=[block],
        out_specs=block,
        scratch_shapes=[m.tpu.SMEM((1,), m.jnp.float32)],
    )


@case(floats(6, 16), tolerance=1e-5)
def recurrence_along_rows(m):
    def kernel(x_ref, o_ref, state_ref):
        @m.pl.when(m.pl.program_id(1) == 0)
        def _():
            state_ref[...] = m.jnp.zeros_like(state_ref)

        def step(t, state):
            state = 0.5 * state + x_ref[:, t]
            o_ref[:, t] = state
            return state

        state_ref[...] = m.lax.fori_loop(0, 4, step, state_ref[...])

    block = m.pl.BlockSpec((3, 4), lambda i, j: (i, j))
    return m.call(
        kernel,
        m.S((6, 16), np.float32),
        grid=(2, 4),
        in_specs=[block],
        out_specs=block,
        scratch_shapes=[m.tpu.VMEM((3,), m.jnp.float32)],
    )


@case(floats(34))
def stencil(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[:-2] - 2 * x_ref[1:-1] + x_ref[2:]

    return m.call(
        kernel,
        m.S((32,), np.float32),
        grid=(4,),
        in_specs=[m.pl.BlockSpec((m.pl.Element(10),), lambda i: (i * 8,))],
        out_specs=m.pl.BlockSpec((8,), lambda i: (i,)),
    )


@case(floats(32))
def stencil_with_padding(m):
    def kernel(x_ref, o_ref):
        at = m.pl.program_id(0) * 8 + m.jnp.arange(8)
        left = m.jnp.where(at == 0, 0, x_ref[:-2])
        right = m.jnp.where(at == 31, 0, x_ref[2:])
        o_ref[...] = left + right

    return m.call(
        kernel,
        m.S((32,), np.float32),
        grid=(4,),
        in_specs=[m.pl.BlockSpec((m.pl.Element(10, (1, 1)),), lambda i: (i * 8,))],
        out_specs=m.pl.BlockSpec((8,), lambda i: (i,)),
    )


@case(floats(18, 18))
def stencil_of_two_dimensions(m):
    def kernel(x_ref, o_ref):
        x = x_ref[...]
        o_ref[...] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]

    return m.call(
        kernel,
        m.S((16, 16), np.float32),
        grid=(2, 4),
        in_specs=[m.pl.BlockSpec((m.pl.Element(10), m.pl.Element(6)), lambda i, j: (i * 8, j * 4))],
        out_specs=m.pl.BlockSpec((8, 4), lambda i, j: (i, j)),
    )


@case(floats(3, 8, 5))
def squeezed_dimensions(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...].T

    return m.call(
        kernel,
        m.S((3, 5, 8), np.float32),
        grid=(3,),
        in_specs=[m.pl.BlockSpec((None, 8, 5), lambda i: (i, 0, 0))],
        out_specs=m.pl.BlockSpec((m.pl.squeezed, 5, m.pl.Blocked(8)), lambda i: (i, 0, 0)),
    )


@case(floats(8, 6))
def blocks_in_reverse(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    return m.call(
        kernel,
        m.S((8, 6), np.float32),
        grid=(4,),
        in_specs=[m.pl.BlockSpec((2, 6), lambda i: (3 - i, 0))],
        out_specs=m.pl.BlockSpec((2, 6), lambda i: (i, 0)),
    )


@case(floats(8, 6))
def outputs_in_reverse(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    return m.call(
        kernel,
        m.S((8, 6), np.float32),
        grid=(4,),
        in_specs=[m.pl.BlockSpec((2, 6), lambda i: (i, 0))],
        out_specs=m.pl.BlockSpec((2, 6), lambda i: ((i + 1) % 4, 0)),
    )


@case(floats(8, 6))
def some_blocks_unwritten(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return m.call(
        kernel,
        m.S((8, 6), np.float32),
        grid=(2,),
        in_specs=[m.pl.BlockSpec((2, 6), lambda i: (i, 0))],
        out_specs=m.pl.BlockSpec((2, 6), lambda i: (2 * i, 0)),
    )


@case(floats(12, 4))
def blocks_visited_twice(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + m.pl.program_id(0)

    return m.call(
        kernel,
        m.S((6, 4), np.float32),
        grid=(6,),
        in_specs=[m.pl.BlockSpec((2, 4), lambda i: (i, 0))],
        out_specs=m.pl.BlockSpec((2, 4), lambda i: (i // 2, 0)),
    )


@case(floats(16, 16))
def diagonal_blocks(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return m.call(
        kernel,
        m.S((4, 16), np.float32),
        grid=(4,),
        in_specs=[m.pl.BlockSpec((4, 4), lambda i: (i, i))],
        out_specs=m.pl.BlockSpec((4, 4), lambda i: (0, i)),
    )


@case(integers(6, high=5), floats(10, 8))
def prefetched_rows(m):
    def kernel(which_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] * which_ref[m.pl.program_id(0)]

    return m.call(
        kernel,
        m.S((6, 8), np.float32),
        grid_spec=m.tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(6,),
            in_specs=[m.pl.BlockSpec((1, 8), lambda i, which: (which[i], 0))],
            out_specs=m.pl.BlockSpec((1, 8), lambda i, which: (i, 0)),
        ),
    )


@case(integers(6, high=3), floats(6, 8), tolerance=1e-5)
def prefetched_segments(m):
    def kernel(segment_ref, x_ref, o_ref):
        i = m.pl.program_id(0)
        before = segment_ref[m.jnp.maximum(i - 1, 0)]

        @m.pl.when((i == 0) | (before != segment_ref[i]))
        def _():
            o_ref[...] = m.jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return lambda segments, x: m.call(
        kernel,
        m.S((3, 8), np.float32),
        grid_spec=m.tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(6,),
            in_specs=[m.pl.BlockSpec((1, 8), lambda i, s: (i, 0))],
            out_specs=m.pl.BlockSpec((1, 8), lambda i, s: (s[i], 0)),
        ),
    )(m.jnp.sort(segments), x)


@case(integers(5, high=12), floats(12, 4))
def gather(m):
    def kernel(at_ref, x_ref, o_ref):
        o_ref[...] = x_ref[at_ref[...], :]

    return m.call(kernel, m.S((5, 4), np.float32))


@case(integers(5, high=12), floats(12, 4), tolerance=1e-5)
def sparse_rows_one_by_one(m):
    def kernel(at_ref, x_ref, o_ref):
        o_ref[...] = m.jnp.zeros_like(o_ref)

        @m.pl.loop(0, 5)
        def _(i):
            row = at_ref[i]
            o_ref[m.pl.ds(row, 1), :] += x_ref[m.pl.ds(i, 1), :]

    return m.call(kernel, m.S((12, 4), np.float32))


def _flash(m, q, k, v, causal):
    heads, length, size = q.shape
    block = 8

    def kernel(q_ref, k_ref, v_ref, o_ref, lse_ref):
        q = q_ref[...]
        i = m.pl.program_id(1)

        def body(j, carry):
            total, largest, norm = carry
            at = m.pl.ds(j * block, block)
            scores = q @ k_ref[at, :].T
            if causal:
                rows = i * block + m.lax.broadcasted_iota(m.jnp.int32, scores.shape, 0)
                columns = j * block + m.lax.broadcasted_iota(m.jnp.int32, scores.shape, 1)
                scores = m.jnp.where(rows >= columns, scores, -1e30)
            new = m.jnp.maximum(largest, scores.max(-1))
            weights = m.jnp.exp(scores - new[:, None])
            shrink = m.jnp.exp(largest - new)
            return total * shrink[:, None] + weights @ v_ref[at, :], new, norm * shrink + weights.sum(-1)

        zero = m.jnp.zeros((block, size), m.jnp.float32)
        first = (zero, m.jnp.full((block,), -1e30, m.jnp.float32), m.jnp.zeros((block,), m.jnp.float32))
        total, largest, norm = m.lax.fori_loop(0, i + 1 if causal else length // block, body, first)
        o_ref[...] = total / norm[:, None]
        lse_ref[...] = largest + m.jnp.log(norm)

    rows = m.pl.BlockSpec((None, block, size), lambda h, i: (h, i, 0))
    keys = m.pl.BlockSpec((None, length, size), lambda h, i: (h, 0, 0))
    return m.call(
        kernel,
        (m.S(q.shape, np.float32), m.S((heads, length), np.float32)),
        grid=(heads, length // block),
        in_specs=[rows, keys, keys],
        out_specs=(rows, m.pl.BlockSpec((None, block), lambda h, i: (h, i))),
    )(q, k, v)


@case(floats(2, 32, 16), floats(2, 32, 16, seed=1), floats(2, 32, 16, seed=2), tolerance=1e-5)
def flash_attention(m):
    return lambda q, k, v: _flash(m, q, k, v, False)


@case(floats(2, 32, 16), floats(2, 32, 16, seed=1), floats(2, 32, 16, seed=2), tolerance=1e-5)
def causal_flash_attention(m):
    return lambda q, k, v: _flash(m, q, k, v, True)


@case(floats(2, 32, 16), floats(2, 32, 16, seed=1), floats(2, 32, 16, seed=2), tolerance=2e-5)
def flash_attention_backward(m):
    def backward_kernel(q_ref, k_ref, v_ref, o_ref, lse_ref, do_ref, dq_ref, dk_ref, dv_ref):
        @m.pl.when(m.pl.program_id(1) == 0)
        def _():
            dk_ref[...] = m.jnp.zeros_like(dk_ref)
            dv_ref[...] = m.jnp.zeros_like(dv_ref)

        q, do = q_ref[...], do_ref[...]
        delta = (do * o_ref[...]).sum(-1)

        def body(j, dq):
            at = m.pl.ds(j * 8, 8)
            k, v = k_ref[at, :], v_ref[at, :]
            p = m.jnp.exp(q @ k.T - lse_ref[...][:, None])
            ds = p * (do @ v.T - delta[:, None])
            dk_ref[at, :] += ds.T @ q
            dv_ref[at, :] += p.T @ do
            return dq + ds @ k

        dq_ref[...] = m.lax.fori_loop(0, 4, body, m.jnp.zeros_like(q))

    def attention(q, k, v):
        return _flash(m, q, k, v, False)[0]

    def forward(q, k, v):
        o, lse = _flash(m, q, k, v, False)
        return o, (q, k, v, o, lse)

    def backward(kept, do):
        q, k, v, o, lse = kept
        rows = m.pl.BlockSpec((None, 8, 16), lambda h, i: (h, i, 0))
        keys = m.pl.BlockSpec((None, 32, 16), lambda h, i: (h, 0, 0))
        stats = m.pl.BlockSpec((None, 8), lambda h, i: (h, i))
        shape = m.S(q.shape, np.float32)
        return m.call(
            backward_kernel,
            (shape, shape, shape),
            grid=(2, 4),
            in_specs=[rows, keys, keys, rows, stats, rows],
            out_specs=(rows, keys, keys),
        )(q, k, v, o, lse, do)

    custom = m.jax.custom_vjp(attention)
    custom.defvjp(forward, backward)
    return m.jax.grad(lambda q, k, v: (custom(q, k, v) ** 2).sum(), (0, 1, 2))


@case(floats(16), floats(16, seed=1))
def input_and_output_share_memory(m):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[m.pl.ds(0, 2)] = x_ref[:2] + y_ref[2:4]

    block = m.pl.BlockSpec((4,), lambda i: i)
    return m.call(
        kernel,
        m.S((16,), np.float32),
        grid=(4,),
        in_specs=[block, block],
        out_specs=block,
        input_output_aliases={1: 0},
    )


@case(floats(16), floats(16, seed=1))
def inputs_are_written(m):
    def kernel(x_ref, y_ref, o_ref):
        x_ref[...] = x_ref[...] + y_ref[...]
        o_ref[...] = x_ref[...]

    whole = m.pl.BlockSpec((16,), lambda i: 0)
    return m.call(kernel, m.S((16,), np.float32), grid=(3,), in_specs=[whole, whole], out_specs=whole)


@case(floats(4, 6))
def trees_of_arrays(m):
    def kernel(inputs, o_ref, p_ref):
        o_ref[...] = inputs["a"][...] + inputs["b"][0][...]
        p_ref[...] = inputs["a"][...] * 2

    def run(x):
        shape = m.S((4, 6), np.float32)
        results = m.call(kernel, [shape, shape])({"a": x, "b": (x + 1,)})
        return {"o": results[0], "p": results[1]}

    return run


@case(floats(16))
def scoped_memory(m):
    def kernel(x_ref, o_ref):
        def body(a_ref, b_ref):
            a_ref[...] = x_ref[...] * 2
            b_ref[0] = a_ref[...].sum()
            o_ref[...] = a_ref[...] + b_ref[0]

        m.pl.run_scoped(body, m.tpu.VMEM((16,), m.jnp.float32), b_ref=m.tpu.SMEM((1,), m.jnp.float32))

    return m.call(kernel, m.S((16,), np.float32))


@case(floats(16))
def loops_and_conditions(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = m.jnp.zeros_like(o_ref)

        def body(i, carry):
            @m.pl.when(x_ref[i] > 0)
            def _():
                o_ref[i] = carry

            return carry + x_ref[i]

        o_ref[0] = m.pl.loop(2, 15, step=3, init_carry=0.5)(body)

        def goes_on(state):
            return state[0] < 5

        def step(state):
            i, total = state
            o_ref[m.pl.ds(i, 2)] += x_ref[m.pl.ds(i, 2)]
            return i + 1, total + x_ref[i]

        o_ref[15] = m.lax.while_loop(goes_on, step, (0, 0.0))[1]
        o_ref[14] = m.lax.cond(x_ref[3] > 0, lambda: x_ref[4], lambda: x_ref[5] * 2)
        o_ref[13] = m.lax.switch(m.jnp.int32(x_ref[0] > 9), [lambda: x_ref[1], lambda: x_ref[2]])

    return m.call(kernel, m.S((16,), np.float32))


@case(floats(8, 6))
def parts_of_references(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = m.jnp.zeros_like(o_ref)
        top = o_ref.at[m.pl.ds(0, 4)]
        top[...] = x_ref.at[4:][...]
        top.at[1:3, 2:4][...] = x_ref[:2, :2]
        o_ref[5, 1:4] = x_ref[2, 3:]
        o_ref[6] = x_ref[::2].sum() + x_ref[7]
        o_ref[7] = x_ref[0] * 2

    return m.call(kernel, m.S((8, 6), np.float32))


@case(integers(3, high=4), floats(8, 6))
def dynamic_indices(m):
    def kernel(at_ref, x_ref, o_ref):
        i, j = at_ref[0], at_ref[1]
        o_ref[...] = x_ref[m.pl.ds(i, 4), :]
        o_ref[1, j] = x_ref[j, i]
        o_ref[m.pl.ds(j, 1), m.pl.ds(i, 2)] = x_ref[m.pl.ds(i, 1), m.pl.ds(j, 2)]

    return m.call(kernel, m.S((4, 6), np.float32))


@case(integers(3, high=4, seed=3) - 20, floats(8))
def indices_outside_are_clamped(m):
    def kernel(at_ref, x_ref, o_ref):
        o_ref[...] = m.jnp.zeros_like(o_ref)
        o_ref[m.pl.ds(0, 3)] = x_ref[m.pl.ds(at_ref[0] + 60, 3)]
        o_ref[m.pl.ds(at_ref[1] + 60, 2)] = x_ref[:2]

    return m.call(kernel, m.S((8,), np.float32))


@case(floats(10))
def masks_beyond_the_end(m):
    def kernel(x_ref, o_ref):
        at = m.pl.program_id(0) * 8
        mask = at + m.jnp.arange(8) < 10
        part = m.pl.ds(at, 8)
        x = m.triton.load(x_ref.at[part], mask=mask, other=0.0)
        m.triton.store(o_ref.at[part], x * 2, mask=mask)

    return m.call(kernel, m.S((10,), np.float32), grid=(2,))


@case(floats(5, 7))
def masks_at_arrays_of_positions(m):
    def kernel(x_ref, o_ref):
        rows = m.jnp.arange(8)[:, None]
        columns = m.jnp.arange(8)[None, :]
        mask = (rows < 5) & (columns < 7)
        x = m.triton.load(x_ref.at[rows, columns], mask=mask, other=1.0)
        m.triton.store(o_ref.at[rows, columns], x + x.sum(), mask=mask)

    return m.call(kernel, m.S((5, 7), np.float32))


@case(np.int32(3), floats(20))
def dynamic_grid(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    def run(n, x):
        block = m.pl.BlockSpec((4,), lambda i: i)
        return m.call(kernel, m.S((20,), np.float32), grid=(n,), in_specs=[block], out_specs=block)(x)

    return run


@case(integers(16), integers(16, seed=1, high=5))
def integers_of_32_bits(m):
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = (x_ref[...] // (y_ref[...] + 1)) % 7 + (x_ref[...] << 2)

    block = m.pl.BlockSpec((4,), lambda i: i)
    return m.call(kernel, m.S((16,), np.int32), grid=(4,), in_specs=[block, block], out_specs=block)


for _dtype in ("int8", "uint8", "int16", "uint16", "uint32", "float16", "bfloat16", "bool"):

    @case(integers(24, high=2 if _dtype == "bool" else 100))
    def of_dtype(m, name=_dtype):
        def kernel(x_ref, o_ref):
            x = x_ref[...]
            o_ref[...] = ~x if name == "bool" else x + x

        def run(x):
            x = x.astype(name)
            block = m.pl.BlockSpec((10,), lambda i: i)
            y = m.call(kernel, m.S((24,), x.dtype), grid=(3,), in_specs=[block], out_specs=block)(x)
            return y.astype(m.jnp.float32)

        return run

    CASES[-1] = CASES[-1]._replace(name=f"of_dtype_{_dtype}")


@case(floats(8, 12), floats(3, 3, seed=1), tolerance=1e-5)
def convolution(m):
    def kernel(x_ref, w_ref, o_ref):
        total = m.jnp.zeros(o_ref.shape, o_ref.dtype)
        for i in range(3):
            for j in range(3):
                total += x_ref[i : i + 6, j : j + 10] * w_ref[i, j]
        o_ref[...] = total

    return m.call(kernel, m.S((6, 10), np.float32))


@case(floats(4, 16, 8), floats(8, 8, seed=1), tolerance=1e-5)
def batched_in_a_vmap(m):
    def kernel(x_ref, w_ref, o_ref):
        o_ref[...] = x_ref[...] @ w_ref[...] + m.pl.program_id(0)

    one = m.call(
        kernel,
        m.S((16, 8), np.float32),
        grid=(2,),
        in_specs=[m.pl.BlockSpec((8, 8), lambda i: (i, 0)), m.pl.BlockSpec((8, 8), lambda i: (0, 0))],
        out_specs=m.pl.BlockSpec((8, 8), lambda i: (i, 0)),
    )
    return m.jax.vmap(one, in_axes=(0, None))


@case(floats(16), tolerance=1e-5)
def derivative_of_a_kernel(m):
    def kernel(x_ref, o_ref):
        o_ref[...] = m.jnp.sin(x_ref[...]) * x_ref[...]

    one = m.call(kernel, m.S((16,), np.float32))
    return lambda x: m.jax.jvp(one, (x,), (m.jnp.cos(x),))


@case(floats(32), tolerance=1e-5)
def bitonic_exchange(m):
    def kernel(x_ref, o_ref):
        x = x_ref[...].reshape(16, 2)
        o_ref[...] = m.jnp.stack([x.min(1), x.max(1)], 1).reshape(-1)

    block = m.pl.BlockSpec((32,), lambda i: 0)
    return m.call(kernel, m.S((32,), np.float32), grid=(1,), in_specs=[block], out_specs=block)


@case(floats(8, 128))
def copies_started_and_waited_for(m):
    def kernel(x_ref, o_ref, buffer_ref, semaphore):
        copy = m.tpu.make_async_copy(x_ref.at[m.pl.ds(2, 4)], buffer_ref, semaphore)
        copy.start()
        copy.wait()
        o_ref[...] = buffer_ref[...] * 2

    return m.call(
        kernel,
        m.S((4, 128), np.float32),
        in_specs=[m.pl.BlockSpec(memory_space=m.pl.ANY)],
        scratch_shapes=[m.tpu.VMEM((4, 128), m.jnp.float32), m.tpu.SemaphoreType.DMA],
    )
