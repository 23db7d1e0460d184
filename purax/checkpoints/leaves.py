"""What stands for the leaves of a tree on disk: parts of arrays as bytes, and numbers and texts as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.random.keys import key_data, key_impl

_PLAIN = (bool, int, float, str)

Bounds = list[tuple[int, int]]


@dataclass
class Part:
    """A part of an array that this process has.

    Attributes:
        bounds: where it begins and ends along each axis.
        value: a copy of its elements.
    """

    bounds: Bounds
    value: np.ndarray


@dataclass
class Leaf:
    """A leaf of a tree, as it was when it was taken.

    Attributes:
        about: what the manifest says of it.
        parts: those that this process writes; none of what is not an array.
    """

    about: dict[str, Any]
    parts: list[Part]


def take(value: Any, path: str, is_first: bool) -> Leaf:
    """Copies a leaf to the host, as far as this process is to write it.

    Arguments:
        value: the leaf.
        path: where it is in the tree.
        is_first: whether this is the process that writes what all have.
    """
    if type(value) in _PLAIN:
        if type(value) is float and not math.isfinite(value):
            return Leaf({"plain": repr(value), "type": "float"}, [])
        return Leaf({"plain": value, "type": type(value).__name__}, [])
    about: dict[str, Any]
    if is_numpy(value):
        about = {"dtype": dtypes.dtype_name(value.dtype), "shape": list(value.shape), "numpy": True}
        return Leaf(about, [Part([(0, n) for n in value.shape], np.array(value, order="C"))] if is_first else [])
    try:
        array = to_array(value)
    except TypeError:
        raise located(
            TypeError,
            f"save: the leaf {path} is {shown(value)}; a checkpoint holds arrays, numbers and texts",
        ) from None
    about = {}
    if dtypes.is_extended(array.dtype):
        about["key"] = str(key_impl(array))
        array = key_data(array)
    about |= {"dtype": dtypes.dtype_name(array.dtype), "shape": list(array.shape)}
    return Leaf(about, list(_parts(array, is_first)))


def is_numpy(value: Any) -> bool:
    """Whether a leaf is an array of NumPy's of numbers, which stays one."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind in "OSUMm":
        return False
    return value.dtype.names is None and (value.dtype.kind != "V" or dtypes.is_inexact(value.dtype))


def _parts(array: Any, is_first: bool) -> list[Part]:
    """The parts of an array that this process writes: each part is written by the process of its first replica."""
    if array.is_fully_addressable and len(array.devices()) == 1:
        whole = [(0, n) for n in array.shape]
        return [Part(whole, np.array(array))] if is_first else []
    found = []
    for shard in array.addressable_shards:
        if shard.replica_id == 0:
            bounds = [s.indices(n)[:2] for s, n in zip(shard.index, array.shape, strict=True)]
            found.append(Part(bounds, np.array(shard.data)))
    return found


def overlap(one: Bounds, other: Sequence[tuple[int, int]]) -> Bounds | None:
    """The part that two parts have in common, if any."""
    found = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True)]
    return found if all(a < b for a, b in found) else None


def bytes_of(value: np.ndarray) -> memoryview:
    """The bytes of an array, in order."""
    flat: Any = value.reshape(-1).view(np.uint8) if value.size else b""
    return memoryview(flat)


def plain_value(about: dict[str, Any]) -> Any:
    """A leaf that is not an array, as it was."""
    return {"bool": bool, "int": int, "float": float, "str": str}[about["type"]](about["plain"])
