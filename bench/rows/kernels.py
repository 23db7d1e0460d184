"""Array work under jit on the CPU: how good the compiled code is.

A row is an input and, for each peer, a function of the peer's space that gives the function to run; purax and jax share
one, put under `jit`. Results are waited for after each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from bench.data import integers, normal, positive_definite, uniform
from bench.measure import time_rows
from bench.row import LIKE_JAX, Builder, Group, bar

Maker = Callable[[Any], Callable[..., Any]]
FIELD = "jax numpy torch torch.compile numba"

group = Group(
    "kernels",
    "compiled array work",
    time_rows,
    bars=(bar(1.05, "jax"), bar(1.15, FIELD), bar(0.4, "jax", mean=True)),
)


def bound(make: Maker, inputs: Callable[[int], tuple[Any, ...]], compile_with: str = "") -> Builder:
    """A builder that hands the row's inputs to the peer's function, compiled by the peer's own means."""

    def build(space: Any, size: int) -> Callable[[], Any]:
        arguments = tuple(space.arrays(list(inputs(size))))
        function = make(space)
        if compile_with == "jit":
            function = space.px.jit(function)
        elif compile_with == "torch":
            function = space.torch.compile(function)
        return lambda: function(*arguments)

    return build


def kernel(
    name: str,
    inputs: Callable[[int], tuple[Any, ...]],
    make: Maker,
    *,
    size: int,
    smoke: int = 8,
    torch: Maker | None = None,
    numpy: Maker | None = None,
    numba: Maker | None = None,
    jit: bool = True,
    **fields: Any,
) -> None:
    """Register a row: `make(space)` for purax and jax, and the others' own spelling."""
    builders = dict.fromkeys(LIKE_JAX, bound(make, inputs, "jit" if jit else ""))
    if torch is not None:
        builders |= {"torch": bound(torch, inputs), "torch.compile": bound(torch, inputs, "torch")}
    if numpy is not None:
        builders["numpy"] = bound(numpy, inputs)
    if numba is not None:
        builders["numba"] = bound(numba, inputs)
    fields = {"rtol": 1e-4, "atol": 1e-4} | fields
    group.add(name, builders, size=size, smoke_size=smoke, **fields)


def vector(size: int) -> tuple[Any, ...]:
    return (normal(size, seed=1),)


def shuffled(size: int) -> tuple[Any, ...]:
    """Distinct values, so that there is one order only."""
    return (np.random.default_rng(1).permutation(size).astype(np.float32),)


def square(size: int) -> tuple[Any, ...]:
    return (normal(size, size, seed=1),)


def two_squares(size: int) -> tuple[Any, ...]:
    return normal(size, size, seed=1), normal(size, size, seed=2)


def nothing(size: int) -> tuple[Any, ...]:
    return ()


# --- sorting, searching, sampling without replacement

M = 1_000_000
kernel(
    "sort 1M",
    vector,
    lambda s: s.jnp.sort,
    torch=lambda s: lambda x: s.torch.sort(x).values,
    numpy=lambda s: np.sort,
    size=M,
)
kernel(
    "argsort 1M",
    shuffled,
    lambda s: s.jnp.argsort,
    torch=lambda s: s.torch.argsort,
    numpy=lambda s: np.argsort,
    size=M,
)
kernel("median 1M", vector, lambda s: s.jnp.median, numpy=lambda s: np.median, size=M, smoke=9)
kernel(
    "unique 1M int, eager",
    lambda n: (integers(n, n),),
    lambda s: s.jnp.unique,
    torch=lambda s: s.torch.unique,
    numpy=lambda s: np.unique,
    size=M,
    jit=False,
)
kernel(
    "argmax 4M",
    vector,
    lambda s: s.jnp.argmax,
    torch=lambda s: s.torch.argmax,
    numpy=lambda s: np.argmax,
    size=4 * M,
)
kernel(
    "top_k 100 of 1M",
    vector,
    lambda s: lambda x: s.lax.top_k(x, min(100, x.size)),
    torch=lambda s: lambda x: tuple(s.torch.topk(x, min(100, x.numel()))),
    size=M,
)
for axis in (0, 1):
    kernel(
        f"sort 1000² axis {axis}",
        square,
        lambda s, axis=axis: lambda x: s.jnp.sort(x, axis=axis),
        torch=lambda s, axis=axis: lambda x: s.torch.sort(x, dim=axis).values,
        numpy=lambda s, axis=axis: lambda x: np.sort(x, axis=axis),
        size=1000,
    )


