"""`purax.pallas.triton`: what kernels for GPUs use. All of it runs on the CPU as well."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from purax import numpy as jnp
from purax.core.source import located
from purax.pallas import specs
from purax.pallas.language import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
    dot,
    load,
    store,
)

__all__ = [
    "CompilerParams",
    "approx_tanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "debug_barrier",
    "dot",
    "elementwise_inline_asm",
    "load",
    "max_contiguous",
    "store",
]


@dataclasses.dataclass(frozen=True)
class CompilerParams(specs.CompilerParams):
    """How Triton compiles a kernel.

    Attributes:
        num_warps: how many groups of 32 threads run one step of the grid.
        num_stages: how many loads are in flight in loops.

    >>> from purax.pallas import triton
    >>> triton.CompilerParams(num_warps=4)
    CompilerParams(num_warps=4, num_stages=None)
    """

    num_warps: int | None = None
    num_stages: int | None = None


def approx_tanh(x: Any) -> Any:
    """tanh, by the instruction of the GPU that approximates it; on the CPU it is exact.

    >>> from purax.pallas import triton
    >>> triton.approx_tanh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return jnp.tanh(x)


def debug_barrier() -> None:
    """Waits for all threads of a step of the grid; on the CPU there is one.

    >>> from purax.pallas import triton
    >>> triton.debug_barrier()
    """


def max_contiguous(x: Any, values: Any) -> Any:
    """`x`, of which so many neighbours are known to follow each other: a hint for compilers.

    >>> from purax.pallas import triton
    >>> triton.max_contiguous(3, 1)
    3
    """
    return x


def elementwise_inline_asm(
    asm: str, *, args: Sequence[Any], constraints: str, pack: int, result_shape_dtypes: Sequence[Any]
) -> Sequence[Any]:
    """Instructions of a GPU, applied to each element.

    Args:
        asm: the instructions.
        args: the arrays.
        constraints: how they use registers.
        pack: how many elements they take at once.
        result_shape_dtypes: the types of the results.

    >>> from purax.pallas import triton
    >>> triton.elementwise_inline_asm.__name__
    'elementwise_inline_asm'
    """
    raise located(
        NotImplementedError,
        "elementwise_inline_asm: the instructions are of a GPU, and this kernel runs as an XLA program; write the "
        "operation with `jnp`, or choose by `lax.platform_dependent`",
    )
