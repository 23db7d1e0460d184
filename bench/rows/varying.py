"""Calls with arrays of random sizes, first compilations included: buckets of purax beside a program for each size."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.data import normal
from bench.measure import time_rows
from bench.row import Group, bar

group = Group("varying", "calls with random sizes", time_rows, bars=(bar(0.5, "jax"),))

_LONGEST = 512
_fresh = itertools.count(1)  # a number in each program, so that no cache has it


def _model(px: Any, weights: Any, factor: float) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        hidden = px.numpy.tanh(x @ weights) * factor
        return px.nn.softmax(hidden[:, 0]) @ hidden

    return run


def _sizes(count: int) -> list[int]:
    return np.random.default_rng(0).integers(2, _LONGEST, count).tolist()


def _calls(space: Any, count: int, options: dict[str, Any], pads: bool = False) -> Callable[[], Any]:
    weights, rows = space.array(normal(32 * 32).reshape(32, 32)), normal(_LONGEST * 32).reshape(_LONGEST, 32)
    sizes = _sizes(count)

    def plain() -> Any:
        run = space.px.jit(_model(space.px, weights, 1 + next(_fresh) * 1e-6), **options)
        return [np.asarray(run(rows[:n])) for n in sizes][-1]

    def padded() -> Any:
        factor, px = 1 + next(_fresh) * 1e-6, space.px

        @px.jit
        def run(x: Any, n: Any) -> Any:
            hidden = px.numpy.tanh(x @ weights) * factor
            inside = px.numpy.arange(x.shape[0]) < n
            scores = px.nn.softmax(px.numpy.where(inside, hidden[:, 0], -px.numpy.inf))
            return scores @ hidden

        def call(n: int) -> Any:
            room = np.zeros((1 << (n - 1).bit_length(), 32), np.float32)
            room[:n] = rows[:n]
            return np.asarray(run(room, np.int32(n)))

        return [call(n) for n in sizes][-1]

    return padded if pads else plain


group.add(
    "calls of random sizes up to 512",
    {
        "purax": lambda space, count: _calls(space, count, {"dynamic": {"x": 0}}),
        "jax": lambda space, count: _calls(space, count, {}),
        "jax.padded by hand": lambda space, count: _calls(space, count, {}, pads=True),
    },
    size=200,
    smoke_size=3,
    rtol=1e-3,
    atol=1e-4,
    bars=group.row_bars(),
)
