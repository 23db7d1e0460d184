"""The order of operations that do not depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.interpreters.arguments import to_array
from purax.primitives.barrier import dce_sink_p, optimization_barrier_p

__all__ = ["control_dep", "schedule"]


def control_dep(src: Any, dst: Any) -> tuple[()]:
    """Says that `dst` is computed after `src`: the compiler's scheduler finds both kept alive by one barrier.

    Args:
        src: an array.
        dst: another.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental.control_deps import control_dep
    >>> def f(x):
    ...     a, b = jnp.sin(x), jnp.cos(x)
    ...     control_dep(a, b)
    ...     return a + b
    >>> round(float(px.jit(f)(1.0)), 4)
    1.3818
    """
    dce_sink_p.bind(*optimization_barrier_p.bind(to_array(src), to_array(dst)))
    return ()


def schedule(ops: Sequence[Any]) -> None:
    """Says that arrays are computed in the order given: each after the one before it.

    Args:
        ops: the arrays.
    """
    for src, dst in zip(ops, ops[1:], strict=False):
        control_dep(src, dst)