# --- elementwise and reductions


def jitted_loop(text: Callable[..., Any]) -> Maker:
    return lambda s: s.njit(text)


def sine_and_square(x):
    out = np.empty_like(x)
    for place in range(x.size):
        out[place] = np.sin(x[place]) + x[place] * x[place]
    return out


for name, size in (("4M", 4 * M), ("1M", M)):
    kernel(
        f"sin(x) + x² {name}",
        vector,
        lambda s: lambda x: s.jnp.sin(x) + x**2,
        torch=lambda s: lambda x: s.torch.sin(x) + x**2,
        numpy=lambda s: lambda x: np.sin(x) + x**2,
        numba=jitted_loop(sine_and_square) if name == "4M" else None,
        size=size,
    )
for name in ("exp", "log1p", "tanh", "sqrt"):
    kernel(
        f"{name} 4M",
        lambda n: (uniform(n, low=0.01, high=4.0),),
        lambda s, name=name: getattr(s.jnp, name),
        torch=lambda s, name=name: getattr(s.torch, name),
        numpy=lambda s, name=name: getattr(np, name),
        size=4 * M,
    )


def selu(ops: Any) -> Callable[[Any], Any]:
    return lambda x: 1.05 * ops.where(x > 0, x, 1.67 * ops.exp(x) - 1.67)


kernel(
    "selu 1M", vector, lambda s: selu(s.jnp), torch=lambda s: selu(s.torch), numpy=lambda s: selu(np), size=M
)
for reduction in ("mean", "var"):
    for axis in (0, 1, None):
        settings = {"correction": 0} if reduction == "var" else {}
        kernel(
            f"{reduction} 2000² axis {axis}",
            square,
            lambda s, f=reduction, axis=axis: lambda x: getattr(s.jnp, f)(x, axis=axis),
            torch=lambda s, f=reduction, axis=axis, more=settings: (
                lambda x: getattr(s.torch, f)(x, dim=axis, **more)
            ),
            numpy=lambda s, f=reduction, axis=axis: lambda x: getattr(np, f)(x, axis=axis),
            size=2000,
            rtol=1e-3,
        )
kernel(
    "softmax 2000²",
    square,
    lambda s: s.nn.softmax,
    torch=lambda s: lambda x: s.torch.softmax(x, -1),
    size=2000,
)
kernel(
    "logsumexp 2000²",
    square,
    lambda s: lambda x: s.nn.logsumexp(x, axis=-1),
    torch=lambda s: lambda x: s.torch.logsumexp(x, -1),
    size=2000,
)


def normalized(jnp: Any) -> Callable[[Any], Any]:
    def layer_norm(x: Any) -> Any:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)

    return layer_norm


kernel(
    "layernorm 2000²",
    square,
    lambda s: normalized(s.jnp),
    torch=lambda s: lambda x: s.functional.layer_norm(x, x.shape[-1:]),
    numpy=lambda s: normalized(np),
    size=2000,
)
kernel(
    "cumsum 1M",
    vector,
    lambda s: s.jnp.cumsum,
    torch=lambda s: lambda x: s.torch.cumsum(x, 0),
    numpy=lambda s: np.cumsum,
    size=M,
    atol=0.05,
)
for axis in (0, 1):
    kernel(
        f"cumsum 1000² axis {axis}",
        square,
        lambda s, axis=axis: lambda x: s.jnp.cumsum(x, axis=axis),
        torch=lambda s, axis=axis: lambda x: s.torch.cumsum(x, axis),
        numpy=lambda s, axis=axis: lambda x: np.cumsum(x, axis=axis),
        size=1000,
        atol=1e-3,
    )


