"""Distributions over counts: geometric, Poisson, binomial and multinomial numbers.

Small means are drawn by adding up waiting times, large ones by transformed rejection (W. Hörmann 1993: "The transformed
rejection method for generating Poisson random variables", "The generation of binomial random variates").
Both are loops over whole arrays; elements that are done keep their value.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import purax.numpy as jnp
from purax.control_flow.scan import scan
from purax.control_flow.while_loop import while_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.source import located
from purax.primitives.elementwise.xla_functions import lgamma, log, log1p
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.random.arguments import (
    as_operand,
    as_shape,
    float_dtype,
    integer_dtype,
    is_broadcastable,
    placed,
    result_shape,
)
from purax.random.from_bits import unit_uniform, unstack
from purax.random.keys import single_key
from purax.random.sampling import sampler
from purax.typing import ArrayLike, DTypeLike, Shape

__all__ = ["binomial", "geometric", "multinomial", "poisson"]


def spread(x, shape):
    """`x` repeated over `shape`."""
    return broadcast_in_dim(x, shape, range(len(shape) - aval_of(x).ndim, len(shape)))


# --- geometric


@sampler()
def _geometric(words, p, *, implementation, shape, dtype):
    u = unit_uniform(words, implementation, shape, p.dtype)
    u = jnp.where(u == 0, 1, u)
    return (jnp.floor(log(u) / spread(log1p(-p), shape)) + 1).astype(dtype)


def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Geometric numbers: how many trials until the first success, each with probability `p`.

    Args:
        key: A key.
        p: The probability of success, in (0, 1].
        shape: The shape of the result, which `p` broadcasts to; that of `p` by default.
        dtype: An integer dtype, int32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An integer array.

    >>> from purax import random
    >>> bool((random.geometric(random.key(0), 0.3, (100,)) >= 1).all())
    True
    """
    found = single_key(key, "geometric")
    chosen = integer_dtype(dtype, "geometric")
    own, _ = dtypes.dtype_and_weak(p)
    probability = as_operand(p, dtypes.to_inexact_dtype(own), "geometric", "p")
    full = result_shape(shape, "geometric", p=probability)
    static = {"implementation": found.implementation, "shape": full, "dtype": chosen}
    return placed(_geometric(found.words, probability, **static), out_sharding)


# --- Poisson


def _poisson_by_waiting(words, lam, implementation, dtype):
    """Knuth: how many exponential waiting times fit into λ."""
    shape = lam.shape

    def step(state):
        count, words, log_product = state
        words, now = unstack(implementation.split(words, (2,)), 2)
        count = jnp.where(log_product > -lam, count + 1, count)
        u = unit_uniform(now, implementation, shape, lam.dtype)
        return count, words, log_product + log(u)

    start = (jnp.zeros(shape, dtype), words, jnp.zeros(shape, lam.dtype))
    count, _, _ = while_loop(lambda state: (state[2] > -lam).any(), step, start)
    return count - 1


def _poisson_by_rejection(words, lam, implementation, dtype):
    """Hörmann's algorithm PTRS, for λ ≥ 10."""
    shape = lam.shape
    log_lam = log(lam)
    b = 0.931 + 2.53 * jnp.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    always_below = 0.9277 - 3.6224 / (b - 2)

    def step(state):
        result, is_done, words = state
        words, first, second = unstack(implementation.split(words, (3,)), 3)
        u = unit_uniform(first, implementation, shape, lam.dtype) - 0.5
        v = unit_uniform(second, implementation, shape, lam.dtype)
        u_shifted = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / u_shifted + b) * u + lam + 0.43)
        s = log(v * inverse_alpha / (a / (u_shifted * u_shifted) + b))
        t = -lam + k * log_lam - lgamma(k + 1)
        accepted_at_once = (u_shifted >= 0.07) & (v <= always_below)
        rejected_at_once = (k < 0) | ((u_shifted < 0.013) & (v > u_shifted))
        accepted = accepted_at_once | (~rejected_at_once & (s <= t))
        return jnp.where(accepted, k, result), is_done | accepted, words

    start = (jnp.full(shape, -1, lam.dtype), jnp.zeros(shape, bool), words)
    result, _, _ = while_loop(lambda state: (~state[1]).any(), step, start)
    return result.astype(dtype)


