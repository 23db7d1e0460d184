"""Reading and writing small concrete arrays with an index: NumPy does it in one call, and knows all rules of indexing.

Each function returns None where NumPy's way is not the one to take (a traced or large operand, an index of an unusual
kind, an error); the general way in `purax.numpy._indexing.indexing` and `purax.numpy._indexing.update` then does it,
or says why not.
"""

from __future__ import annotations

from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from purax.config import config
from purax.core.avals import ShapedArray
from purax.execution.eager import streaming_limit
from purax.numpy._promotion import quiet
from purax.xla.aligned_memory import aligned_empty
from purax.xla.array import DeviceArray

_PLAIN = frozenset((int, NoneType, EllipsisType))
_BOUNDS = frozenset((int, NoneType))
_INTP = np.dtype(np.intp)
_POSITIONS = frozenset(
    np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
)
_BOOL = np.dtype(np.bool_)


def host_of(x: Any) -> np.ndarray | None:
    """The value of a concrete array if NumPy can see it at no cost."""
    if x.__class__ is not DeviceArray or x._placement is not None:
        return None
    host = x._host
    if host is None:
        host = x.peek()
    return host


def positions(x: Any) -> np.ndarray | None:
    """An array of positions, or a mask, as NumPy likes it."""
    if x.__class__ is DeviceArray:
        if x._placement is not None:
            return None
        x = x._host if x._host is not None else x.peek()
        if x is None:
            return None
    dtype = x.dtype
    if dtype not in _POSITIONS and dtype is not _BOOL or x.size > config.host_size_limit:
        return None
    return x if dtype is _BOOL or dtype is _INTP else x.astype(_INTP)


def has_plain_bounds(part: slice) -> bool:
    return (
        part.start.__class__ in _BOUNDS and part.stop.__class__ in _BOUNDS and part.step.__class__ in _BOUNDS
    )


def numpy_index(index: Any) -> tuple[tuple | None, bool]:
    """An index as a tuple for NumPy that selects an array and no scalar, and whether it selects a view."""
    cls = index.__class__
    if cls is int:
        return (index, ...), True
    if cls is slice:
        return ((index, ...) if has_plain_bounds(index) else None), True
    if cls is not tuple:
        index = (index,)
    parts: list[Any] = []
    is_view = True
    needs_ellipsis = True
    for part in index:
        cls = part.__class__
        if cls in _PLAIN:
            if part is ...:
                needs_ellipsis = False
        elif cls is slice:
            if not has_plain_bounds(part):
                return None, True
        elif cls is DeviceArray or cls is np.ndarray:
            part = positions(part)
            if part is None:
                return None, True
            is_view = is_view and not part.ndim and part.dtype is _INTP
            if is_view:
                part = int(part)
        elif cls is bool or cls is np.bool_:
            is_view = False
        elif isinstance(part, np.integer):
            part = int(part)
        else:
            return None, True
        parts.append(part)
    if needs_ellipsis:
        parts.append(...)
    return tuple(parts), is_view


def read(x: DeviceArray, host: np.ndarray, index: Any) -> DeviceArray | None:
    """x[index]"""
    aval = x.aval
    if host.ndim != aval.ndim:  # random keys, with an axis for their words
        return None
    where, is_view = numpy_index(index)
    if where is None or not is_view and host.size > config.host_size_limit:
        return None
    try:
        value = host[where]
    except (IndexError, ValueError, TypeError):
        return None
    if is_view and host.size > config.host_size_limit >= value.size:
        value = value.copy()  # a view would keep all of a large array alive
    return DeviceArray(ShapedArray(value.shape, aval.dtype, aval.weak_type), value)


def write(
    x: DeviceArray,
    host: np.ndarray,
    index: Any,
    value: np.ndarray,
    combine: Any,
    repeats: bool = True,
) -> DeviceArray | None:
    """x.at[index].set(value), or x with the elements there combined with the value by a ufunc: one after the other
    where positions repeat, if the operation does that (`repeats`).
    """
    where, is_view = numpy_index(index)
    if where is None or not (is_view or repeats):
        return None
    if host.size <= config.host_size_limit:
        out = host.copy()
    elif combine is None and is_view and host.size <= streaming_limit():
        out = aligned_empty(host.shape, host.dtype)
        np.copyto(out, host)
    else:
        return None
    try:
        part = out[where]
        if value.ndim > part.ndim:
            return None
        if is_view:
            if combine is None:
                part[...] = value
            else:
                quiet.run(combine, part, value, out=part)
        elif combine is None:
            out[where] = value
        else:
            quiet.run(combine.at, out, where, value)
    except (IndexError, ValueError, TypeError):
        return None
    return DeviceArray(x.aval, out)
