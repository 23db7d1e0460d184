"""Changes of what a function can reach: what is new in an object, whether that is traced, and putting it back."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import functools
import threading
import types
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.core.trace import Tracer
from purax.purity.contents import EXACT, Contents, attributes_of, read_namespace, same_value
from purax.purity.nodes import Node

_GONE = object()


def by_key(contents: Contents) -> dict[Any, Any]:
    """The parts of an object under their keys, or their positions."""
    _, keys, values = contents
    if keys and not values:
        return dict.fromkeys(keys)
    return dict(zip(keys, values, strict=True)) if len(keys) == len(values) else dict(enumerate(values))


def changed_keys(before: Contents, now: Contents) -> list[Any]:
    """The keys of parts that differ."""
    old, new = by_key(before), by_key(now)
    return [key for key in {**old, **new} if old.get(key, _GONE) is not new.get(key, _GONE)]


def new_parts(before: Contents, now: Contents) -> list[Any]:
    """What an object holds now and did not hold before."""
    known = {id(x) for x in before[2]}
    return [x for x in now[2] if id(x) not in known]


def only_fills(before: Contents, now: Contents) -> bool:
    """Whether a change only put something where there was nothing, or None."""
    old, new = by_key(before), by_key(now)
    return before[0] == now[0] and all(
        [key in new and (x is None or new[key] is x or same_value(new[key], x)) for key, x in old.items()]
    )


def holds_tracer(value: Any, depth: int = 0) -> bool:
    """Whether a traced value is in `value`."""
    if isinstance(value, Tracer):
        return True
    if type(value) in EXACT or isinstance(value, (Array, type, types.ModuleType, np.ndarray)) or depth > 6:
        return False
    if isinstance(value, dict):
        parts: Any = list(value.values())
    elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        parts = list(value)
    elif isinstance(value, types.FunctionType):
        parts = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):
                parts.append(cell.cell_contents)
    elif isinstance(value, (types.MethodType, types.BuiltinFunctionType)):
        parts = [value.__self__]
    elif isinstance(value, functools.partial):
        parts = [value.func, value.args, value.keywords]
    elif isinstance(value, types.GeneratorType):
        parts = list(value.gi_frame.f_locals.values()) if value.gi_frame is not None else []
    else:
        parts = list(attributes_of(value).values())
    return any(holds_tracer(x, depth + 1) for x in parts)


def put_back(node: Node, before: Contents) -> None:
    """Gives an object what it held before, where that is possible."""
    value: Any = node.value
    tag, keys, values = before
    with contextlib.suppress(Exception):
        if isinstance(value, np.ndarray):
            _put_back_array(value, tag, values)
        elif isinstance(value, bytearray):
            value[:] = tag
        elif isinstance(value, list):
            value[:] = values[: len(values) - len(keys)]
        elif isinstance(value, collections.deque):
            value.clear()
            value.extend(values[: len(values) - len(keys)])
        elif isinstance(value, set):
            value.clear()
            value.update(keys)
        elif node.reader is read_namespace:
            _assign(value, {name: value[name] for name in node.names if name in value}, by_key(before))
        elif isinstance(value, dict):
            entries = by_key(before)
            if isinstance(value, collections.defaultdict):
                entries.pop("default_factory", None)
            value.clear()
            value.update(entries)
        elif isinstance(value, types.CellType):
            if values:
                value.cell_contents = values[0]
            else:
                del value.cell_contents
        elif isinstance(value, contextvars.ContextVar):
            value.set(values[0])
        elif hasattr(value, "setstate") and isinstance(tag, tuple):
            value.setstate(tag)
        else:
            _put_back_attributes(node, before)


def _put_back_array(value: np.ndarray, tag: Any, values: list[Any]) -> None:
    if value.dtype.hasobject:
        value[...] = np.array(values, dtype=object).reshape(value.shape)
    else:
        while (
            len(tag) != 5
        ):  # of an array with attributes, or one whose memory counts: that of the array comes first
            tag = tag[0]
        shape, dtype, _, contents, _ = tag
        value[...] = np.frombuffer(contents, dtype).reshape(shape)


def _assign(space: dict[str, Any], now: dict[str, Any], before: dict[str, Any]) -> None:
    for name in now.keys() - before.keys():
        del space[name]
    space.update(before)


def _put_back_attributes(node: Node, before: Contents) -> None:
    value: Any = node.value
    own: Any = object
    if isinstance(value, type):
        own = type
    elif isinstance(value, threading.local):
        own = threading.local
    elif isinstance(value, types.ModuleType):
        own = types.ModuleType
    old, now = by_key(before), by_key(node.read())
    for name in now.keys() - old.keys():
        if isinstance(name, str):
            own.__delattr__(value, name)
    for name, x in old.items():
        if isinstance(name, str) and " " not in name and (name not in now or now[name] is not x):
            own.__setattr__(value, name, x)
