"""Many windows at computed places: `gather` reads them, the scatter functions write them.

Which axes of the operand, the indices and the windows correspond is said by `GatherDimensionNumbers` and
`ScatterDimensionNumbers`. `jnp` indexing and `x.at[…]` are the comfortable form of both.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.api.vmap import vmap
from purax.control_flow.while_loop import while_loop
from purax.core.array import Array
from purax.core.limits import finite
from purax.lax.families import scattering
from purax.lax.operands import array, same_dtypes, sizes_of
from purax.primitives.elementwise.arithmetic import rem
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import lt, select
from purax.primitives.reductions.reduction import reduce_or
from purax.primitives.shape import gather_scatter
from purax.primitives.shape.broadcasting import full
from purax.primitives.shape.gather_scatter import (
    CLIP,
    FILL_OR_DROP,
    ONE_HOT,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from purax.primitives.shape.reshaping import reshape, stack
from purax.typing import ArrayLike


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Reads windows of an array.

    Args:
        operand: an array.
        start_indices: where the windows begin, along the last axis of this integer array.
        dimension_numbers: how axes correspond.
        slice_sizes: the shape of a window.
        unique_indices, indices_are_sorted: promises that may make it faster.
        mode: what becomes of windows that are not inside of the operand: "clip" moves them, which None does too; "fill"
            gives `fill_value`; "promise_in_bounds" says that there are none.
        fill_value: for mode "fill"; NaN, or the least integer (largest unsigned one), if it is None.

    Returns:
        The windows.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(jnp.arange(10, 14), jnp.array([[3], [0]]), numbers, slice_sizes=(1,))
    Array([13, 10], dtype=int32)
    """
    return gather_scatter.gather(
        array("gather", operand),
        array("gather", start_indices, 1),
        GatherDimensionNumbers(*map(tuple, map(finite, finite(dimension_numbers)))),
        sizes_of(slice_sizes, "slice_sizes"),
        mode=CLIP if mode is None else GatherScatterMode.from_any(mode),
        fill_value=fill_value,
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
    )


def index_take(src: Array, idxs: Sequence[Array], axes: Sequence[int]) -> Array:
    """The parts of an array at indices along some axes, which wrap around.

    Args:
        src: an array.
        idxs: for each of the axes a vector of indices.
        axes: the axes.

    Returns:
        An array whose first axis goes through the indices; the others are the axes of `src` that are left.

    >>> from purax import lax, numpy as jnp
    >>> lax.index_take(jnp.arange(6).reshape(2, 3), (jnp.array([0, 1]), jnp.array([2, -1])), (0, 1))
    Array([2, 5], dtype=int32)
    """
    x, axes = array("index_take", src), tuple(finite(axes))
    shape = x.aval.shape
    columns = []
    for i, axis in zip(idxs, axes, strict=True):
        index = convert_element_type(array("index_take", i, 1), np.int32)
        rest = rem(index, shape[axis])
        columns.append(select(lt(rest, 0), add(rest, shape[axis]), rest))
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape) - len(axes) + 1)), axes, axes)
    sizes = [1 if axis in axes else n for axis, n in enumerate(shape)]
    return gather_scatter.gather(x, stack(columns, 1), numbers, sizes, mode=CLIP)


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Replaces windows of an array; which of several updates of one element stays is up to the device.

    Args:
        operand: an array.
        scatter_indices: where the windows begin, along the last axis of this integer array.
        updates: what meets the windows, of the dtype of the operand.
        dimension_numbers: how axes correspond.
        indices_are_sorted, unique_indices: promises that may make it faster; differentiating may need the second.
        mode: what becomes of windows that are not inside of the operand: "drop" leaves them out, which None does too;
            "clip" moves them; "promise_in_bounds" says that there are none.

    Returns:
        The changed array.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter(jnp.full(3, 5), jnp.array([[0], [2]]), jnp.array([2, 8]), numbers)
    Array([2, 5, 8], dtype=int32)
    """
    return _scattered(
        gather_scatter.scatter,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def _scattered(function, operand, indices, updates, dimension_numbers, is_sorted, is_unique, mode) -> Array:
    name = function.__name__
    x, new = array(name, operand), array(name, updates, 2)
    same_dtypes(name, [x.aval, new.aval])
    mode = GatherScatterMode.from_any(mode)
    return function(
        x,
        array(name, indices, 1),
        new,
        ScatterDimensionNumbers(*map(tuple, map(finite, finite(dimension_numbers)))),
        mode=FILL_OR_DROP if mode is ONE_HOT else mode,
        unique_indices=bool(is_unique),
        indices_are_sorted=bool(is_sorted),
    )


# fmt: off
scatter_add = scattering("scatter_add", functools.partial(_scattered, gather_scatter.scatter_add),
    "Adds to windows of an array.", "Array([ 7,  5, 13], dtype=int32)")
scatter_sub = scattering("scatter_sub", functools.partial(_scattered, gather_scatter.scatter_sub),
    "Subtracts from windows of an array.", "Array([ 3,  5, -3], dtype=int32)")
scatter_mul = scattering("scatter_mul", functools.partial(_scattered, gather_scatter.scatter_mul),
    "Multiplies windows of an array.", "Array([10,  5, 40], dtype=int32)")
scatter_min = scattering("scatter_min", functools.partial(_scattered, gather_scatter.scatter_min),
    "Lowers windows of an array to the updates that are smaller.", "Array([2, 5, 5], dtype=int32)")
scatter_max = scattering("scatter_max", functools.partial(_scattered, gather_scatter.scatter_max),
    "Raises windows of an array to the updates that are larger.", "Array([5, 5, 8], dtype=int32)")
# fmt: on


def scatter_apply(
    operand: Array,
    scatter_indices: Array,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Applies a function to the elements of windows of an array; several times to elements of several windows.

    Args:
        operand: an array.
        scatter_indices: where the windows begin, along the last axis of this integer array.
        func: a function of a scalar, of the same dtype.
        dimension_numbers: how axes correspond.
        update_shape: the shape that updates for these windows would have.
        indices_are_sorted, unique_indices, mode: as in `scatter`.

    Returns:
        The changed array.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(jnp.full(3, 5), jnp.array([[0], [2], [2]]), lambda x: 2 * x, numbers, update_shape=(3,))
    Array([10,  5, 20], dtype=int32, weak_type=True)
    """
    x, shape = array("scatter_apply", operand), sizes_of(update_shape, "update_shape")
    times = _scattered(
        gather_scatter.scatter_add,
        full(x.aval.shape, 0, np.int32),
        scatter_indices,
        full(shape, 1, np.int32),
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )
    windows = {axis for axis in range(len(shape))} - set(dimension_numbers.update_window_dims)
    most = 1 if unique_indices else math.prod(shape[axis] for axis in windows)

    def step(state):
        count, value = state
        changed = reshape(vmap(func)(reshape(value, (x.aval.size,))), x.aval.shape)
        return add(count, 1), select(lt(count, times), changed, value)

    def goes_on(state):
        return reduce_or(lt(state[0], times), range(x.aval.ndim))

    return while_loop(goes_on, step, (np.int32(0), x), max_steps=most)[1]
