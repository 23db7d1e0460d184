"""Pallas kernels through Triton: purax beside the same kernels under jax, and XLA's own code for the formulas.

    python -m bench.kernels_on_gpu            # on a GPU: milliseconds of each
    python -m bench.kernels_on_gpu --check    # anywhere: small arrays, interpreted, against the formulas

A kernel is written once, for a namespace of either library. The calls of the libraries take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


def libraries() -> list[Any]:
    """The namespaces that kernels are written for: those of purax and of jax."""
    import jax
    from jax import lax as jax_lax
    from jax import numpy as jax_numpy
    from jax.experimental import pallas as jax_pallas
    from jax.experimental.pallas import triton as jax_triton

    import purax
    import purax.pallas.triton

    return [
        SimpleNamespace(
            name="purax",
            px=purax,
            jnp=purax.numpy,
            lax=purax.lax,
            pl=purax.pallas,
            triton=purax.pallas.triton,
        ),
        SimpleNamespace(name="jax", px=jax, jnp=jax_numpy, lax=jax_lax, pl=jax_pallas, triton=jax_triton),
    ]


def softmax(m: Any, x: Any, call: Any) -> Any:
    """A row for each step of the grid."""
    columns = m.pl.next_power_of_2(x.shape[1])

    def kernel(x_ref: Any, o_ref: Any) -> None:
        mask = m.jnp.arange(columns) < x.shape[1]
        row = (m.pl.program_id(0), m.pl.ds(0, columns))
        values = m.triton.load(x_ref.at[row], mask=mask, other=-float("inf")).astype(m.jnp.float32)
        powers = m.jnp.exp(values - m.jnp.max(values, axis=0))
        weights = powers / m.jnp.sum(powers, axis=0)
        m.triton.store(o_ref.at[row], weights.astype(o_ref.dtype), mask=mask)

    params = m.triton.CompilerParams(num_warps=4, num_stages=1)
    shape = m.px.ShapeDtypeStruct(x.shape, x.dtype)
    return call(m, kernel, shape, grid=(x.shape[0],), compiler_params=params)(x)


def softmax_formula(m: Any, x: Any) -> Any:
    return m.px.nn.softmax(x.astype(m.jnp.float32), axis=-1).astype(x.dtype)


def layer_norm(m: Any, x: Any, scale: Any, shift: Any, call: Any) -> Any:
    """A row for each step; its mean and variance in float32."""
    size = x.shape[1]

    def kernel(x_ref: Any, scale_ref: Any, shift_ref: Any, o_ref: Any) -> None:
        values = x_ref[...].astype(m.jnp.float32)
        centered = values - m.jnp.sum(values, axis=0) / size
        variance = m.jnp.sum(centered * centered, axis=0) / size
        scaled = centered * m.lax.rsqrt(variance + 1e-5) * scale_ref[...] + shift_ref[...]
        o_ref[...] = scaled.astype(o_ref.dtype)

    rows = m.pl.BlockSpec((None, size), lambda i: (i, 0))
    whole = m.pl.BlockSpec((size,), lambda i: (0,))
    return call(
        m,
        kernel,
        m.px.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0],),
        in_specs=[rows, whole, whole],
        out_specs=rows,
        compiler_params=m.triton.CompilerParams(num_warps=8, num_stages=1),
    )(x, scale, shift)


def layer_norm_formula(m: Any, x: Any, scale: Any, shift: Any) -> Any:
    wide = x.astype(m.jnp.float32)
    centered = wide - m.jnp.mean(wide, axis=-1, keepdims=True)
    variance = m.jnp.mean(centered * centered, axis=-1, keepdims=True)
    return (centered * m.lax.rsqrt(variance + 1e-5) * scale + shift).astype(x.dtype)


def matmul(m: Any, x: Any, y: Any, call: Any) -> Any:
    """A tile of the result for each step, which goes along the rows of one operand and the columns of the other."""
    rows, columns, depth = min(128, x.shape[0]), min(128, y.shape[1]), min(64, x.shape[1])

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        def body(k: Any, total: Any) -> Any:
            part = m.pl.ds(k * depth, depth)
            return total + m.triton.dot(x_ref[:, part], y_ref[part, :])

        zeros = m.jnp.zeros((rows, columns), m.jnp.float32)
        o_ref[...] = m.lax.fori_loop(0, x.shape[1] // depth, body, zeros).astype(o_ref.dtype)

    return call(
        m,
        kernel,
        m.px.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype),
        grid=(x.shape[0] // rows, y.shape[1] // columns),
        in_specs=[
            m.pl.BlockSpec((rows, x.shape[1]), lambda i, j: (i, 0)),
            m.pl.BlockSpec((y.shape[0], columns), lambda i, j: (0, j)),
        ],
        out_specs=m.pl.BlockSpec((rows, columns), lambda i, j: (i, j)),
        compiler_params=m.triton.CompilerParams(num_warps=8, num_stages=3),
    )(x, y)


def matmul_formula(m: Any, x: Any, y: Any) -> Any:
    return m.jnp.matmul(x, y, preferred_element_type=m.jnp.float32).astype(x.dtype)


def _attention_blocks(m: Any, length: int, width: int) -> tuple[Any, Any, Any]:
    """The size of a block, and specs of a block of rows and of all rows of a head."""
    size = min(64, length)
    rows = m.pl.BlockSpec((None, size, width), lambda h, i: (h, i, 0))
    whole = m.pl.BlockSpec((None, length, width), lambda h, i: (h, 0, 0))
    return size, rows, whole


def attention_and_sums(m: Any, q: Any, k: Any, v: Any, call: Any) -> Any:
    """Flash attention: a block of rows for each step, tile by tile over the keys; and the logsumexp of each row."""
    heads, length, width = q.shape
    size, rows, whole = _attention_blocks(m, length, width)
    scale = width**-0.5

    def kernel(q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any, sums_ref: Any) -> None:
        query = q_ref[...]

        def body(j: Any, state: Any) -> Any:
            total, largest, norm = state
            part = m.pl.ds(j * size, size)
            logits = m.triton.dot(query, k_ref[part, :], trans_b=True) * scale
            new = m.jnp.maximum(largest, m.jnp.max(logits, axis=1))
            weights = m.jnp.exp(logits - new[:, None])
            shrunk = m.jnp.exp(largest - new)
            total = total * shrunk[:, None] + m.triton.dot(weights.astype(v_ref.dtype), v_ref[part, :])
            return total, new, norm * shrunk + m.jnp.sum(weights, axis=1)

        first = (
            m.jnp.zeros((size, width), m.jnp.float32),
            m.jnp.full((size,), -float("inf"), m.jnp.float32),
            m.jnp.zeros((size,), m.jnp.float32),
        )
        total, largest, norm = m.lax.fori_loop(0, length // size, body, first)
        o_ref[...] = (total / norm[:, None]).astype(o_ref.dtype)
        sums_ref[...] = largest + m.jnp.log(norm)

    return call(
        m,
        kernel,
        (m.px.ShapeDtypeStruct(q.shape, q.dtype), m.px.ShapeDtypeStruct((heads, length), m.jnp.float32)),
        grid=(heads, length // size),
        in_specs=[rows, whole, whole],
        out_specs=(rows, m.pl.BlockSpec((None, size), lambda h, i: (h, i))),
        compiler_params=m.triton.CompilerParams(num_warps=4, num_stages=3),
    )(q, k, v)


def attention(m: Any, q: Any, k: Any, v: Any, call: Any) -> Any:
    return attention_and_sums(m, q, k, v, call)[0]


def attention_formula(m: Any, q: Any, k: Any, v: Any) -> Any:
    logits = m.jnp.einsum("htd,hsd->hts", q, k, preferred_element_type=m.jnp.float32) * q.shape[2] ** -0.5
    weights = m.px.nn.softmax(logits, axis=-1).astype(v.dtype)
    return m.jnp.einsum("hts,hsd->htd", weights, v)


def attention_backward(m: Any, q: Any, k: Any, v: Any, out: Any, sums: Any, by_out: Any, call: Any) -> Any:
    """The cotangents of q, of k and v, in two kernels that compute the weights again."""
    heads, length, width = q.shape
    size, rows, whole = _attention_blocks(m, length, width)
    scale = width**-0.5
    common = m.jnp.sum(out.astype(m.jnp.float32) * by_out.astype(m.jnp.float32), axis=2)

    def for_keys(q_ref, k_ref, v_ref, by_out_ref, sums_ref, common_ref, by_k_ref, by_v_ref):  # type: ignore
        key, value = k_ref[...], v_ref[...]

        def body(i: Any, state: Any) -> Any:
            by_key, by_value = state
            part = m.pl.ds(i * size, size)
            query, by_rows = q_ref[part, :], by_out_ref[part, :]
            weights = m.jnp.exp(m.triton.dot(query, key, trans_b=True) * scale - sums_ref[part][:, None])
            by_value = by_value + m.triton.dot(weights.astype(by_rows.dtype), by_rows, trans_a=True)
            by_weights = m.triton.dot(by_rows, value, trans_b=True)
            by_logits = weights * (by_weights - common_ref[part][:, None]) * scale
            return by_key + m.triton.dot(by_logits.astype(query.dtype), query, trans_a=True), by_value

        zeros = m.jnp.zeros((size, width), m.jnp.float32)
        by_key, by_value = m.lax.fori_loop(0, length // size, body, (zeros, zeros))
        by_k_ref[...] = by_key.astype(by_k_ref.dtype)
        by_v_ref[...] = by_value.astype(by_v_ref.dtype)

    def for_queries(q_ref, k_ref, v_ref, by_out_ref, sums_ref, common_ref, by_q_ref):  # type: ignore
        query, by_rows, sums_of, common_of = q_ref[...], by_out_ref[...], sums_ref[...], common_ref[...]

        def body(j: Any, by_query: Any) -> Any:
            part = m.pl.ds(j * size, size)
            key = k_ref[part, :]
            weights = m.jnp.exp(m.triton.dot(query, key, trans_b=True) * scale - sums_of[:, None])
            by_weights = m.triton.dot(by_rows, v_ref[part, :], trans_b=True)
            by_logits = weights * (by_weights - common_of[:, None]) * scale
            return by_query + m.triton.dot(by_logits.astype(key.dtype), key)

        zeros = m.jnp.zeros((size, width), m.jnp.float32)
        by_q_ref[...] = m.lax.fori_loop(0, length // size, body, zeros).astype(by_q_ref.dtype)

    one = m.pl.BlockSpec((None, size), lambda h, i: (h, i))
    all_of_head = m.pl.BlockSpec((None, length), lambda h, i: (h, 0))
    shape = m.px.ShapeDtypeStruct(q.shape, q.dtype)
    params = m.triton.CompilerParams(num_warps=4, num_stages=2)
    options = {"grid": (heads, length // size), "compiler_params": params}
    operands = (q, k, v, by_out, sums, common)
    by_key, by_value = call(
        m,
        for_keys,
        (shape, shape),
        in_specs=[whole, rows, rows, whole, all_of_head, all_of_head],
        out_specs=(rows, rows),
        **options,
    )(*operands)
    specs = [rows, whole, whole, rows, one, one]
    by_query = call(m, for_queries, shape, in_specs=specs, out_specs=rows, **options)(*operands)
    return by_query, by_key, by_value


def attention_gradient(m: Any, q: Any, k: Any, v: Any, call: Any) -> Any:
    """Derivatives of Σ o², forwards and backwards by kernels."""
    out, sums = attention_and_sums(m, q, k, v, call)
    return attention_backward(m, q, k, v, out, sums, 2 * out, call)


def attention_gradient_formula(m: Any, q: Any, k: Any, v: Any) -> Any:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return m.jnp.sum(attention_formula(m, q, k, v).astype(m.jnp.float32) ** 2)

    return m.px.grad(loss, argnums=(0, 1, 2))(q, k, v)


# Name, kernel, formula, sizes on a GPU, small sizes.
ROWS: list[tuple[str, Callable, Callable, list, list]] = [
    ("softmax", softmax, softmax_formula, [(16384, 4096)], [(8, 100)]),
    ("layer norm", layer_norm, layer_norm_formula, [(16384, 4096), (4096,), (4096,)], [(8, 64), (64,), (64,)]),
    ("matmul", matmul, matmul_formula, [(4096, 4096)] * 2, [(64, 64)] * 2),
    ("flash attention", attention, attention_formula, [(64, 4096, 64)] * 3, [(2, 128, 16)] * 3),
    ("its gradient", attention_gradient, attention_gradient_formula, [(64, 4096, 64)] * 3, [(2, 128, 16)] * 3),
]  # fmt: skip


def compiled_call(m: Any, kernel: Any, shape: Any, **options: Any) -> Any:
    return m.pl.pallas_call(kernel, shape, **options)


def interpreted_call(m: Any, kernel: Any, shape: Any, **options: Any) -> Any:
    return m.pl.pallas_call(kernel, shape, interpret=True, **options)


def best_times(
    calls: list[Callable[[], Any]], waits: list[Callable], turns: int, repeats: int
) -> list[float]:
    """Milliseconds of a call of each function: the best of several turns of several calls one after the other."""
    times = [float("inf")] * len(calls)
    for _ in range(turns):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(repeats):
                out = call()
            waits[i](out)
            times[i] = min(times[i], (time.perf_counter() - start) / repeats * 1e3)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="compare small interpreted kernels with the formulas"
    )
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    spaces = libraries()
    generator = np.random.default_rng(0)
    print(f"{'':18} {'purax':>9} {'jax':>9} {'ratio':>6} {'XLA':>9}   largest difference from the formula")
    for name, kernel, formula, sizes, small in ROWS:
        arrays = [
            generator.normal(size=size).astype(np.float32) for size in (small if given.check else sizes)
        ]
        functions, results = [], []
        for m in spaces:
            dtype = m.jnp.float32 if given.check else m.jnp.bfloat16
            arguments = [m.jnp.asarray(x).astype(dtype) for x in arrays]
            call = interpreted_call if given.check else compiled_call
            for function in (
                m.px.jit(lambda *xs, m=m, call=call, f=kernel: f(m, *xs, call=call)),
                m.px.jit(lambda *xs, m=m, f=formula: f(m, *xs)),
            ):
                try:
                    results.append(m.px.tree.leaves(m.px.block_until_ready(function(*arguments))))
                    functions.append(lambda f=function, a=arguments: f(*a))
                except Exception as error:
                    print(f"{name} by {m.name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
                    results.append(None)
                    functions.append(lambda: None)
        wide = [None if xs is None else [np.asarray(x).astype(np.float32) for x in xs] for xs in results]
        differences = [
            "-"
            if xs is None or wide[3] is None
            else f"{max(np.abs(x - y).max() / np.abs(y).max() for x, y in zip(xs, wide[3], strict=True)):.1e}"
            for xs in (wide[0], wide[2])
        ]
        waits = [m.px.block_until_ready for m in spaces for _ in range(2)]
        purax_ms, _, jax_ms, xla_ms = best_times(functions, waits, given.turns, given.repeats)
        print(
            f"{name:18} {purax_ms:9.3f} {jax_ms:9.3f} {purax_ms / jax_ms:6.2f} {xla_ms:9.3f}   "
            f"{' '.join(differences)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
