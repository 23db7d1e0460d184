"""Arrays as functions of coordinates, as `jax.scipy.ndimage`: `map_coordinates`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import strong_array
from purax.primitives.elementwise.conversion import convert_element_type
from purax.typing import ArrayLike


def _mirrored(index: Array, size: int) -> Array:
    """Turned round at the centres of the first and the last element."""
    last = size - 1
    place = abs(jnp.mod(index + last, max(2 * last, 1)) - last)
    return place if last else jnp.zeros_like(index)


def _reflected(index: Array, size: int) -> Array:
    """Turned round at the outer edges of the first and the last element, which therefore come twice."""
    place = jnp.mod(index, 2 * size)
    return jnp.where(place < size, place, 2 * size - 1 - place)


_MODES: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda index, size: jnp.clip(index, 0, size - 1),
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: jnp.mod(index, size),
    "mirror": _mirrored,
    "reflect": _reflected,
}


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """The elements of an array at coordinates that may lie between them.

    Args:
        input: the array.
        coordinates: an array of coordinates for each axis of the input; they are broadcast against each other.
        order: 0 for the nearest element, 1 for linear interpolation.
        mode: what lies beyond the array: "constant" for `cval`, "nearest" for the nearest element, "wrap" for the other
            side, "mirror" and "reflect" for a mirror image, without and with the element at the edge once more. They
            are what SciPy documents; its own "constant" and "wrap" are "grid-constant" and "grid-wrap".
        cval: a number.

    Returns:
        An array of the shape of the coordinates with the dtype of the input; integers are rounded, and True is what is
        not 0.

    >>> import purax as px, purax.numpy as jnp
    >>> x = jnp.arange(12.0).reshape(3, 4)
    >>> px.scipy.ndimage.map_coordinates(x, [jnp.array([0.5, 1.5]), jnp.array([1.5, 2.5])], order=1)
    Array([3.5, 8.5], dtype=float32)
    """
    x = strong_array(input, "map_coordinates")
    if len(coordinates) != x.ndim:
        raise located(
            ValueError,
            f"map_coordinates: coordinates must have one array for each of the {x.ndim} axes of the input, got "
            f"{len(coordinates)}",
        )
    if mode not in _MODES:
        raise located(
            NotImplementedError,
            f"map_coordinates: mode must be one of {', '.join(map(repr, _MODES))}, got {shown(mode)}",
        )
    if operator.index(order) not in (0, 1):
        raise located(
            NotImplementedError, f"map_coordinates: order must be 0 or 1, got {order}; splines are not there"
        )
    if 0 in x.shape and mode != "constant":
        raise located(ValueError, f"map_coordinates: an input of shape {x.shape} has no elements to take")
    fill = convert_element_type(jnp.asarray(cval), x.dtype)
    places = [strong_array(c, "map_coordinates", 1) for c in finite(coordinates)]
    choices = [_nearest(c) if order == 0 else _neighbours(c) for c in places]
    total: Any = None
    for corner in itertools.product(*choices):
        indices, weights = zip(*corner, strict=True) if corner else ((), ())
        value = _elements(x, indices, mode, fill)
        for weight in weights:
            value = value if weight is None else value * weight
        total = value if total is None else total + value
    if total.dtype == x.dtype:
        return total
    if dtypes.is_integer(x.dtype):
        total = jnp.sign(total) * jnp.floor(abs(total) + 0.5)
    return convert_element_type(total, x.dtype)


def _elements(x: Array, indices: Sequence[Array], mode: str, fill: Array) -> Array:
    if 0 in x.shape:
        return jnp.broadcast_to(fill, jnp.broadcast_shapes(*[i.shape for i in indices]))
    inside = [_MODES[mode](index, size) for index, size in zip(indices, x.shape, strict=True)]
    value = x[tuple(inside)] if inside else x
    if mode == "constant":
        for index, size in zip(indices, x.shape, strict=True):
            value = jnp.where((index >= 0) & (index < size), value, fill)
    return value


def _nearest(coordinate: Array) -> list[tuple[Array, Any]]:
    if dtypes.is_integer(coordinate.dtype):
        return [(coordinate, None)]
    rounded = jnp.sign(coordinate) * jnp.floor(abs(coordinate) + 0.5)
    return [(convert_element_type(rounded, jnp.int32), None)]


def _neighbours(coordinate: Array) -> list[tuple[Array, Any]]:
    """The indices of the elements on both sides, with their weights."""
    if dtypes.is_integer(coordinate.dtype):
        return [(coordinate, None)]
    lower = jnp.floor(coordinate)
    share = coordinate - lower
    index = convert_element_type(lower, jnp.int32)
    return [(index, 1 - share), (index + 1, share)]
