"""The vocabulary of `gather` and `scatter`: how the axes of arrays, of indices and of windows correspond, and what
becomes of windows that are out of bounds.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.errors import ShapeError, shown


class GatherDimensionNumbers(NamedTuple):
    """How the axes of the operand, the indices and the result of `gather` correspond.

    Attributes:
        offset_dims: the axes of the result that run inside of a window, in increasing order.
        collapsed_slice_dims: the axes of the operand, of window size 1, that the result does not have.
        start_index_map: for each component of an index, the axis of the operand that it is a position on.
        operand_batching_dims: axes of the operand that are paired with axes of the indices: entry i of the indices
            reads entry i of the operand.
        start_indices_batching_dims: the axes of the indices paired with `operand_batching_dims`, in that order.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the axes of the operand, the indices and the updates of `scatter` correspond: those of the `gather` that
    reads what is written, field by field.

    Attributes:
        update_window_dims: the axes of the updates that run inside of a window, in increasing order.
        inserted_window_dims: the axes of the operand, of window size 1, that the updates do not have.
        scatter_dims_to_operand_dims: for each component of an index, the axis of the operand it is a position on.
        operand_batching_dims: axes of the operand that are paired with axes of the indices.
        scatter_indices_batching_dims: the axes of the indices paired with `operand_batching_dims`, in that order.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """What becomes of a window that is not wholly inside of the operand.

    Attributes:
        CLIP: it is moved inside.
        FILL_OR_DROP: `gather` gives a window full of a fill value, `scatter` leaves it out.
        PROMISE_IN_BOUNDS: there is none, the user promises. (In fact `gather` clips and `scatter` drops.)
        ONE_HOT: as FILL_OR_DROP with the fill value 0.
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """A mode from itself or its name: "clip", "fill", "drop", "promise_in_bounds", "one_hot"; None is "fill".

        >>> GatherScatterMode.from_any("drop")
        <GatherScatterMode.FILL_OR_DROP: 2>
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            raise ValueError(
                f"mode must be one of {', '.join(map(repr, _MODES))}, got {shown(mode)}"
            ) from None


CLIP, FILL_OR_DROP = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
PROMISE_IN_BOUNDS, ONE_HOT = GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.ONE_HOT
_MODES = {
    None: FILL_OR_DROP,
    "fill": FILL_OR_DROP,
    "drop": FILL_OR_DROP,
    "clip": CLIP,
    "promise_in_bounds": PROMISE_IN_BOUNDS,
    "one_hot": ONE_HOT,
}


def check_dimension_numbers(
    name: str,
    operand: ShapedArray,
    indices: ShapedArray,
    numbers: Sequence[tuple[int, ...]],
    slice_sizes: Sequence[int],
) -> None:
    """Raises unless windows of `slice_sizes` can be placed in the operand as `numbers` say."""
    _, dropped, index_map, batching, indices_batching = numbers
    if not dtypes.is_integer(indices.dtype):
        raise ShapeError(
            f"{name} needs integer indices, got {indices.str_short()}; convert them with `.astype(int)`"
        )
    if not indices.ndim or indices.shape[-1] != len(index_map):
        raise TypeError(
            f"{name}: the last axis of the indices of shape {indices.shape} must hold one component for each of the "
            f"{len(index_map)} axes {index_map} that they are positions on"
        )
    if len(slice_sizes) != operand.ndim or any(
        not 0 <= size <= n for size, n in zip(slice_sizes, operand.shape, strict=True)
    ):
        raise TypeError(
            f"{name}: windows of sizes {tuple(slice_sizes)} do not fit into the operand of shape {operand.shape}"
        )
    for what, axes, ndim in (
        ("dropped axes", (*dropped, *batching), operand.ndim),
        ("indexed axes", (*index_map, *batching), operand.ndim),
        ("batching axes of the indices", indices_batching, indices.ndim - 1),
    ):
        if len(set(axes)) != len(axes) or any(not 0 <= axis < ndim for axis in axes):
            raise TypeError(
                f"{name}: {what} {axes} are not distinct axes; got {numbers} for shape {operand.shape}"
            )
    if any(slice_sizes[axis] > 1 for axis in (*dropped, *batching)) or any(
        slice_sizes[axis] != 1 for axis in dropped
    ):
        raise TypeError(
            f"{name}: axes that a window is taken without, {(*dropped, *batching)}, must have window size 1, got "
            f"sizes {tuple(slice_sizes)}"
        )
    if [operand.shape[axis] for axis in batching] != [indices.shape[axis] for axis in indices_batching]:
        raise TypeError(
            f"{name}: the batching axes {batching} of the operand of shape {operand.shape} and {indices_batching} of "
            f"the indices of shape {indices.shape} must have the same sizes"
        )


def window_sizes(
    operand_shape: tuple[int, ...], updates_shape: tuple[int, ...], numbers: ScatterDimensionNumbers
) -> tuple[int, ...]:
    """The sizes of the windows that updates of a shape are for, along each axis of the operand."""
    given, batching = numbers.update_window_dims, numbers.operand_batching_dims
    without = {*numbers.inserted_window_dims, *batching}
    if not is_increasing(given, len(updates_shape)):
        raise ShapeError(
            f"scatter: update_window_dims {given} must name, in increasing order, axes of the updates of shape "
            f"{updates_shape}"
        )
    for what, axes in (
        ("inserted_window_dims", numbers.inserted_window_dims),
        ("operand_batching_dims", batching),
    ):
        if not is_increasing(axes, len(operand_shape)):
            raise ShapeError(
                f"scatter: {what} {axes} must name, in increasing order, axes of the operand of shape {operand_shape}"
            )
    if len(given) + len(without) != len(operand_shape):
        raise ShapeError(
            f"scatter: the operand of shape {operand_shape} needs a size of windows for each axis, but "
            f"update_window_dims {given}, inserted_window_dims {numbers.inserted_window_dims} and "
            f"operand_batching_dims {batching} are {len(given) + len(without)} together"
        )
    sizes = iter([updates_shape[axis] for axis in numbers.update_window_dims])
    return tuple(
        min(n, 1) if axis in batching else 1 if axis in numbers.inserted_window_dims else next(sizes)
        for axis, n in enumerate(operand_shape)
    )


def is_increasing(axes: Sequence[int], ndim: int) -> bool:
    """Whether `axes` are axes of an array with `ndim` axes, in increasing order."""
    return list(axes) == sorted(set(axes)) and all(0 <= axis < ndim for axis in axes)


def shifted(axes: Sequence[int]) -> tuple[int, ...]:
    """Where `axes` are after a new axis was put in front."""
    return tuple(axis + 1 for axis in axes)
