"""Where in its grid a kernel is that is being recorded or run: what `program_id` and `num_programs` return."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from purax.core.source import located
from purax.errors import shown


class _Frames(threading.local):
    def __init__(self) -> None:
        self.stack: list[Frame] = []


_frames = _Frames()


class Frame:
    """A step of a grid: its position, and the sizes of the grid."""

    def __init__(self, positions: Sequence[Any], sizes: Sequence[Any], name: str):
        self.positions, self.sizes, self.name = list(positions), list(sizes), name


@contextmanager
def step_of(frame: Frame) -> Iterator[None]:
    """Inside, `program_id` answers for a step."""
    _frames.stack.append(frame)
    try:
        yield
    finally:
        _frames.stack.pop()


def innermost(function: str) -> Frame:
    """The step that is being recorded or run."""
    if not _frames.stack:
        raise located(
            ValueError, f"{function} is for kernels: call it in a function that is given to `pallas_call`"
        )
    return _frames.stack[-1]


def _axis(function: str, axis: Any) -> tuple[Frame, int]:
    frame = innermost(function)
    try:
        number = operator.index(axis)
    except TypeError:
        raise located(TypeError, f"{function}: the axis must be an integer, got {shown(axis)}") from None
    if not 0 <= number < len(frame.sizes):
        raise located(
            ValueError,
            f"{function}: axis {number} is out of bounds for the grid of kernel {frame.name}, which has "
            f"{len(frame.sizes)} {'axis' if len(frame.sizes) == 1 else 'axes'}; give `pallas_call` another grid",
        )
    return frame, number


def program_id(axis: int) -> Any:
    """The position of the step along an axis of the grid.

    Args:
        axis: the number of the axis.

    Returns:
        An int32 array of no dimensions.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def number(o_ref):
    ...     o_ref[0] = pl.program_id(0)
    >>> one = pl.BlockSpec((1,), lambda i: i)
    >>> pl.pallas_call(number, px.ShapeDtypeStruct((4,), jnp.int32), grid=(4,), out_specs=one)()
    Array([0, 1, 2, 3], dtype=int32)
    """
    frame, number = _axis("program_id", axis)
    return frame.positions[number]


def num_programs(axis: int) -> Any:
    """The size of the grid along an axis.

    Args:
        axis: the number of the axis.

    Returns:
        An integer, or an int32 array where the grid is known at run time only.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def count(o_ref):
    ...     o_ref[...] = jnp.full((1,), pl.num_programs(0), jnp.int32)
    >>> one = pl.BlockSpec((1,), lambda i: i)
    >>> pl.pallas_call(count, px.ShapeDtypeStruct((3,), jnp.int32), grid=(3,), out_specs=one)()
    Array([3, 3, 3], dtype=int32)
    """
    frame, number = _axis("num_programs", axis)
    return frame.sizes[number]