# --- random numbers: peers agree on shape, mean and spread only


def moments(results: list[np.ndarray]) -> list[np.ndarray]:
    """Shape, mean and standard deviation, the latter two rounded to what sampling noise allows."""
    views = []
    for each in results:
        values = each.astype(np.float64)
        noise = 8 * max(1.0, values.std()) / np.sqrt(values.size)
        step = max(noise, 0.02) if values.size > 10_000 else np.inf
        statistics = [values.mean(), values.std()] if np.isfinite(step) else [0.0, 0.0]
        views += [np.array(values.shape), np.array(statistics)]
    return views


def sampled(
    name: str, draw: Callable[[Any, Any, tuple[int, ...]], Any], *, size: int, **peers: Maker
) -> None:
    """A row of `draw(random, key, shape)`, the shape given by the input's."""
    kernel(
        name,
        lambda n: (np.array([0, 42], np.uint32), np.zeros(n, bool)),
        lambda s: lambda key, like: draw(s.random, key, like.shape),
        size=size,
        view=moments,
        rtol=0.02,
        atol=0.02,
        **peers,
    )


GENERATOR = np.random.default_rng(0)
sampled(
    "uniform 4M",
    lambda random, key, shape: random.uniform(key, shape),
    torch=lambda s: lambda key, like: s.torch.rand(like.shape),
    numpy=lambda s: lambda key, like: GENERATOR.random(like.shape, dtype=np.float32),
    size=4 * M,
)
sampled(
    "normal 4M",
    lambda random, key, shape: random.normal(key, shape),
    torch=lambda s: lambda key, like: s.torch.randn(like.shape),
    numpy=lambda s: lambda key, like: GENERATOR.standard_normal(like.shape, dtype=np.float32),
    size=4 * M,
)
sampled(
    "permutation 1M",
    lambda random, key, shape: random.permutation(key, shape[0]) / shape[0],
    torch=lambda s: lambda key, like: s.torch.randperm(len(like)) / len(like),
    numpy=lambda s: lambda key, like: GENERATOR.permutation(len(like)) / len(like),
    size=M,
)
sampled(
    "bernoulli 1M",
    lambda random, key, shape: random.bernoulli(key, 0.3, shape),
    torch=lambda s: lambda key, like: s.torch.rand(like.shape) < 0.3,
    numpy=lambda s: lambda key, like: GENERATOR.random(like.shape, dtype=np.float32) < 0.3,
    size=M,
)
sampled(
    "randint 1M",
    lambda random, key, shape: random.randint(key, shape, 0, 100) / 100,
    torch=lambda s: lambda key, like: s.torch.randint(0, 100, like.shape) / 100,
    numpy=lambda s: lambda key, like: GENERATOR.integers(0, 100, like.shape) / 100,
    size=M,
)
sampled(
    "exponential 1M",
    lambda random, key, shape: random.exponential(key, shape),
    torch=lambda s: lambda key, like: s.torch.empty(like.shape).exponential_(),
    numpy=lambda s: lambda key, like: GENERATOR.standard_exponential(like.shape, dtype=np.float32),
    size=M,
)
sampled(
    "gamma 100k",
    lambda random, key, shape: random.gamma(key, 2.0, shape),
    numpy=lambda s: lambda key, like: GENERATOR.standard_gamma(2.0, like.shape, dtype=np.float32),
    size=100_000,
)
sampled(
    "categorical 100k of 10",
    lambda random, key, shape: random.categorical(key, np.zeros(10, np.float32), shape=shape) / 10,
    numpy=lambda s: lambda key, like: GENERATOR.choice(10, like.shape) / 10,
    size=100_000,
)


