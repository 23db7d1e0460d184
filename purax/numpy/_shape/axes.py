"""Axes as users write them, `axis=-1` or `axis=(0, 2)`, and as operations want them: numbers from 0, each once."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from purax.core.array import Array
from purax.core.avals import MAX_AXES
from purax.core.dimensions import as_size
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import AxisError, shown
from purax.primitives.shape.reshaping import reshape

ALL_AXES = tuple([tuple(range(ndim)) for ndim in range(65)])
"""All axes of an array, by its number of axes."""


def integer(name: str, argument: str, value: Any) -> int:
    """An argument that must be an integer.

    >>> integer("eye", "k", True)
    1
    """
    try:
        return as_size(value)
    except TypeError:
        kind = value.aval.str_short() if isinstance(value, Array) else type(value).__name__
        raise located(
            TypeError, f"{name}: {argument} must be an integer, got {shown(value):.60} of type {kind}"
        ) from None


def items(name: str, argument: str, value: Any, what: str = "a sequence of integers") -> tuple[Any, ...]:
    """An argument that must be a sequence.

    >>> items("transpose", "axes", [1, 0])
    (1, 0)
    """
    try:
        return tuple(finite(value))
    except TypeError:
        raise located(
            TypeError,
            f"{name}: {argument} must be {what}, got {shown(value):.60} of type {type(value).__name__}",
        ) from None


def function(name: str, argument: str, value: Any) -> Any:
    """An argument that must be a function."""
    if callable(value):
        return value
    raise located(
        TypeError,
        f"{name}: {argument} must be a function, got {shown(value):.60} of type {type(value).__name__}",
    )


def canonical_axis(name: str, axis: Any, ndim: int, argument: str = "axis") -> int:
    """One axis of an array with `ndim` axes, counted from the front.

    >>> canonical_axis("sort", -1, 3)
    2
    """
    try:
        index = operator.index(axis)
    except TypeError:
        raise located(
            TypeError,
            f"{name}: {argument} must be an integer, got {shown(axis)} of type {type(axis).__name__}",
        ) from None
    if -ndim <= index < ndim:
        return index + ndim if index < 0 else index
    allowed = f"it has {ndim} axes, {-ndim} to {ndim - 1}" if ndim else "it is a scalar and has no axes"
    raise located(
        AxisError, f"{name}: {argument} {index} is out of bounds for the array of dimension {ndim}: {allowed}"
    )


def canonical_axes(name: str, axis: Any, ndim: int, argument: str = "axis") -> tuple[int, ...]:
    """Several axes, or one, or None for all of them, counted from the front.

    >>> canonical_axes("sum", (0, -1), 3), canonical_axes("sum", None, 2), canonical_axes("sum", 1, 2)
    ((0, 2), (0, 1), (1,))
    """
    if axis is None:
        return ALL_AXES[ndim] if ndim < 65 else tuple(range(ndim))
    if axis.__class__ is int and -ndim <= axis < ndim:
        return (axis + ndim,) if axis < 0 else (axis,)
    if not isinstance(axis, Sequence) or isinstance(axis, str):
        try:
            return (canonical_axis(name, axis, ndim, argument),)
        except TypeError:
            if not hasattr(axis, "__iter__") or isinstance(axis, str):
                raise
    axis = finite(axis, MAX_AXES)
    axes = tuple([canonical_axis(name, one, ndim, argument) for one in axis])
    if len(set(axes)) != len(axes):
        raise located(
            ValueError, f"{name}: duplicate value in {argument}={tuple(axis)}: each axis may be named once"
        )
    return axes


def with_kept_axes(result: Any, shape: tuple[int, ...], axes: Sequence[int]) -> Any:
    """A result of a reduction of an array of `shape` over `axes`, with these as axes of size 1 (`keepdims=True`)."""
    return reshape(result, tuple([1 if axis in axes else n for axis, n in enumerate(shape)]))