@sampler()
def _poisson(words, lam, *, implementation, shape, dtype):
    lam = spread(lam, shape)
    is_small = jnp.isnan(lam) | (lam < 10)
    waited = _poisson_by_waiting(words, jnp.where(is_small, lam, 0.0), implementation, dtype)
    rejected = _poisson_by_rejection(words, jnp.where(is_small, 1e5, lam), implementation, dtype)
    return jnp.where(lam == 0, 0, jnp.where(is_small, waited, rejected))


def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Poisson numbers: probability λ^k exp(−λ) / k!.

    Args:
        key: A key.
        lam: λ, the mean, not negative.
        shape: The shape of the result, which `lam` broadcasts to; that of `lam` by default.
        dtype: An integer dtype, int32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An integer array; −1 where `lam` is negative or not a number.

    >>> from purax import random
    >>> bool((random.poisson(random.key(0), 3.0, (100,)) >= 0).all())
    True
    """
    found = single_key(key, "poisson")
    chosen = integer_dtype(dtype, "poisson")
    # The draws are float32 whatever lam is, so that setting `enable_x64` does not change the numbers of a key.
    mean = as_operand(lam, np.float32, "poisson", "lam")
    full = result_shape(shape, "poisson", lam=mean)
    static = {"implementation": found.implementation, "shape": full, "dtype": chosen}
    return placed(_poisson(found.words, mean, **static), out_sharding)


# --- binomial


def _stirling_tail(k: int) -> float:
    """log k! − (log √2π + (k + ½) log(k + 1) − (k + 1)): what is left of log k! after Stirling's formula."""
    return math.lgamma(k + 1) - (math.log(2 * math.pi) / 2 + (k + 0.5) * math.log(k + 1) - (k + 1))


_TAILS = [_stirling_tail(k) for k in range(10)]


