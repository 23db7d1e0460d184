"""Reductions with any operation: `reduce` over axes, `reduce_window` over windows. Operations that have a primitive of
their own use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.control_flow.reductions import (
    is_straight,
    on_arrays,
    operation_of,
    reduce_p,
    reduce_window_p,
    stage_computation,
)
from purax.core import dtypes
from purax.core.avals import aval_of
from purax.core.dimensions import as_size
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.lax import arithmetic, logic
from purax.lax.convolution import padtype_to_pads
from purax.lax.operands import NUMBERS, array, listed, same_dtypes, sizes_of
from purax.primitives.elementwise.arithmetic import max_p, min_p
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add_p, mul_p
from purax.primitives.elementwise.logic import and_p, or_p, xor_p
from purax.primitives.reductions.reduction import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from purax.primitives.reductions.window_reduction import (
    Window,
    dilated,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
)
from purax.primitives.shape.broadcasting import broadcast_in_dim, check_axes, reduce_sum_p
from purax.primitives.sharding_constraint import free
from purax.sharding.constraints import reshard
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.tree_util import tree_map
from purax.xla.array import DeviceArray

_REDUCTIONS: dict[Primitive, Primitive] = {
    add_p: reduce_sum_p,
    mul_p: reduce_prod_p,
    max_p: reduce_max_p,
    min_p: reduce_min_p,
    and_p: reduce_and_p,
    or_p: reduce_or_p,
    xor_p: reduce_xor_p,
}
_KNOWN: dict[Any, Primitive] = {
    arithmetic.add: add_p,
    arithmetic.mul: mul_p,
    arithmetic.max: max_p,
    arithmetic.min: min_p,
    logic.bitwise_and: and_p,
    logic.bitwise_or: or_p,
    logic.bitwise_xor: xor_p,
}
_WINDOWS = {add_p: reduce_window_sum_p, max_p: reduce_window_max_p, min_p: reduce_window_min_p}


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Combines all elements along some axes.

    Args:
        operands: an array, or a tree of arrays of one shape, whose elements are combined together.
        init_values: scalars to start with, in the same structure; they should change nothing.
        computation: of two elements (scalars, or trees of them); it should be associative.
        dimensions: the axes.

    Returns:
        The combined elements, in the same structure.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce(jnp.arange(1, 5), 1, lambda a, b: a * b, (0,))
    Array(24, dtype=int32)
    """
    if out_sharding is not None:
        leaves = tree_map(free, operands)
        return reshard(reduce(leaves, init_values, computation, dimensions), out_sharding)
    arrays, initial, tree = _elements("reduce", operands, init_values, computation)
    axes = sizes_of(dimensions, "dimensions")
    check_axes("lax.reduce", arrays[0].aval, axes)
    operation, closed = _operation("lax.reduce", computation, arrays, tree)
    if operation in _REDUCTIONS:
        (x,), (start,), primitive = arrays, initial, _REDUCTIONS[operation]
        result = primitive.bind(x, axes=axes)
        if not _is(start, _identity(primitive, x.aval.dtype)):
            result = operation.bind(start, result)
        results = [result]
    elif closed.consts or not is_straight(closed):
        shape = reduce_p.out_shape(arrays[0].aval.shape, dimensions=axes)
        results = reduce_p.fold(
            _combine(closed), arrays, [broadcast_in_dim(x, shape, ()) for x in initial], dimensions=axes
        )
    else:
        results = reduce_p.bind(*arrays, *initial, jaxpr=closed, dimensions=axes)
    return tree_unflatten(tree, results)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combines the elements of windows.

    Args:
        operand: an array, or a tree of arrays of one shape, whose elements are combined together.
        init_value: scalars to start with, in the same structure; the frame is filled with them.
        computation: of two elements (scalars, or trees of them); it should be associative.
        window_dimensions: the size of the window along each axis.
        window_strides: by how much it moves; 1 unless given.
        padding: "VALID" (none), "SAME", "SAME_LOWER", or (before, after) for each axis.
        base_dilation: the distance of the elements of the operand from each other; 1 unless given.
        window_dilation: the distance of the elements of the window from each other; 1 unless given.

    Returns:
        For each place of the window the combined elements, in the same structure.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce_window(jnp.arange(5), 1, lax.mul, (2,))
    Array([ 0,  2,  6, 12], dtype=int32)
    """
    arrays, initial, tree = _elements("reduce_window", operand, init_value, computation)
    shape = arrays[0].aval.shape
    window = _window(shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    params = window._asdict()
    operation, closed = _operation("lax.reduce_window", computation, arrays, tree, _WINDOWS)
    if operation in _WINDOWS:
        (x,), (start,), primitive = arrays, initial, _WINDOWS[operation]
        is_identity = _is(start, primitive.identity(x.aval.dtype))
        # An extremum does not mind how often it meets the initial value.
        if dtypes.kind(x.aval.dtype) in primitive.accepts and (is_identity or operation is not add_p):
            result = primitive.bind(x, **params)
            return tree_unflatten(tree, [result if is_identity else operation.bind(start, result)])
    if closed is None:
        closed = stage_computation(computation, [x.aval for x in arrays], tree, "lax.reduce_window")
    if closed.consts or not is_straight(closed):
        reduce_window_p.infer(*[x.aval for x in arrays], jaxpr=closed, **params)
        starts = [broadcast_in_dim(x, window.shape(shape), ()) for x in initial]
        results = reduce_window_p.fold(_combine(closed), arrays, starts, **params)
    else:
        results = reduce_window_p.bind(*arrays, *initial, jaxpr=closed, **params)
    return tree_unflatten(tree, results)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of the result of `reduce_window` on an array of a shape.

    >>> from purax import lax
    >>> lax.reduce_window_shape_tuple((5, 5), (2, 2), (1, 2), [(0, 0), (1, 1)])
    (4, 3)
    """
    shape = sizes_of(operand_shape)
    return _window(shape, window_dimensions, window_strides, padding, base_dilation, window_dilation).shape(
        shape
    )


