"""Coordinates of grids, and objects that make arrays or indices when they are indexed: `mgrid`, `r_`, `s_`, …"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.api.vmap import vmap
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.numpy._creation.creation import array, asarray
from purax.numpy._creation.filled_arrays import shape_argument
from purax.numpy._creation.ranges import arange, linspace
from purax.numpy._promotion import as_array, common_dtype, convert
from purax.numpy._shape.joining import concatenate, stack
from purax.numpy._shape.shaping import atleast_1d, expand_dims, moveaxis, reshape
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.primitives.shape.reshaping import iota
from purax.typing import ArrayLike, DTypeLike

index_exp = np.index_exp
s_ = np.s_


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """The coordinates of a grid, from those along each axis.

    Args:
        xi: arrays with one axis.
        copy: only True.
        sparse: whether the axes that an array does not depend on have size 1.
        indexing: "xy": the first array runs along the second axis; "ij": along the first.

    Returns:
        A tuple of as many arrays.

    >>> import purax.numpy as jnp
    >>> jnp.meshgrid(jnp.array([1, 2]), jnp.array([3, 4]))[0]
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if not copy:
        raise located(ValueError, "meshgrid: copy=False is not supported, arrays do not share memory")
    if indexing not in ("xy", "ij"):
        raise located(ValueError, f"meshgrid: indexing must be 'xy' or 'ij', got {shown(indexing)}")
    arrays = [as_array(x, "meshgrid", i) for i, x in enumerate(xi)]
    if any(x.aval.ndim > 1 for x in arrays):
        shapes = ", ".join(str(x.aval.shape) for x in arrays)
        raise located(ValueError, f"meshgrid: the arrays must have one axis, got shapes {shapes}")
    ndim = len(arrays)
    axes = list(range(ndim))
    if indexing == "xy" and ndim >= 2:
        axes[0], axes[1] = 1, 0
    sizes = [0] * ndim
    for x, axis in zip(arrays, axes, strict=True):
        sizes[axis] = x.aval.size
    results = []
    for x, axis in zip(arrays, axes, strict=True):
        x = reshape(x, (x.aval.size,))
        shape = [n if i == axis or not sparse else 1 for i, n in enumerate(sizes)]
        results.append(broadcast_in_dim(x, shape, (axis,)))
    return tuple(results)


def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The indices of a grid.

    Args:
        dimensions: its shape.
        dtype: of the indices, by default integer.
        sparse: whether to return one array per axis, of size 1 along the others.

    Returns:
        An array of shape (number of axes, *dimensions), or a tuple.

    >>> import purax.numpy as jnp
    >>> jnp.indices((2, 2))[1]
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    shape = shape_argument(dimensions, "indices")
    wanted = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    ndim = len(shape)
    if sparse:
        lines = [
            reshape(arange(n, dtype=wanted), [n if i == axis else 1 for i in range(ndim)])
            for axis, n in enumerate(shape)
        ]
        return tuple(lines)
    if not ndim:
        return asarray(np.zeros((0,)), dtype=wanted)
    return stack([iota(wanted, shape, axis) for axis in range(ndim)])


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any) -> Any:
    """The values of a function at the indices of a grid.

    Args:
        function: takes one scalar index per axis; it is vectorized.
        shape: of the grid.
        dtype: of the indices.
        kwargs: handed to the function.

    Returns:
        An array whose first axes are those of the grid.

    >>> import purax.numpy as jnp
    >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    """
    sizes = finite(shape_argument(shape, "fromfunction"), 64)

    def call(*index):
        return function(*index, **kwargs)

    for i in range(len(sizes)):
        in_axes: list[int | None] = [None] * len(sizes)
        in_axes[len(sizes) - 1 - i] = 0
        call = vmap(call, in_axes=tuple(in_axes))
    return call(*[arange(n, dtype=dtype) for n in sizes])


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Indices of the elements at the crossings of the given rows, columns, …

    Args:
        args: arrays of integers with one axis.

    Returns:
        As many arrays, each along another axis.

    >>> import purax.numpy as jnp
    >>> [index.shape for index in jnp.ix_(jnp.array([0, 1]), jnp.array([2, 3, 4]))]
    [(2, 1), (1, 3)]
    """
    results = []
    for position, x in enumerate(args):
        x = as_array(x, "ix_", position)
        if x.aval.ndim != 1:
            raise located(ValueError, f"ix_: arguments must have one axis, got shape {x.aval.shape}")
        if x.aval.dtype == np.bool_:
            x = asarray(np.flatnonzero(np.asarray(x)))
        elif not x.aval.size:
            x = convert(x, dtypes.default_int())
        results.append(reshape(x, [x.aval.size if i == position else 1 for i in range(len(args))]))
    return tuple(results)


_MAX_POWERS = 1 << 20


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix whose columns are powers of `x`.

    Args:
        x: an array with one axis.
        N: the number of columns, by default the length of `x`.
        increasing: whether the powers grow from left to right.

    Returns:
        An array of shape (len(x), N).

    >>> import purax.numpy as jnp
    >>> jnp.vander(jnp.array([1, 2, 3]), 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = as_array(x, "vander")
    if x.aval.ndim != 1:
        raise located(ValueError, f"vander: the array must have one axis, got shape {x.aval.shape}")
    count = x.aval.shape[0] if N is None else as_size(N)
    if not 0 <= count <= _MAX_POWERS:
        raise located(ValueError, f"vander: N must be non-negative and up to {_MAX_POWERS}, got {count}")
    if not count:
        return (
            reshape(x[:0] if x.aval.size else x, (x.aval.size, 0))
            if not x.aval.size
            else asarray(np.zeros((x.aval.size, 0)), dtype=x.aval.dtype)
        )
    exponents = range(count) if increasing else range(count - 1, -1, -1)
    return stack([x**n for n in exponents], axis=1)


# --- grids by slices


def _axis(part: slice) -> Array:
    """The numbers of a slice; a complex step 5j means five numbers, the end included."""
    start, stop, step = part.start or 0, part.stop, 1 if part.step is None else part.step
    if isinstance(step, complex) or dtypes.is_complex(getattr(step, "dtype", None)):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    def __init__(self, name: str, sparse: bool):
        self._name, self._sparse = name, sparse

    def _lines(self, key: Any) -> list[Array]:
        lines = [_axis(part) for part in (key if isinstance(key, tuple) else (key,))]
        dtype, _ = common_dtype(lines)
        return [convert(line, dtype) for line in lines]

    def __repr__(self) -> str:
        return f"<purax.numpy.{self._name}>"


class MeshGrid(_Grid):
    """`jnp.mgrid[0:2, 0:3]`: the coordinates of a grid, from slices.

    >>> import purax.numpy as jnp
    >>> jnp.mgrid[0:2, 0:2][0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, slice):
            return _axis(key)
        lines = self._lines(key)
        return stack(meshgrid(*lines, indexing="ij"), 0) if lines else asarray(np.zeros(0))


