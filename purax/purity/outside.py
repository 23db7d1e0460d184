"""Objects that existed before a function was traced: which they are, what was in them, and putting that back."""

from __future__ import annotations

import collections
import functools
import threading
import types
from typing import Any

import numpy as np

from purax.core import cells
from purax.core.array import Array
from purax.core.trace import Tracer

_MOST = 20_000
_DEEPEST = 12
_LEAVES = (int, float, complex, str, bytes, type(None), np.generic, np.dtype, Array, types.CodeType)
_PLAIN = (list, dict, set, bytearray, collections.deque)


class Outside:
    """The containers, objects and NumPy arrays that can be reached from certain values; not references, whose changes
    programs know of.

    Attributes:
        found: by id, the object, how messages call it, and whether it is part of an argument.
    """

    def __init__(self) -> None:
        self.found: dict[int, tuple[Any, str, bool]] = {}
        self.before: dict[int, Any] = {}

    def add(self, value: Any, name: str, is_argument: bool = False, depth: int = 0) -> None:
        """Adds a value and everything in it."""
        if (
            isinstance(value, _LEAVES)
            or id(value) in self.found
            or depth > _DEEPEST
            or len(self.found) > _MOST
        ):
            return
        if (isinstance(value, type) and depth) or cells.kind_of(value) is not None:
            return
        self.found[id(value)] = (value, name, is_argument)
        self.before[id(value)] = copy_of(value)
        if isinstance(value, dict):
            for key, x in list(value.items()):
                self.add(x, f"{name}[{key!r}]", is_argument, depth + 1)
        elif isinstance(value, (list, tuple, collections.deque)):
            for i, x in enumerate(list(value)):
                self.add(x, f"{name}[{i}]", is_argument, depth + 1)
        elif not isinstance(
            value, (type, types.FunctionType, types.ModuleType, types.BuiltinFunctionType, np.ndarray)
        ):
            for key, x in attributes(value).items():
                self.add(x, f"{name}.{key}", is_argument, depth + 1)

    def has(self, value: Any) -> bool:
        return id(value) in self.found

    def owner(self, value: Any) -> Any:
        """The array that a view is a part of, where that is known; otherwise the value itself."""
        array = value
        while isinstance(array, (np.ndarray, np.flatiter)):
            if id(array) in self.found:
                return array
            array = array.base
        return value

    def name(self, value: Any) -> str:
        return self.found[id(value)][1]

    def changed(self, value: Any) -> bool:
        """Whether the contents of an object differ from what they were."""
        return not same_contents(value, self.before[id(value)])

    def restore(self) -> None:
        """Puts back what was in every object that changed."""
        for key, (value, _, _) in self.found.items():
            if not same_contents(value, self.before[key]):
                put_back(value, self.before[key])


def attributes(value: Any) -> dict[str, Any]:
    """What an object, or a class, keeps under which name."""
    if isinstance(value, type):
        return {name: x for name, x in vars(value).items() if not name.startswith("__")}
    own = getattr(value, "__dict__", None)
    found = dict(own) if isinstance(own, dict) else {}
    for parent in type(value).__mro__:
        slots = parent.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found


def copy_of(value: Any) -> Any:
    """The contents of a value, one level deep; None if it has none that can change."""
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else value.copy()
    if isinstance(value, (list, collections.deque, bytearray)):
        return list(value), _own(value)
    if isinstance(value, dict):
        return dict(value), _own(value)
    if isinstance(value, set):
        return set(value), _own(value)
    if isinstance(value, (tuple, types.ModuleType, types.BuiltinFunctionType)):
        return None
    return attributes(value)


def _own(value: Any) -> dict[str, Any] | None:
    own = getattr(value, "__dict__", None)
    return dict(own) if isinstance(own, dict) else None


def same_contents(value: Any, before: Any) -> bool:
    if before is None:
        return True
    if isinstance(value, np.ndarray):
        return value.shape == before.shape and value.tobytes() == before.tobytes()
    if isinstance(value, (list, collections.deque, bytearray)):
        return len(value) == len(before[0]) and all(a is b for a, b in zip(value, before[0], strict=True))
    if isinstance(value, dict):
        return _same_entries(value, before[0])
    if isinstance(value, set):
        return value == before[0]
    return _same_entries(attributes(value), before)


