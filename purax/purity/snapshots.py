"""Values as they were when a function was traced, and whether a value is still the same.

Numbers, strings and tuples are compared by value, functions and modules by identity, lists, dicts and sets by their
contents, NumPy arrays by theirs, objects by their attributes. purax arrays that are operands of the program may be
replaced by others of the same type: the comparison hands the new ones over.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import math
import mmap
import operator
import types
from collections.abc import Mapping, MutableMapping, MutableSequence
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.purity.ownership import is_user_class
from purax.xla.array import DeviceArray

_EXACT = (int, bool, str, bytes, type(None), type(...), type(NotImplemented))
_SCALARS = frozenset((*_EXACT, float, complex))
_MOST = 100_000  # containers and objects in one value that are looked at
_DEEPEST = 50
_DATA = (types.SimpleNamespace, Mapping)
_DATA_NAMES = {("argparse", "Namespace")}


class Snapshot:
    """The state of one value.

    Attributes:
        kind: "identity", "scalar", "operand", "sequence", "scalars" (a sequence of nothing else), "mapping", "set",
            "array", "bytes", "object" or "type".
        value: that was seen; None where only its parts are kept.
    """

    __slots__ = ("kind", "parts", "type", "value")

    def __init__(self, kind: str, value: Any, of: type, parts: Any = None):
        self.kind = kind
        self.value = value
        self.type: Any = of
        self.parts = parts

    def same(self, value: Any, operands: list[Any]) -> bool:
        """Whether `value` equals what was seen; entries of `operands` are replaced by the arrays found."""
        kind = self.kind
        if kind == "identity":
            return value is self.value
        if kind == "scalar":
            return value is self.value or (type(value) is self.type and _equal(value, self.value))
        if kind == "operand":
            return self._same_operand(value, operands)
        if type(value) is not self.type:
            return False
        if kind == "array":
            shape, dtype, contents, is_frozen = self.parts
            if is_frozen and value is self.value and not value.flags.writeable:
                return True
            # A bytearray compares itself with the memory of an array in place, as fast as memory is read.
            return value.shape == shape and value.dtype == dtype and contents == _memory(value)
        if kind == "bytes":
            return self.parts == value
        if kind == "scalars":
            return len(value) == len(self.parts) and (
                all(map(operator.is_, value, self.parts))
                or all([type(x) is type(y) and _equal(x, y) for x, y in zip(value, self.parts, strict=True)])
            )
        if kind == "sequence":
            if isinstance(value, np.ndarray):
                value = _entries(value)
            return len(value) == len(self.parts) and all(
                [part.same(x, operands) for part, x in zip(self.parts, value, strict=True)]
            )
        if kind == "mapping":
            return list(value) == list(self.parts) and all(
                [part.same(value[key], operands) for key, part in self.parts.items()]
            )
        if kind == "set":
            return value == self.parts
        if kind == "object":
            attributes = _attributes(value)
            return attributes.keys() == self.parts.keys() and all(
                [part.same(attributes[name], operands) for name, part in self.parts.items()]
            )
        return True  # "type"

    def _same_operand(self, value: Any, operands: list[Any]) -> bool:
        old = self.value
        if value is old:
            return True
        if type(value) is not type(old) or value.aval is not old.aval:
            return False
        if type(value) is not DeviceArray and (
            value.sharding != old.sharding or value.committed != old.committed
        ):
            return False
        for slot in self.parts:
            operands[slot] = value
        return True


def take(value: Any, operands: dict[int, list[int]], read: set[int]) -> Snapshot:
    """The state of a value now.

    Args:
        value: any.
        operands: by the id of a purax array, its places among the operands of the program.
        read: ids of purax arrays whose values were looked at while tracing.
    """
    return _Taker(operands, read).take(value, 0)


class _Taker:
    def __init__(self, operands: dict[int, list[int]], read: set[int]):
        self.operands = operands
        self.read = read
        self.left = _MOST
        self.open: set[int] = set()

    def take(self, value: Any, depth: int) -> Snapshot:
        kind = type(value)
        if kind in _EXACT or isinstance(value, (float, complex, np.generic, np.dtype, slice, range)):
            return Snapshot("scalar", value, kind)
        if isinstance(value, Array):
            slots = self.operands.get(id(value))
            if slots is not None and id(value) not in self.read:
                return Snapshot("operand", value, kind, slots)
            return Snapshot("identity", value, kind)
        if isinstance(
            value, (type, types.FunctionType, types.ModuleType, types.BuiltinFunctionType, enum.Enum)
        ):
            return Snapshot("identity", value, kind)
        if isinstance(value, types.MethodType):
            parts = {"__self__": value.__self__, "__func__": value.__func__}
            return Snapshot(
                "object", None, kind, {n: Snapshot("identity", x, type(x)) for n, x in parts.items()}
            )
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST or id(value) in self.open:
            return Snapshot("identity", value, kind)
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            contents = bytearray(value.tobytes())
            return Snapshot("array", value, kind, (value.shape, value.dtype, contents, _is_frozen(value)))
        if isinstance(value, (bytearray, memoryview)):
            return Snapshot("bytes", None, kind, bytearray(value))
        self.open.add(id(value))
        try:
            return self._take_parts(value, kind, depth + 1)
        finally:
            self.open.discard(id(value))

    def _take_parts(self, value: Any, kind: type, depth: int) -> Snapshot:
        if isinstance(value, np.ndarray):  # of objects
            return Snapshot("sequence", None, kind, [self.take(x, depth) for x in _entries(value)])
        if isinstance(value, (list, tuple, collections.deque)) or (
            isinstance(value, MutableSequence) and not is_user_class(kind)
        ):
            if all([type(x) in _SCALARS for x in value]):
                return Snapshot("scalars", None, kind, list(value))
            return Snapshot("sequence", None, kind, [self.take(x, depth) for x in value])
        if isinstance(value, (dict, types.MappingProxyType)):
            return Snapshot("mapping", None, kind, {k: self.take(x, depth) for k, x in value.items()})
        if isinstance(value, (set, frozenset)):
            return Snapshot("set", None, kind, frozenset(value))
        if isinstance(value, MutableMapping) and not is_user_class(kind):
            try:
                return Snapshot("mapping", None, kind, {k: self.take(x, depth) for k, x in value.items()})
            except Exception:
                return Snapshot("identity", value, kind)
        if is_user_class(kind) or dataclasses.is_dataclass(value) or _is_data(value):
            attributes = _attributes(value)
            if attributes or is_user_class(kind):
                parts = {name: self.take(x, depth) for name, x in attributes.items()}
                return Snapshot("object", None, kind, parts)
        return Snapshot("identity", value, kind)


def _is_data(value: Any) -> bool:
    kind = type(value)
    return isinstance(value, _DATA) or (kind.__module__, kind.__name__) in _DATA_NAMES


def _attributes(value: Any) -> dict[str, Any]:
    if type(value) is types.MethodType:
        return {"__self__": value.__self__, "__func__": value.__func__}
    own = getattr(value, "__dict__", None)
    found = dict(own) if isinstance(own, dict) else {}
    for parent in type(value).__mro__:
        slots = parent.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                try:
                    found[name] = getattr(value, name)
                except AttributeError:
                    continue
    return found


def _equal(a: Any, b: Any) -> bool:
    """Whether two values of one type cannot be told apart by a program."""
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if isinstance(a, complex):
        return _equal(a.real, b.real) and _equal(a.imag, b.imag)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return bool(a == b)


def _entries(value: np.ndarray) -> list[Any]:
    return [value.shape, *value.flat]


def _memory(value: np.ndarray) -> Any:
    """The bytes of an array in the order of its axes: the array itself where they lie so."""
    is_plain = type(value) is np.ndarray and value.dtype.kind in "biufc" and value.dtype.isnative
    if is_plain and value.size and value.flags.c_contiguous:
        return value
    return value.tobytes()


def _is_frozen(value: np.ndarray) -> bool:
    """Whether nobody can write to an array, nor to what it is a view of, unless it is made writeable."""
    array: Any = value
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or not isinstance(array, (bytearray, mmap.mmap, memoryview))


def describe(snapshot: Snapshot) -> str:
    """What was seen, in a few words."""
    if snapshot.kind in ("scalar", "identity"):
        return short(snapshot.value)
    if snapshot.kind == "scalars":
        return short(snapshot.parts)
    if snapshot.kind == "sequence":
        inside = ", ".join(describe(part) for part in snapshot.parts[:6])
        more = ", …" if len(snapshot.parts) > 6 else ""
        return f"({inside}{more})" if issubclass(snapshot.type, tuple) else f"[{inside}{more}]"
    if snapshot.kind == "mapping":
        inside = ", ".join(f"{k!r}: {describe(part)}" for k, part in list(snapshot.parts.items())[:6])
        return f"{{{inside}{', …' if len(snapshot.parts) > 6 else ''}}}"
    if snapshot.kind == "set":
        return short(set(snapshot.parts))
    if snapshot.kind == "array":
        return f"a NumPy array of shape {snapshot.parts[0]}"
    if snapshot.kind == "operand":
        return f"an array {snapshot.value.aval.str_short()}"
    return f"a {snapshot.type.__name__}"


def short(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, Array):
        return f"an array {value.aval.str_short()}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape}" if value.size > 8 else repr(value)
    if callable(value) and hasattr(value, "__name__"):
        return f"`{value.__name__}`"
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}…"