class OpenGrid(_Grid):
    """`jnp.ogrid[0:2, 0:3]`: as `mgrid`, with axes of size 1 where nothing changes.

    >>> import purax.numpy as jnp
    >>> [line.shape for line in jnp.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """

    def __getitem__(self, key: Any) -> Array | list[Array]:
        if isinstance(key, slice):
            return _axis(key)
        return [*meshgrid(*self._lines(key), indexing="ij", sparse=True)]


class Joiner:
    """`jnp.r_[1:4, 0, 5]` joins along the first axis, `jnp.c_[x, y]` along the second.

    >>> import purax.numpy as jnp
    >>> jnp.r_[0:3, 7, jnp.array([8, 9])]
    Array([0, 1, 2, 7, 8, 9], dtype=int32)
    """

    def __init__(self, name: str, axis: int, ndmin: int, position: int):
        self._name, self._default = name, (axis, ndmin, position)

    def __getitem__(self, key: Any) -> Array:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, position = self._default
        as_matrix = None
        if parts and isinstance(parts[0], str):
            directive = parts.pop(0)
            if directive in ("r", "c"):
                as_matrix, ndmin = directive, 2
            else:
                axis, ndmin, position = self._parse(directive, ndmin, position)
        arrays = [self._place(part, ndmin, position) for part in parts]
        if as_matrix == "c" and all(np.ndim(part) <= 1 and not isinstance(part, slice) for part in parts):
            return moveaxis(concatenate(arrays, -1), 0, 1)
        if as_matrix:
            axis = -1
        return concatenate(arrays, axis)

    def _parse(self, directive: str, ndmin: int, position: int) -> tuple[int, int, int]:
        try:
            numbers = [int(n) for n in directive.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise located(
                ValueError,
                f"{self._name}: {shown(directive)} is no directive: 'axis', 'axis,ndmin', 'axis,ndmin,place', "
                "'r', 'c'",
            )
        return tuple(numbers + [ndmin, position][len(numbers) - 1 :])  # type: ignore[return-value]

    def _place(self, part: Any, ndmin: int, position: int) -> Array:
        x = (
            _axis(part)
            if isinstance(part, slice)
            else array(part)
            if isinstance(part, (list, tuple))
            else as_array(part, self._name)
        )
        x = atleast_1d(x)
        missing = ndmin - x.aval.ndim
        if missing <= 0:
            return x
        own = x.aval.ndim
        first = position if position >= 0 else missing + own + position - (own - 1)
        first = min(max(first, 0), missing)
        new = [i for i in range(ndmin) if not first <= i < first + own]
        return expand_dims(x, new)

    def __repr__(self) -> str:
        return f"<purax.numpy.{self._name}>"


mgrid = MeshGrid("mgrid", sparse=False)
ogrid = OpenGrid("ogrid", sparse=True)
r_ = Joiner("r_", 0, 1, -1)
c_ = Joiner("c_", -1, 2, 0)