def _same_entries(a: dict, b: dict) -> bool:
    return len(a) == len(b) and all(k in a and a[k] is x for k, x in b.items())


def only_new_entries(value: Any, before: Any) -> list[Any] | None:
    """The values that were added to a dict or an object, where nothing else changed (None became something counts)."""
    if isinstance(value, dict):
        now, old = value, before[0]
    elif isinstance(value, (*_PLAIN, np.ndarray)) or not isinstance(before, dict):
        return None
    else:
        now, old = attributes(value), before
    added = []
    for key, x in old.items():
        if key not in now or (now[key] is not x and x is not None):
            return None
        if now[key] is not x:
            added.append(now[key])
    return added + [x for key, x in now.items() if key not in old]


def new_parts(value: Any, before: Any) -> list[Any]:
    """What an object holds now and did not hold before."""
    if isinstance(value, np.ndarray) or before is None:
        return []
    now, old = (value, before[0]) if isinstance(before, tuple) else (attributes(value), before)
    known = {id(x) for x in (old.values() if isinstance(old, dict) else old)}
    return [x for x in (now.values() if isinstance(now, dict) else now) if id(x) not in known]


def put_back(value: Any, before: Any) -> None:
    """Gives an object the contents that it had."""
    if isinstance(value, np.ndarray):
        if value.shape == before.shape:
            value[...] = before
    elif isinstance(value, (list, bytearray)):
        value[:] = before[0]
    elif isinstance(value, collections.deque):
        value.clear()
        value.extend(before[0])
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(before[0])
    else:
        own = type if isinstance(value, type) else object
        now = attributes(value)
        if isinstance(value, threading.local):
            own = threading.local
        for name in now.keys() - before.keys():
            own.__delattr__(value, name)
        for name, x in before.items():
            if name not in now or now[name] is not x:
                own.__setattr__(value, name, x)


def holds_tracer(value: Any, depth: int = 0) -> bool:
    """Whether a traced value is in `value`."""
    if isinstance(value, Tracer):
        return True
    if isinstance(value, (*_LEAVES, type)) or depth > 6:
        return False
    if isinstance(value, dict):
        return any(holds_tracer(x, depth + 1) for x in value.values())
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return any(holds_tracer(x, depth + 1) for x in value)
    if isinstance(value, (types.ModuleType, np.ndarray)):
        return False
    if isinstance(value, types.FunctionType):
        return any(holds_tracer(x, depth + 1) for x in _held_by(value))
    if isinstance(value, (types.MethodType, types.BuiltinFunctionType)):
        return holds_tracer(value.__self__, depth + 1)
    if isinstance(value, functools.partial):
        return holds_tracer((value.func, value.args, value.keywords), depth + 1)
    if isinstance(value, types.GeneratorType):
        return value.gi_frame is not None and holds_tracer(dict(value.gi_frame.f_locals), depth + 1)
    return any(holds_tracer(x, depth + 1) for x in attributes(value).values())


def _held_by(function: types.FunctionType) -> list[Any]:
    """The values of variables that a function shares, and its defaults."""
    found = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found


def may_hold(value: Any, kind: type, most: int = 500) -> bool:
    """Whether an object of a class is in `value`; True also if that would take long to tell."""
    waiting, seen = [value], set()
    while waiting:
        x = waiting.pop()
        if isinstance(x, kind):
            return True
        if isinstance(x, (*_LEAVES, types.ModuleType, type, np.ndarray)) or id(x) in seen:
            continue
        seen.add(id(x))
        if len(seen) > most:
            return True
        if isinstance(x, dict):
            waiting += x.values()
        elif isinstance(x, (list, tuple, set, frozenset, collections.deque)):
            waiting += x
        elif isinstance(x, types.FunctionType):
            waiting += _held_by(x)
        elif isinstance(x, types.MethodType):
            waiting.append(x.__self__)
        elif isinstance(x, functools.partial):
            waiting += (x.func, x.args, x.keywords)
        else:
            waiting += attributes(x).values()
    return False