# --- matrix products


def product(space: Any) -> Callable[[Any, Any], Any]:
    return lambda x, y: x @ y


for side in (64, 512, 2000):
    kernel(
        f"matmul f32 {side}",
        two_squares,
        product,
        torch=product,
        numpy=product,
        size=side,
        rtol=1e-3,
        atol=1e-3,
    )
    kernel(
        f"matmul bf16 {side}",
        lambda n: tuple(each.astype(ml_dtypes.bfloat16) for each in two_squares(n)),
        product,
        torch=product,
        size=side,
        rtol=3e-2,
        atol=0.5,
    )


def double_product(space: Any, size: int) -> Callable[[], Any]:
    """float64 by name: jax needs its switch for the whole call, purax does not."""
    x, y = (each.astype(np.float64) for each in two_squares(size))
    if space.peer not in LIKE_JAX:
        x, y = space.array(x), space.array(y)
        return lambda: x @ y
    with space.double_precision():
        x, y = (space.jnp.asarray(each, dtype=space.jnp.float64) for each in (x, y))
        f = space.px.jit(lambda x, y: x @ y)

    def run() -> Any:
        with space.double_precision():
            return f(x, y)

    return run


for side in (64, 512, 2000):
    group.add(
        f"matmul f64 {side}",
        dict.fromkeys((*LIKE_JAX, "torch", "numpy"), double_product),
        size=side,
        smoke_size=8,
        rtol=1e-9,
        atol=1e-9,
    )
    kernel(
        f"matmul int8 {side}",
        lambda n: (integers(100, n, n, dtype=np.int8), integers(100, n, n, seed=1, dtype=np.int8)),
        lambda s: lambda x, y: s.lax.dot(x, y, preferred_element_type=s.jnp.int32),
        torch=(lambda s: s.torch._int_mm) if side > 16 else None,
        numpy=(lambda s: lambda x, y: x.astype(np.int32) @ y.astype(np.int32)) if side < 2000 else None,
        size=side,
        smoke=32,
    )
kernel(
    "batched matmul 4096×16×16",
    lambda n: (normal(n, 16, 16, seed=1), normal(n, 16, 16, seed=2)),
    product,
    torch=product,
    numpy=product,
    size=4096,
    rtol=1e-3,
)
kernel(
    "matrix × vector 2000",
    lambda n: (normal(n, n, seed=1), normal(n, seed=2)),
    product,
    torch=product,
    numpy=product,
    size=2000,
    rtol=1e-3,
    atol=1e-3,
)


def attention(jnp: Any, softmax: Callable[..., Any]) -> Callable[..., Any]:
    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
        return jnp.einsum("bhqk,bhkd->bhqd", softmax(scores, -1), v)

    return attend


kernel(
    "attention 4×8×256×64",
    lambda n: tuple(normal(4, 8, n, 64, seed=seed) for seed in (1, 2, 3)),
    lambda s: attention(s.jnp, s.nn.softmax),
    torch=lambda s: s.functional.scaled_dot_product_attention,
    size=256,
    rtol=1e-3,
)


# --- gathering and scattering


def scatter_torch(space: Any) -> Callable[..., Any]:
    return lambda table, rows, values: table.index_add(0, rows, values)


def segment_sum_torch(space: Any) -> Callable[..., Any]:
    return lambda values, segments: space.torch.zeros(1000).index_add_(0, segments, values)


