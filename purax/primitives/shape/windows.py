"""The vocabulary of `gather` and `scatter`: how the axes of arrays, of indices and of windows correspond, and what
becomes of windows that are out of bounds.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.limits import shallow
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
            return _MODES[shallow(mode)]
        except (KeyError, TypeError):
            unknown = f'Unknown gather mode "{mode}": ' if isinstance(mode, str) else ""
            raise ValueError(
                f"{unknown}mode must be one of {', '.join(map(repr, _MODES))}, got {shown(mode)}"
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
    numbers: GatherDimensionNumbers | ScatterDimensionNumbers,
    slice_sizes: Sequence[int],
) -> None:
    """Raises unless windows of `slice_sizes` can be placed in the operand as `numbers` say."""
    _, dropped, index_map, batching, indices_batching = numbers
    _, of_dropped, of_map, of_batching, of_indices = numbers._fields
    op = name.partition("-")[0]
    given = f"operand of shape {operand.shape} and indices of shape {indices.shape}"
    if not dtypes.is_integer(indices.dtype):
        raise ShapeError(
            f"{name} needs integer indices, got {indices.str_short()}: indices must have an integer type; convert them "
            "with `.astype(int)`"
        )
    count = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or count != len(index_map):
        raise TypeError(
            f"{op.capitalize()} op has {len(index_map)} elements in {of_map} and the bound of dimension "
            f"index_vector_dim={indices.ndim - 1} of indices is {count}. These two numbers must be equal: the last "
            f"axis of the indices of shape {indices.shape} holds one component for each of the axes {index_map}"
        )
    if len(slice_sizes) != operand.ndim:
        raise TypeError(
            f"{op.capitalize()} op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={operand.ndim}"
        )
    for i, (size, n) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
        if not 0 <= size <= n:
            raise TypeError(
                f"Slice size at index {i} in {op} op is out of range, must be within [0, {n} + 1), got {size}: windows "
                f"of sizes {tuple(slice_sizes)} do not fit into the operand of shape {operand.shape}"
            )
    if len(set(index_map)) != len(index_map):
        raise TypeError(f"{of_map} in {op} op must not repeat; got: {index_map}.")
    for i, axis in enumerate(index_map):
        if not 0 <= axis < operand.ndim:
            mapping = " mapping" if op == "scatter" else ""
            raise TypeError(
                f"Invalid {of_map}{mapping}; domain is [0, {operand.ndim}), got: {i}->{axis}. These are axes of the "
                f"{given}"
            )
    check_sorted(op, of_dropped, dropped, operand.ndim, given)
    check_sorted(op, of_batching, batching, operand.ndim, given)
    if len(set(indices_batching)) != len(indices_batching):
        raise TypeError(f"{of_indices} in {op} op must not repeat; got: {indices_batching}.")
    if indices.ndim - 1 in indices_batching:
        raise TypeError(
            f"{op.capitalize()} op cannot have the index vector dimension as a batching dimension; got "
            f"{indices_batching}. It is the last axis of the {given}"
        )
    for axis in indices_batching:
        if not 0 <= axis < indices.ndim:
            raise TypeError(
                f"Invalid {of_indices} set in {op} op; valid range is [0, {indices.ndim}); got: {axis}. These are axes "
                f"of the {given}"
            )
    for what, axes in ((of_dropped, dropped), (of_map, index_map)):
        if not {*axes}.isdisjoint(batching):
            raise TypeError(f"{what} and {of_batching} in {op} op must be disjoint; got: {axes} and {batching}.")
    for what, axes, allowed in (("collapse slice", dropped, (1,)), ("have operand batching", batching, (0, 1))):
        for axis in axes:
            if slice_sizes[axis] not in allowed:
                raise TypeError(
                    f"{op.capitalize()} op can only {what} dims with bound {'/'.join(map(str, allowed))}, but bound is "
                    f"{slice_sizes[axis]} for index {axis} at position {axes.index(axis)}: these axes, "
                    f"{(*dropped, *batching)}, must have window size 1, got sizes {tuple(slice_sizes)}"
                )
    if len(batching) != len(indices_batching):
        raise TypeError(
            f"{op.capitalize()} op requires equal numbers of {of_batching} and {of_indices}, got {batching} and "
            f"{indices_batching}."
        )
    ours = tuple(operand.shape[axis] for axis in batching)
    theirs = tuple(indices.shape[axis] for axis in indices_batching)
    if ours != theirs:
        raise TypeError(
            f"{op.capitalize()} op requires operand batching dimensions and indices batching dimensions to have the "
            f"same shape, got {ours} and {theirs}: axes {batching} of the operand of shape {operand.shape} and "
            f"{indices_batching} of the indices of shape {indices.shape}"
        )


def check_sorted(op: str, what: str, axes: tuple[int, ...], ndim: int, given: str) -> None:
    """Raises unless `axes` are axes of an array with `ndim` axes, in increasing order."""
    if is_increasing(axes, ndim):
        return
    if list(axes) != sorted(axes):
        raise ShapeError(f"{what} in {op} op must be sorted; got {axes} for the {given}")
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{what} in {op} op must not repeat; got: {axes}. These are for the {given}")
    wrong = next(axis for axis in axes if not 0 <= axis < ndim)
    raise ShapeError(
        f"Invalid {what} set in {op} op; valid range is [0, {ndim}); got: {wrong}. It is for the {given}"
    )


def window_sizes(
    operand_shape: tuple[int, ...], updates_shape: tuple[int, ...], numbers: ScatterDimensionNumbers
) -> tuple[int, ...]:
    """The sizes of the windows that updates of a shape are for, along each axis of the operand."""
    given, batching = numbers.update_window_dims, numbers.operand_batching_dims
    without = {*numbers.inserted_window_dims, *batching}
    shapes = f"operand of shape {operand_shape} and updates of shape {updates_shape}"
    check_sorted("scatter", "update_window_dims", given, len(updates_shape), shapes)
    check_sorted("scatter", "inserted_window_dims", numbers.inserted_window_dims, len(operand_shape), shapes)
    check_sorted("scatter", "operand_batching_dims", batching, len(operand_shape), shapes)
    if not {*numbers.inserted_window_dims}.isdisjoint(batching):
        raise ShapeError(
            "inserted_window_dims and operand_batching_dims in scatter op must be disjoint; got: "
            f"{numbers.inserted_window_dims} and {batching}."
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