def _window(shape, dimensions, strides, padding, base_dilation, window_dilation) -> Window:
    ones = (1,) * len(shape)
    sizes = sizes_of(dimensions, "window_dimensions")
    strides, base_dilation, window_dilation = (
        ones if given is None else sizes_of(given, name)
        for given, name in (
            (strides, "window_strides"),
            (base_dilation, "base_dilation"),
            (window_dilation, "window_dilation"),
        )
    )
    if isinstance(padding, str):
        if len(sizes) == len(shape):
            spread = [dilated(n, d) for n, d in zip(shape, base_dilation, strict=True)]
            extents = [dilated(n, d) for n, d in zip(sizes, window_dilation, strict=True)]
            padding = padtype_to_pads(spread, extents, strides, padding.upper())
        else:
            padding = ((0, 0),) * len(shape)
    return Window(
        sizes, strides, tuple((as_size(low), as_size(high)) for low, high in padding), base_dilation, window_dilation
    )


def _elements(
    name: str, operands: Any, init_values: Any, computation: Callable
) -> tuple[list[Any], list[Any], Any]:
    """The leaves of operands and of initial values, which have one structure, shapes and dtypes that agree."""
    leaves, tree = tree_flatten(operands)
    starts, init_tree = tree_flatten(init_values)
    if tree != init_tree or not leaves:
        raise located(
            ValueError,
            f"lax.{name} needs at least one array, and an initial value for each in the same structure; got "
            f"operands {tree} and initial values {init_tree}",
        )
    arrays = [array(name, x, i) for i, x in enumerate(leaves)]
    avals = [x.aval for x in arrays]
    if any(aval.shape != avals[0].shape for aval in avals):
        raise located(TypeError, f"lax.{name} needs arrays of one shape, got {listed(avals)}")
    initial: list[Any] = []
    for x, given in zip(arrays, starts, strict=True):
        start = _whole(name, given, x.aval.dtype, computation)
        if type(start) in NUMBERS:
            initial.append(np.asarray(start, x.aval.dtype))
            continue
        value = array(name, start, 1)
        if value.aval.shape:
            raise located(
                ValueError, f"lax.{name} needs scalars as initial values, got {value.aval.str_short()}"
            )
        if value.aval.weak_type:
            value = convert_element_type(value, x.aval.dtype)
        same_dtypes(name, [x.aval, value.aval])
        initial.append(value)
    return arrays, initial, tree


_SMALLEST_AND_LARGEST = {arithmetic.max: -np.inf, arithmetic.min: np.inf}


def _whole(name: str, start: Any, dtype: Any, computation: Callable) -> Any:
    """An initial value for elements of `dtype`: integers start from integers, or an extremum from the last of them."""
    is_number = type(start) in NUMBERS or (isinstance(start, DeviceArray) and start.aval.weak_type)
    if not is_number or dtypes.is_inexact(dtype) or not dtypes.is_inexact(aval_of(start).dtype):
        return start
    if np.ndim(start) == 0 and _SMALLEST_AND_LARGEST.get(computation) == start:
        return np.asarray(_REDUCTIONS[_KNOWN[computation]].identity(dtype), dtype)
    raise located(
        TypeError,
        f"lax.{name} of {dtypes.dtype_name(dtype)} elements needs an initial value of that dtype, got {start}",
    )


def _operation(
    what: str, computation: Callable, arrays: Sequence[Any], tree: Any, among: Any = _REDUCTIONS
) -> tuple[Primitive | None, Any]:
    """The primitive that a computation consists of, or None, and its program, not made for lax.add and the like."""
    known = _KNOWN.get(computation) if len(arrays) == 1 else None
    if known in among:
        return known, None
    closed = stage_computation(computation, [x.aval for x in arrays], tree, what)
    return operation_of(closed), closed


def _combine(closed: Any) -> Callable:
    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        return on_arrays(closed, [*a, *b])

    return combine


def _identity(primitive: Any, dtype: Any) -> Any:
    return 0 if primitive is reduce_sum_p else primitive.identity(dtype)


def _is(start: Any, identity: Any) -> bool:
    """Whether an initial value is known and equal to `identity`."""
    return isinstance(start, (DeviceArray, np.ndarray)) and bool(
        np.asarray(start) == np.asarray(identity, aval_of(start).dtype)
    )