kernel(
    "gather 100k rows of 64",
    lambda n: (normal(n, 64, seed=1), integers(n, n, seed=2)),
    lambda s: lambda table, rows: table[rows],
    torch=lambda s: lambda table, rows: table[rows],
    numpy=lambda s: lambda table, rows: table[rows],
    size=100_000,
)
kernel(
    "scatter-add 100k rows of 64",
    lambda n: (normal(n, 64, seed=1), integers(n, n, seed=2), normal(n, 64, seed=3)),
    lambda s: lambda table, rows, values: table.at[rows].add(values),
    torch=scatter_torch,
    size=100_000,
)
kernel(
    "one_hot 10k of 1000",
    lambda n: (integers(1000, n),),
    lambda s: lambda labels: s.nn.one_hot(labels, 1000),
    torch=lambda s: lambda labels: s.functional.one_hot(labels.long(), 1000).float(),
    numpy=lambda s: lambda labels: (labels[:, None] == np.arange(1000)).astype(np.float32),
    size=10_000,
)
kernel(
    "segment_sum 1M into 1000",
    lambda n: (normal(n, seed=1), integers(1000, n, seed=2)),
    lambda s: lambda values, segments: s.px.ops.segment_sum(values, segments, num_segments=1000),
    torch=segment_sum_torch,
    numpy=lambda s: lambda values, segments: np.bincount(segments, values, 1000).astype(np.float32),
    size=M,
    atol=1e-2,
)


# --- Fourier transforms and linear algebra

kernel(
    "fft 1M",
    lambda n: (normal(n, seed=1).astype(np.complex64),),
    lambda s: s.jnp.fft.fft,
    torch=lambda s: s.torch.fft.fft,
    numpy=lambda s: np.fft.fft,
    size=1 << 20,
    smoke=16,
    rtol=1e-3,
    atol=1e-1,
)
kernel(
    "rfft2 1024²",
    square,
    lambda s: s.jnp.fft.rfft2,
    torch=lambda s: s.torch.fft.rfft2,
    numpy=lambda s: np.fft.rfft2,
    size=1024,
    rtol=1e-3,
    atol=1e-1,
)


def reconstructed_qr(results: list[np.ndarray]) -> list[np.ndarray]:
    q, r = results
    return [q @ r]


def reconstructed_svd(results: list[np.ndarray]) -> list[np.ndarray]:
    left, values, right = results
    return [values, (left * values[..., None, :]) @ right]


def reconstructed_eigh(results: list[np.ndarray]) -> list[np.ndarray]:
    values, vectors = results
    return [values, (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)]


def linear_algebra(
    name: str, decompose: Callable[[Any], Any], *, torch: Maker | None = None, **fields: Any
) -> None:
    """One matrix of `single` rows, and 1000 matrices of 16: `decompose` takes a `linalg` module."""
    single = fields.pop("single", 500)
    for title, inputs, size in (
        (f"{name} {single}", lambda n: (positive_definite(n, n), normal(n, 1, seed=4)), single),
        (f"{name} 1000×16×16", lambda n: (positive_definite(n, 16, 16), normal(n, 16, 1, seed=4)), 1000),
    ):
        kernel(
            title,
            inputs,
            lambda s: lambda a, b: decompose(s.jnp.linalg)(a, b),
            torch=torch or (lambda s: lambda a, b: decompose(s.torch.linalg)(a, b)),
            numpy=lambda s: lambda a, b: decompose(np.linalg)(a, b),
            size=size,
            rtol=1e-3,
            atol=1e-3,
            same_dtype=False,
            **fields,
        )


def as_tuple(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    return lambda a, b: tuple(function(a, **settings))


linear_algebra("inv", lambda linalg: lambda a, b: linalg.inv(a))
linear_algebra("solve", lambda linalg: linalg.solve)
linear_algebra("cholesky", lambda linalg: lambda a, b: linalg.cholesky(a))
linear_algebra("qr", lambda linalg: as_tuple(linalg.qr), view=reconstructed_qr)
linear_algebra("eigh", lambda linalg: as_tuple(linalg.eigh), view=reconstructed_eigh, single=300)
linear_algebra(
    "svd", lambda linalg: as_tuple(linalg.svd, full_matrices=False), view=reconstructed_svd, single=300
)
