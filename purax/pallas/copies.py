"""Copies between references that a program starts and waits for; here a copy is done when it is started.

`emit_pipeline` runs a function over a grid of blocks of references, inside of a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import lax
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.pallas.blocks import Operand
from purax.pallas.context import Frame, step_of
from purax.pallas.grid_program import _positions
from purax.pallas.refs import KernelRef, as_memory
from purax.pallas.settings import make_ref
from purax.pallas.slices import Slice
from purax.pallas.specs import BlockSpec
from purax.tree.registry import tree_flatten


class AsyncCopyDescriptor:
    """A copy from one reference to another.

    >>> from purax.pallas.copies import AsyncCopyDescriptor
    >>> AsyncCopyDescriptor.__name__
    'AsyncCopyDescriptor'
    """

    def __init__(self, source_ref: Any, target_ref: Any, add: bool = False):
        self._source, self._target = as_memory(source_ref, "a copy"), as_memory(target_ref, "a copy")
        self._add = add
        if self._source.shape != self._target.shape or self._source.dtype != self._target.dtype:
            raise located(
                ValueError,
                f"a copy needs two references of one shape and dtype, got {self._source.shape} "
                f"{self._source.dtype} and {self._target.shape} {self._target.dtype}",
            )

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copies."""
        value = self._source[...]
        self._target[...] = self._target[...] + value if add or self._add else value

    def wait(self) -> None:
        """The copy is done already."""

    def wait_send(self) -> None:
        """The copy is done already."""

    def wait_recv(self) -> None:
        """The copy is done already."""


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any = None) -> AsyncCopyDescriptor:
    """A copy that is not started yet: `start()` it, and `wait()` for it.

    Args:
        src_ref, dst_ref: references, or parts of them.
        sem: the semaphore that tells when it is done.

    >>> from purax.pallas import tpu
    >>> tpu.make_async_copy.__name__
    'make_async_copy'
    """
    return AsyncCopyDescriptor(src_ref, dst_ref)


def async_copy(src_ref: Any, dst_ref: Any, sem: Any = None, *, priority: int = 0, add: bool = False) -> Any:
    """Starts a copy.

    Args:
        src_ref, dst_ref: references, or parts of them.
        sem: the semaphore that tells when it is done.
        priority: of the copy.
        add: whether it is added to what is there.

    >>> from purax.pallas import tpu
    >>> tpu.async_copy.__name__
    'async_copy'
    """
    copy = AsyncCopyDescriptor(src_ref, dst_ref, add)
    copy.start(priority)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copies each of a tree of references to the one at its place in another tree.

    Args:
        src_ref, dst_ref: the trees.
        add: whether it is added to what is there.

    >>> from purax.pallas import tpu
    >>> tpu.sync_copy.__name__
    'sync_copy'
    """
    sources, targets = tree_flatten(src_ref)[0], tree_flatten(dst_ref)[0]
    if len(sources) != len(targets):
        raise located(
            ValueError,
            f"sync_copy: there are {len(sources)} references to copy from, and {len(targets)} to copy to",
        )
    for a, b in zip(sources, targets, strict=True):
        AsyncCopyDescriptor(a, b, add).start()


def remote_copy(*args: Any, **kwargs: Any) -> Any:
    """Copies between devices are not done by kernels here.

    >>> from purax.pallas import tpu
    >>> tpu.make_async_remote_copy.__name__
    'remote_copy'
    """
    raise located(
        NotImplementedError,
        "kernels here do not copy between devices; end the kernel, communicate with `lax.ppermute` in a "
        "`shard_map`, and go on in another kernel",
    )


def emit_pipeline(
    body: Callable[..., Any],
    *,
    grid: Sequence[Any],
    in_specs: Any = (),
    out_specs: Any = (),
    _explicit_indices: bool = False,
    **hints: Any,
) -> Callable[..., None]:
    """A function of references that runs `body` on blocks of them, once for each step of a grid.

    Args:
        body: a function of references to blocks.
        grid: the sizes of the grid.
        in_specs, out_specs: a `BlockSpec` for each reference.
        **hints: how blocks are copied ahead; without meaning on the CPU.

    >>> from purax.pallas import tpu
    >>> tpu.emit_pipeline.__name__
    'emit_pipeline'
    """
    specs = [*_as_list(in_specs), *_as_list(out_specs)]
    num_inputs = len(_as_list(in_specs))

    def run(*refs: Any, scratches: Any = (), **unused: Any) -> None:
        memories = [as_memory(ref, "emit_pipeline") for ref in refs]
        if len(memories) != len(specs):
            raise located(
                ValueError, f"emit_pipeline: there are {len(specs)} specs, and {len(memories)} references"
            )
        known = [n if isinstance(n, (int, np.integer)) else None for n in grid]
        operands = [
            Operand(ShapedArray(ref.shape, ref.dtype), spec, known, (), f"reference {i}", "emit_pipeline")
            for i, (ref, spec) in enumerate(zip(memories, specs, strict=True))
        ]

        def step(turn: Any, carry: None) -> None:
            ids = _positions(turn, list(grid))
            parts = []
            for ref, operand in zip(memories, operands, strict=True):
                index = operand.indices(ids, ())
                where = []
                for dim, i in zip(operand.dims, index, strict=True):
                    if not dim.is_seen:
                        where.append(i)
                    else:
                        block = min(dim.block, dim.size)
                        where.append(slice(None) if block == dim.size else Slice(dim.start(i), block))
                parts.append(ref.at[tuple(where)] if where else ref.at[...])
            blocks = [make_ref(part[...], "a block", None, True) for part in parts]
            with step_of(Frame(ids, list(grid), "emit_pipeline")):
                args = [*blocks, *_as_list(scratches)]
                body(*((ids,) if _explicit_indices else ()), *args)
            for part, block in list(zip(parts, blocks, strict=True))[num_inputs:]:
                part[...] = block[...]

        total: Any = math.prod(known) if None not in known else math.prod(grid)  # type: ignore[arg-type]
        lax.fori_loop(0, total, step, None)

    return run


def _as_list(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return list(x)
    if isinstance(x, (BlockSpec, KernelRef)):
        return [x]
    raise located(TypeError, f"emit_pipeline needs a BlockSpec for each reference, got {shown(x)}")
