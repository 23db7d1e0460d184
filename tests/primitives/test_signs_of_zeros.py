"""Of zeros of both signs, -0 is the smaller one: in every extremum, at once and compiled, wherever they lie."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import lax

POOLS = (
    (0.0, -0.0),
    (0.0, -0.0, -1.0),
    (0.0, -0.0, 1.0),
    (-0.0, -1.0),
    (0.0, 1.0),
    (0.0, -0.0, np.nan, 1.0, -1.0),
)


def larger(x, y):
    """The larger one by definition: NaN wins, then the number, then the sign."""
    chosen = np.where((x > y) | (x == y) & ~np.signbit(x), x, y)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, chosen)


def smaller(x, y):
    return -larger(-x, -y)


def running(combine, x):
    out = [x[0]]
    for element in x[1:]:
        out.append(combine(out[-1], element))
    return np.array(out)


FIRST = np.array([0, 1, 1, 0])
PROGRAMS = {  # what purax computes, and what it means; the last ones only small and at once
    "max": (lambda x, y: lax.max(x, y), larger),
    "min": (lambda x, y: lax.min(x, y), smaller),
    "max of zero": (lambda x, y: lax.max(x, jnp.zeros((), x.dtype)), lambda x, y: larger(x, np.zeros_like(x))),
    "min of zero": (lambda x, y: lax.min(jnp.zeros_like(x), x), lambda x, y: smaller(x, np.zeros_like(x))),
    "clip": (lambda x, y: jnp.clip(x, -0.0, 0.0), lambda x, y: np.where(np.isnan(x), x, np.copysign(0.0, x))),
    "clamp": (lambda x, y: lax.clamp(y, x, -y), lambda x, y: smaller(larger(x, y), -y)),
    "fmax": (lambda x, y: jnp.fmax(x, y), lambda x, y: np.where((x > y) | np.isnan(y), x, y)),
    "fmin": (lambda x, y: jnp.fmin(x, y), lambda x, y: np.where((y > x) | np.isnan(y), x, y)),
    "cummax": (lambda x, y: lax.cummax(x), lambda x, y: running(larger, x)),
    "cummin": (lambda x, y: lax.cummin(x, reverse=True), lambda x, y: running(smaller, x[::-1])[::-1]),
    "update": (lambda x, y: x.at[0:2].max(y[0:2]), lambda x, y: np.concatenate([larger(x[:2], y[:2]), x[2:]])),
    "scatter": (
        lambda x, y: x.at[FIRST].min(y[FIRST]),
        lambda x, y: np.concatenate([smaller(x[:2], y[:2]), x[2:]]),
    ),
    "reduce_max": (lambda x, y: jnp.max(x), lambda x, y: running(larger, x)[-1]),
    "reduce_min": (lambda x, y: jnp.min(x, 0), lambda x, y: running(smaller, x)[-1]),
    "nanmin": (lambda x, y: jnp.nanmin(x), lambda x, y: running(smaller, np.append(x[~np.isnan(x)], np.inf))[-1]),
}  # fmt: skip
COMPILED = [name for name in PROGRAMS if "reduce" not in name and "nan" not in name]


def bits(x):
    x = np.asarray(x).astype(np.float64)
    return np.where(np.isnan(x), 9, x).tolist(), (np.signbit(x) & ~np.isnan(x)).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_sign_of_zero_in_extrema(dtype):
    compiled = purax.jit(lambda x, y: {name: PROGRAMS[name][0](x, y) for name in COMPILED})
    random = np.random.default_rng(0)
    for size in (2, 9, 1500):
        for pool in POOLS if size < 1500 or dtype == "float32" else ():
            x, y = (random.choice(np.array(pool), size) for _ in range(2))
            a, b = (jnp.asarray(v, dtype) for v in (x, y))
            found = compiled(a, b)
            for name, (program, meaning) in PROGRAMS.items():
                wanted = bits(meaning(x, y))
                assert bits(program(a, b)) == wanted or np.isnan(x).all(), (name, pool, size)
                if name in found:
                    assert bits(found[name]) == wanted, (name, pool, size, "compiled")
