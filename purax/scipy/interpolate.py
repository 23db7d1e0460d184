"""Functions through given values, as `jax.scipy.interpolate`: `RegularGridInterpolator`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import concrete_value, strong_array
from purax.primitives.elementwise.conversion import convert_element_type
from purax.typing import ArrayLike

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """A function that has given values at the points of a grid.

    Args:
        points: for each axis the coordinates of the grid, increasing or decreasing.
        values: the values at the points; further axes are those of the results.
        method: "linear" for the multilinear function between points, "nearest" for the value of the nearest point.
        bounds_error: whether places outside of the grid are an error, which only places that are known can be.
        fill_value: the result outside of the grid; None goes on with what is inside.

    >>> import purax as px, purax.numpy as jnp
    >>> f = px.scipy.interpolate.RegularGridInterpolator((jnp.arange(3.0),), jnp.array([0.0, 10.0, 40.0]))
    >>> f(jnp.array([0.5, 1.5, 9.0]))
    Array([ 5., 25., nan], dtype=float32)
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ):
        _check_method(method)
        self.method = method
        self.bounds_error = bounds_error
        values = strong_array(values, "RegularGridInterpolator", 1)
        self.values = convert_element_type(values, dtypes.to_inexact_dtype(values.dtype))
        if len(points) > self.values.ndim:
            raise located(
                ValueError,
                f"RegularGridInterpolator: points has {len(points)} axes, but values has the shape "
                f"{self.values.shape}",
            )
        grid = []
        for axis, given in enumerate(points):
            line = strong_array(given, "RegularGridInterpolator")
            line = convert_element_type(line, dtypes.to_inexact_dtype(line.dtype))
            if line.ndim != 1 or line.shape[0] != self.values.shape[axis] or line.shape[0] < 1:
                raise located(
                    ValueError,
                    f"RegularGridInterpolator: points[{axis}] must be a vector with {self.values.shape[axis]} "
                    f"elements, for values of shape {self.values.shape}; got shape {line.shape}",
                )
            known = concrete_value(line)
            if known is not None and known.size > 1:
                steps = np.diff(known.astype(np.float64))
                if np.all(steps < 0):
                    line, self.values = line[::-1], jnp.flip(self.values, axis)
                elif not np.all(steps > 0):
                    raise located(
                        ValueError,
                        f"RegularGridInterpolator: points[{axis}] must be strictly increasing or decreasing, got "
                        f"{known}",
                    )
            grid.append(line)
        self.grid = tuple(grid)
        self.fill_value = fill_value if fill_value is None else jnp.asarray(fill_value)

    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Array:
        """The values at places.

        Args:
            xi: an array with the coordinates of a place on its last axis, or a tuple of an array for each coordinate.
            method: as that of the constructor, which it overrides.

        Returns:
            An array with the axes of the places, but for the last, and then those of a value.
        """
        method = self.method if method is None else method
        _check_method(method)
        places, shape = self._places(xi)
        if self.bounds_error:
            self._check_bounds(places)
        beyond: Any = False
        sides = []
        for line, x in zip(self.grid, places, strict=True):
            beyond = beyond | (x < line[0]) | (x > line[-1])
            sides.append(_sides(line, x, method))
        trailing = (1,) * (self.values.ndim - len(self.grid))
        total: Any = 0
        for corner in itertools.product(*sides):
            indices, weights = zip(*corner, strict=True) if corner else ((), ())
            value = self.values[tuple(indices)]
            for weight in weights:
                value = value if weight is None else value * weight.reshape(*weight.shape, *trailing)
            total = total + value
        if self.fill_value is not None and self.grid:
            total = jnp.where(beyond.reshape(-1, *trailing), self.fill_value, total)
        missing = sum([x * 0 for x in places]) if places else 0  # NaN where a coordinate is NaN
        total = jnp.where(jnp.isnan(missing).reshape(-1, *trailing), jnp.nan, total)
        total = convert_element_type(total, self.values.dtype)
        return total.reshape((*shape, *self.values.shape[len(self.grid) :]))

    def _places(self, xi: Any) -> tuple[list[Array], tuple[int, ...]]:
        """A vector for each coordinate, and the shape of the places."""
        count = len(self.grid)
        if isinstance(xi, (tuple, list)) and not np.isscalar(xi[0] if xi else 0):
            parts = [*jnp.broadcast_arrays(*[strong_array(x, "RegularGridInterpolator()") for x in xi])]
            shape = parts[0].shape if parts else ()
        else:
            array = jnp.asarray(xi)
            if count == 1 and (array.ndim < 2 or array.shape[-1] != 1):
                array = array[..., None]
            if not array.ndim or array.shape[-1] != count:
                raise located(
                    ValueError,
                    f"RegularGridInterpolator: the grid has {count} axes, but places of shape {array.shape} have "
                    f"{array.shape[-1] if array.ndim else 0} coordinates",
                )
            parts, shape = [array[..., i] for i in range(count)], array.shape[:-1]
        if len(parts) != count:
            raise located(
                ValueError,
                f"RegularGridInterpolator: the grid has {count} axes, but xi has {len(parts)} coordinates",
            )
        return [
            convert_element_type(part, dtypes.promote_types(part.dtype, line.dtype)).reshape(-1)
            for part, line in zip(parts, self.grid, strict=True)
        ], shape

    def _check_bounds(self, places: Sequence[Array]) -> None:
        for axis, (line, x) in enumerate(zip(self.grid, places, strict=True)):
            ends, known = concrete_value(line), concrete_value(x)
            if ends is None or known is None:
                raise located(
                    NotImplementedError,
                    "RegularGridInterpolator: bounds_error=True needs places that are known; under `jit` use "
                    "fill_value, and look for it in the result",
                )
            if np.any((known < ends[0]) | (known > ends[-1])):
                raise located(
                    ValueError,
                    f"RegularGridInterpolator: some places are outside of [{ends[0]}, {ends[-1]}] along axis {axis}",
                )


def _check_method(method: str) -> None:
    if method not in _METHODS:
        raise located(
            ValueError, f"RegularGridInterpolator: method must be 'linear' or 'nearest', got {shown(method)}"
        )


def _sides(line: Array, x: Array, method: str) -> list[tuple[Array, Any]]:
    """The grid points on both sides of x, or the nearest one, with their weights."""
    size = line.shape[0]
    if size == 1:
        return [(jnp.zeros(x.shape, jnp.int32), None)]
    lower = jnp.clip(jnp.searchsorted(line, x) - 1, 0, size - 2)
    start = line[lower]
    share = (x - start) / (line[lower + 1] - start)
    if method == "nearest":
        return [(jnp.where(share <= 0.5, lower, lower + 1), None)]
    return [(lower, 1 - share), (lower + 1, share)]