def _approximate_tail(k):
    table = np.array(_TAILS, k.dtype)
    clipped = jnp.clip(k, 0.0, 9.0)
    square = (clipped + 1) * (clipped + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (clipped + 1)
    return jnp.where(k <= 9, jnp.asarray(table)[clipped.astype(np.int32)], series)


def _binomial_by_waiting(words, n, p, implementation):
    """Adds up geometric waiting times until they exceed n."""
    shape = n.shape
    log1_p = log1p(-p)

    def step(state):
        count, waited, words = state
        now, words = unstack(implementation.split(words, (2,)), 2)
        count = jnp.where(waited <= n, count + 1, count)
        u = unit_uniform(now, implementation, shape, n.dtype)
        return count, waited + jnp.ceil(log(u) / log1_p), words

    zeros = jnp.zeros(shape, n.dtype)
    count, _, _ = while_loop(lambda state: (state[1] <= n).any(), step, (zeros, zeros, words))
    return count - 1


def _binomial_by_rejection(words, n, p, implementation):
    """Hörmann's algorithm BTRS, for n p ≥ 10 and p ≤ ½."""
    shape = n.shape
    deviation = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    always_below = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = jnp.floor((n + 1) * p)

    def step(state):
        result, is_done, words = state
        words, first, second = unstack(implementation.split(words, (3,)), 3)
        u = unit_uniform(first, implementation, shape, n.dtype)
        v = unit_uniform(second, implementation, shape, n.dtype)
        u = u - 0.5
        u_shifted = 0.5 - jnp.abs(u)
        accepted_at_once = (u_shifted >= 0.07) & (v <= always_below)
        k = jnp.floor((2 * a / u_shifted + b) * u + c)
        is_outside = (k < 0) | (k > n)
        v = log(v * alpha / (a / (u_shifted * u_shifted) + b))
        bound = (
            (m + 0.5) * log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * log(r * (n - k + 1) / (k + 1))
            + _approximate_tail(m)
            + _approximate_tail(n - m)
            - _approximate_tail(k)
            - _approximate_tail(n - k)
        )
        accepted = accepted_at_once | (~is_outside & (v <= bound))
        return jnp.where(accepted, k, result), is_done | accepted, words

    start = (jnp.full(shape, -1, n.dtype), jnp.zeros(shape, bool), words)
    result, _, _ = while_loop(lambda state: (~state[1]).any(), step, start)
    return result


def _counting_dtype(dtype):
    """The dtype to draw in: in narrower ones than float32 sums of waiting times stand still before they reach n."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def standard_binomial(words, n, p, implementation):
    """Binomial numbers for arrays `n` and `p` of equal shapes."""
    is_rare = p < 0.5
    q = jnp.where(is_rare, p, 1 - p)
    n_is_bad = jnp.isnan(n) | (n < 0)
    q_is_bad = jnp.isnan(q) | (q < 0)
    safe_q = jnp.where(q_is_bad, 0.01, q)
    is_infinite = jnp.isinf(n)
    is_small = n_is_bad | (n * safe_q <= 10)
    n_whole = jnp.floor(n)
    waited = _binomial_by_waiting(words, jnp.where(is_small, n_whole, 0.0), safe_q, implementation)
    skips = is_small | is_infinite
    rejected = _binomial_by_rejection(
        words, jnp.where(skips, 1e4, n_whole), jnp.where(skips, 0.5, safe_q), implementation
    )
    count = jnp.where(is_small, waited, rejected)
    is_bad = n_is_bad | q_is_bad
    count = jnp.where(is_bad, np.nan, count)
    count = jnp.where(is_infinite & ~is_bad, np.inf, count)
    keeps = is_rare | n_is_bad | jnp.isnan(q) | is_infinite
    return jnp.where(keeps, count, n_whole - count)


@sampler()
def _binomial(words, n, p, *, implementation, shape, dtype):
    return standard_binomial(words, spread(n, shape), spread(p, shape), implementation).astype(dtype)


def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Binomial numbers: how many of `n` trials succeed, each with probability `p`.

    Args:
        key: A key.
        n: The number of trials, not negative.
        p: The probability of success.
        shape: The shape of the result, which the parameters broadcast to; their own by default.
        dtype: A float dtype, float32 by default.

    Returns:
        An array of integers; not a number where a parameter is out of range.

    >>> from purax import random
    >>> x = random.binomial(random.key(0), 10, 0.3, (100,))
    >>> bool(((x >= 0) & (x <= 10)).all())
    True
    """
    found = single_key(key, "binomial")
    chosen = float_dtype(dtype, "binomial")
    computed = _counting_dtype(chosen)
    trials, probability = as_operand(n, computed, "binomial", "n"), as_operand(p, computed, "binomial", "p")
    full = result_shape(shape, "binomial", n=trials, p=probability)
    static = {"implementation": found.implementation, "shape": full, "dtype": chosen}
    return _binomial(found.words, trials, probability, **static)


# --- multinomial


@sampler()
def _multinomial(words, n, p, *, implementation, shape, dtype, unroll):
    """One binomial number after the other: the trials that are left, the share of this outcome in what is left."""
    outcomes = p.shape[-1]
    batch = shape[:-1]
    rest = jnp.cumsum(p[..., ::-1], axis=-1)[..., ::-1]
    share = spread(p / jnp.where(rest == 0, 1, rest), shape)
    keys = implementation.split(words, (outcomes,))

    def step(left, inputs):
        share, key = inputs
        count = standard_binomial(key, left, jnp.clip(share, 0, 1), implementation)
        return left - count, count

    _, counts = scan(step, spread(n, batch), (jnp.moveaxis(share, -1, 0), keys), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtype)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Multinomial vectors: how many of `n` trials have each outcome.

    Args:
        key: A key.
        n: The number of trials; broadcasts to the shape of `p` without its last axis.
        p: The probabilities of the outcomes, along the last axis.
        shape: The shape of the result, which `p` broadcasts to, or that shape without its last axis.
        dtype: A float dtype, float32 by default.
        unroll: How many outcomes a step of the loop draws.

    Returns:
        An array of integers that sum to `n` along the last axis.

    >>> from purax import random
    >>> random.multinomial(random.key(0), 10, np.float32([0.2, 0.3, 0.5])).sum()
    Array(10., dtype=float32)
    """
    found = single_key(key, "multinomial")
    chosen = float_dtype(dtype, "multinomial")
    computed = _counting_dtype(chosen)
    trials, probability = (
        as_operand(n, computed, "multinomial", "n"),
        as_operand(p, computed, "multinomial", "p"),
    )
    if not probability.ndim:
        raise located(ValueError, "multinomial: p must have an axis of outcomes, got a scalar")
    if shape is None:
        full = probability.shape
    else:
        full = as_shape(shape, "multinomial")
        if not is_broadcastable(probability.shape, full):
            full = (*full, probability.shape[-1])
    result_shape(full, "multinomial", p=probability)
    result_shape(full[:-1], "multinomial", n=trials)
    static = {"implementation": found.implementation, "shape": full, "dtype": chosen, "unroll": unroll}
    return _multinomial(found.words, trials, probability, **static)
