"""Running a sampler in the cheapest way.

A sampler is a function of arrays, the words of the key first, and of static parameters. Small eager draws run
operation by operation on the host, which needs no compilation; once a sampler has been called so often that compiling
it would have paid, and for large draws at once, it becomes a program. Inside of `jit` it is a function that is
compiled once, however often it is called.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from purax.config import config
from purax.core.trace import current
from purax.transforms.jit import JitFunction, jit
from purax.transforms.staging import StagingTrace

_HOST_SIZE = 2048  # the largest draw that runs on the host
_HOST_NANOSECONDS = 50_000_000  # how long a sampler may take there in all before it is compiled


class _Tier:
    """A sampler with its static parameters: how often it still runs on the host, and its program."""

    __slots__ = ("compiled", "host_calls")

    def __init__(self, function: Callable, static: dict[str, Any]):
        size = math.prod(static["shape"])
        self.host_calls = _HOST_NANOSECONDS // (30_000 + 100 * size) if size <= _HOST_SIZE else 0
        self.compiled: JitFunction = jit(_named_partial(function, static))


def _named_partial(function: Callable, static: dict[str, Any]) -> Callable:
    def sample(*operands):
        return function(*operands, **static)

    sample.__name__ = sample.__qualname__ = function.__name__
    return sample


def sampler(function: Callable) -> Callable:
    """Makes `function(words, *operands, *, shape, **static)` run in the cheapest way; `static` is hashable."""
    tiers: dict[tuple, _Tier] = {}

    @functools.wraps(function)
    def call(*operands, **static):
        key = (config.trace_key, *static.values())
        tier = tiers.get(key)
        if tier is None:
            if len(tiers) > 4096:
                tiers.clear()
            tier = tiers[key] = _Tier(function, static)
        if tier.host_calls and type(current.trace) is not StagingTrace:
            tier.host_calls -= 1
            return function(*operands, **static)
        return tier.compiled(*operands)

    return call
