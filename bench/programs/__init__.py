"""Programs of the group `first-call`: what people write, from many fields, none of them a benchmark of kernels.

Each is a function of a peer's `Space` that returns a function and its arguments as NumPy trees; what is timed is the
first call of `jit` of that function. They are written for this benchmark, with shapes as in documentation and tests:
small, so that nearly all of the time is tracing, lowering and compiling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Build = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]
PROGRAMS: dict[str, Build] = {}
HEAVY: set[str] = set()  # programs that take a peer minutes
WITHOUT_JIT: set[str] = set()  # programs that are called as they are


def program(name: str, *, heavy: bool = False, jit: bool = True) -> Callable[[Build], Build]:
    """Registers a program under a name."""

    def register(build: Build) -> Build:
        assert name not in PROGRAMS
        PROGRAMS[name] = build
        if heavy:
            HEAVY.add(name)
        if not jit:
            WITHOUT_JIT.add(name)
        return build

    return register


def load() -> dict[str, Build]:
    """All programs by name."""
    from bench.programs import games, learning, science, signals, statistics, table

    assert all((games, learning, science, signals, statistics, table))
    return PROGRAMS
