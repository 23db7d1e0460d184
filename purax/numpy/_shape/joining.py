"""Joining arrays along axes and splitting them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.limits import finite
from purax.core.source import located
from purax.numpy._array_methods import unstacked
from purax.numpy._promotion import as_array, common_dtype, convert, refuse_out
from purax.numpy._shape.axes import canonical_axis, integer
from purax.numpy._shape.shaping import atleast_1d, atleast_2d, atleast_3d, ravel
from purax.primitives.shape.reshaping import concatenate_p, reshape_p, split_p, squeeze_p, stack_p
from purax.typing import ArrayLike, DTypeLike
from purax.xla.array import DeviceArray


def _arrays(name: str, arrays: Any) -> list[Array]:
    """The arrays of a sequence, or the parts of one array along its first axis."""
    if arrays.__class__ is list or arrays.__class__ is tuple:
        result = [x if x.__class__ is DeviceArray else as_array(x, name, i) for i, x in enumerate(arrays)]
    elif isinstance(arrays, (Array, np.ndarray)):
        whole = as_array(arrays, name)
        if not whole.aval.ndim:
            raise located(TypeError, f"{name}: iteration over a 0-d array; give a sequence of arrays")
        if whole.aval.shape[0] > _MAX_PARTS:
            raise located(
                ValueError,
                f"{name}: an array of shape {whole.aval.shape} stands for more than {_MAX_PARTS} arrays, the parts "
                "along its first axis; use reshape or swapaxes",
            )
        result = unstacked(whole)
    elif isinstance(arrays, Sequence) and not isinstance(arrays, (str, bytes)):
        result = [as_array(x, name, i) for i, x in enumerate(finite(arrays, _MAX_PARTS))]
    else:
        raise located(
            TypeError, f"{name} needs a sequence of arrays, such as a list or a tuple, got {type(arrays)}"
        )
    if not result:
        raise located(ValueError, f"{name}: Need at least one array to {name}.")
    return result


_MAX_PARTS = 1 << 20


def _of_one_dtype(arrays: list[Array], dtype: DTypeLike | None) -> list[Array]:
    if dtype is not None:
        wanted = dtypes.as_dtype(dtype)
        return [convert(x, wanted) for x in arrays]
    first = arrays[0].aval.dtype
    for x in arrays:
        if x.aval.dtype is not first:
            break
    else:
        return arrays
    wanted, weak = common_dtype(arrays)
    return [convert(x, wanted, weak) for x in arrays]


def concatenate(arrays: Any, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Arrays one after the other along an axis.

    Args:
        arrays: a sequence of arrays whose shapes differ along `axis` only.
        axis: the axis; None joins the flattened arrays.
        dtype: of the result; by default the arrays' promoted.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3.5])])
    Array([1. , 2. , 3.5], dtype=float32)
    """
    parts = _arrays("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(x) for x in parts], 0
    ndim = parts[0].aval.ndim
    if not ndim:
        raise located(
            ValueError,
            "concatenate: zero-dimensional arrays cannot be concatenated; use jnp.stack or axis=None",
        )
    axis = canonical_axis("concatenate", axis, ndim)
    parts = _of_one_dtype(parts, dtype)
    return concatenate_p.bind(*parts, dimension=axis) if len(parts) > 1 else parts[0]


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Arrays one after the other along an axis; `concatenate` of the array API standard.

    Args:
        arrays: arrays whose shapes differ along the axis only.
        axis: the axis; None joins the flattened arrays.

    >>> import purax.numpy as jnp
    >>> jnp.concat([jnp.array([1]), jnp.array([2])])
    Array([1, 2], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape side by side along a new axis.

    Args:
        arrays: a sequence of arrays.
        axis: where the new axis is in the result.
        out: not supported.
        dtype: of the result; by default the arrays' promoted.

    Returns:
        An array with one axis more.

    >>> import purax.numpy as jnp
    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    refuse_out("stack", out)
    parts = _arrays("stack", arrays)
    shape = parts[0].aval.shape
    for x in parts:
        if x.aval.shape != shape:
            shapes = ", ".join(str(part.aval.shape) for part in parts)
            raise located(ValueError, f"stack: all arrays must have one shape, got {shapes}")
    axis = canonical_axis("stack", axis, len(shape) + 1)
    return stack_p.bind(*_of_one_dtype(parts, dtype), axis=axis)


def _at_least(name: str, expand: Any, arrays: Any) -> list[Array]:
    return [expand(x) for x in _arrays(name, arrays)]


def vstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays below each other, along the first axis; arrays with one axis are rows.

    Args:
        tup: arrays.
        dtype: of the result; the elements are converted first.

    >>> import purax.numpy as jnp
    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return concatenate(_at_least("vstack", atleast_2d, tup), 0, dtype)


def hstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays next to each other, along the second axis, or the only one.

    Args:
        tup: arrays.
        dtype: of the result; the elements are converted first.

    >>> import purax.numpy as jnp
    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    parts = _at_least("hstack", atleast_1d, tup)
    return concatenate(parts, 0 if parts[0].aval.ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays behind each other, along the third axis.

    Args:
        tup: arrays.
        dtype: of the result; the elements are converted first.

    >>> import purax.numpy as jnp
    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return concatenate(_at_least("dstack", atleast_3d, tup), 2, dtype)


def column_stack(tup: Any) -> Array:
    """Arrays as the columns of a matrix.

    Args:
        tup: vectors, or matrices, of one length.

    >>> import purax.numpy as jnp
    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    columns = []
    for x in _arrays("column_stack", tup):
        if x.aval.ndim < 2:
            x = reshape_p.bind(x, new_sizes=(x.aval.size, 1), dimensions=None)
        columns.append(x)
    return concatenate(columns, 1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` with `values` after it along an axis.

    Args:
        arr: an array.
        values: an array with as many axes, or anything if `axis` is None.
        axis: the axis; None joins the flattened arrays.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate([as_array(arr, "append", 0), as_array(values, "append", 1)], axis)


def block(arrays: Any) -> Array:
    """A matrix put together from blocks in nested lists.

    Args:
        arrays: nested lists: the innermost are joined along the last axis, the next along the one before, …

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> one = jnp.ones((1, 1), int)
    >>> jnp.block([[one, 2 * one], [3 * one, 4 * one]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    depths: set[int] = set()
    leaves: list[Array] = []
    _measure_blocks(arrays, 0, depths, leaves)
    if len(depths) != 1:
        raise located(ValueError, f"block: lists must be nested to one depth, got depths {sorted(depths)}")
    (depth,) = depths
    ndim = max(depth, *(x.aval.ndim for x in leaves))
    return _join_blocks(arrays, depth, ndim)


def _measure_blocks(x: Any, depth: int, depths: set[int], leaves: list[Array]) -> None:
    if isinstance(x, tuple):
        raise located(TypeError, "block: only lists nest blocks, got a tuple; write a list")
    if isinstance(x, list):
        if depth > 64:
            raise located(ValueError, "block: lists are nested deeper than 64 levels")
        if not x:
            raise located(ValueError, "block: empty lists are not allowed")
        for element in x:
            _measure_blocks(element, depth + 1, depths, leaves)
    else:
        depths.add(depth)
        leaves.append(as_array(x, "block"))


def _join_blocks(x: Any, depth: int, ndim: int) -> Array:
    if not isinstance(x, list):
        x = as_array(x, "block")
        missing = ndim - x.aval.ndim
        return reshape_p.bind(x, new_sizes=(1,) * missing + x.aval.shape, dimensions=None) if missing else x
    return concatenate([_join_blocks(element, depth - 1, ndim) for element in x], -depth)


# --- splitting


def _boundaries(name: str, size: int, indices_or_sections: Any, equal: bool) -> list[int]:
    """The sizes of the parts."""
    given = indices_or_sections
    if isinstance(given, (list, tuple)) or (isinstance(given, (Array, np.ndarray)) and given.ndim):
        places = [0, *(_inside(integer(name, "indices_or_sections", i), size) for i in given), size]
        return [max(stop - start, 0) for start, stop in zip(places, places[1:], strict=False)]
    sections = integer(name, "indices_or_sections", given)
    if sections <= 0:
        raise located(ValueError, f"{name}: the number of sections must be positive, got {sections}")
    if sections > _MAX_PARTS:
        raise located(
            ValueError, f"{name}: an array is split into up to {_MAX_PARTS} parts, got {sections} sections"
        )
    part, rest = divmod(size, sections)
    if rest and equal:
        raise located(
            ValueError,
            f"{name}: array split does not result in an equal division: {size} elements in {sections} sections",
        )
    return [part + 1] * rest + [part] * (sections - rest)


def _inside(index: int, size: int) -> int:
    return min(max(index + size if index < 0 else index, 0), size)


def _split(name: str, ary: Any, indices_or_sections: Any, axis: Any, equal: bool) -> list[Array]:
    x = as_array(ary, name)
    axis = canonical_axis(name, axis, x.aval.ndim)
    sizes = _boundaries(name, x.aval.shape[axis], indices_or_sections, equal)
    if sum(sizes) == x.aval.shape[axis]:
        return list(split_p.bind(x, sizes=tuple(sizes), axis=axis))
    # Indices that do not increase give overlapping parts, as in NumPy.
    places = [0, *(_inside(as_size(i), x.aval.shape[axis]) for i in indices_or_sections)]
    parts = []
    for start, size in zip(places, sizes, strict=True):
        _, part, _ = split_p.bind(x, sizes=(start, size, x.aval.shape[axis] - start - size), axis=axis)
        parts.append(part)
    return parts


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The parts of an array along an axis.

    Args:
        ary: an array.
        indices_or_sections: how many equal parts, or where to cut.
        axis: the axis.

    Returns:
        A list of arrays.

    >>> import purax.numpy as jnp
    >>> jnp.split(jnp.arange(4), [1, 3])
    [Array([0], dtype=int32), Array([1, 2], dtype=int32), Array([3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, equal=True)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The parts of an array along an axis, of sizes that differ by at most one.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, or the places where they begin.
        axis: the axis.

    >>> import purax.numpy as jnp
    >>> jnp.array_split(jnp.arange(5), 2)
    [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, equal=False)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """The parts of an array along its first axis.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, or the places where they begin.

    >>> import purax.numpy as jnp
    >>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return _split("vsplit", ary, indices_or_sections, 0, equal=True)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """The parts of an array along its second axis, or the only one.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, or the places where they begin.

    >>> import purax.numpy as jnp
    >>> jnp.hsplit(jnp.array([[1, 2], [3, 4]]), 2)[0]
    Array([[1],
           [3]], dtype=int32)
    """
    x = as_array(ary, "hsplit")
    return _split("hsplit", x, indices_or_sections, 0 if x.aval.ndim == 1 else 1, equal=True)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """The parts of an array along its third axis.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, or the places where they begin.

    >>> import purax.numpy as jnp
    >>> jnp.dsplit(jnp.ones((2, 2, 2)), 2)[0].shape
    (2, 2, 1)
    """
    return _split("dsplit", ary, indices_or_sections, 2, equal=True)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis, without that axis.

    Args:
        x: an array or a number.
        axis: the axis.

    >>> import purax.numpy as jnp
    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = as_array(x, "unstack")
    axis = canonical_axis("unstack", axis, x.aval.ndim)
    if axis == 0:
        return tuple(unstacked(x))
    size = x.aval.shape[axis]
    if not size:
        return ()
    parts = split_p.bind(x, sizes=(1,) * size, axis=axis)
    return tuple([squeeze_p.bind(part, dimensions=(axis,)) for part in parts])
