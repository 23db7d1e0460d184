"""Which arrays are alive on a device, for the message of an error that says that its memory is full.

The names are those by which the user's functions know them: the variables of the frames on the stack, and what their
lists, tuples and dicts hold.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

from purax.core import source
from purax.core.array import Array
from purax.core.trace import Tracer

_SHOWN = 6
_SMALL = 2**20  # bytes, of which nobody asks
_ITEMS = 1000  # of a container that is looked into


def arrays_alive(device: Any = None) -> list[Any]:
    """The arrays of this process, those on one device if it is given, the largest first."""
    found = [x for x in arrays_in_process() if device is None or device in x.devices()]
    return sorted(found, key=lambda x: -x.nbytes)


def arrays_in_process() -> list[Any]:
    """The arrays that the garbage collector knows, in its order."""
    kinds = set(_concrete_kinds(Array))
    return [x for x in gc.get_objects() if id(type(x)) in kinds and not x.is_deleted()]


def _concrete_kinds(kind: type) -> Iterator[int]:
    """The ids of the classes of concrete arrays. An object is known by its class alone, and not asked what it is, which
    may be code of anybody's.
    """
    if issubclass(kind, Tracer):
        return
    if hasattr(kind, "is_deleted"):
        yield id(kind)
    for inner in type.__subclasses__(kind):
        yield from _concrete_kinds(inner)


def description(device: Any = None) -> str:
    """What lives, as lines of a message; empty if that is little.

    >>> import purax.numpy as jnp
    >>> weights = jnp.ones((2048, 2048))
    >>> "16.0 MiB  f32[2048,2048]  weights" in description()
    True
    """
    alive = arrays_alive(device)
    large = [x for x in alive if x.nbytes >= _SMALL]
    if not large:
        return ""
    names = _names()
    lines = [f"\n  {len(alive)} arrays are alive and take {_size(sum(x.nbytes for x in alive))}:"]
    for x in large[:_SHOWN]:
        lines.append(f"    {_size(x.nbytes):>9}  {x.aval.str_short()}  {names.get(id(x), '')}".rstrip())
    if len(large) > _SHOWN:
        lines.append(f"    {_size(sum(x.nbytes for x in large[_SHOWN:])):>9}  in {len(large) - _SHOWN} more")
    return "\n".join(lines)


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def _names() -> dict[int, str]:
    """How the user's code calls the arrays that its variables hold, by the ids of the arrays."""
    names: dict[int, str] = {}
    frame = sys._getframe(1)
    modules: set[int] = set()
    while frame is not None:
        if not source.code_is_internal(frame.f_code) and not source.is_library(frame):
            places = [(f" in {frame.f_code.co_name}", frame.f_locals)]
            if id(frame.f_globals) not in modules:
                modules.add(id(frame.f_globals))
                places.append(("", frame.f_globals))
            for where, variables in places:
                for name, value in list(variables.items()):
                    for path, array in _arrays_in(name, value):
                        names.setdefault(id(array), f"{path}{where if variables is not frame.f_globals else ''}")
        frame = frame.f_back  # type: ignore[assignment]
    return names


def _arrays_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a variable, with the expressions that give them."""
    kinds = set(_concrete_kinds(Array))
    waiting, seen = [(name, value)], 0
    while waiting and seen < _ITEMS:
        path, value = waiting.pop()
        seen += 1
        if id(type(value)) in kinds:
            yield path, value
        elif type(value) in (list, tuple):
            waiting += [(f"{path}[{i}]", item) for i, item in enumerate(value[:_ITEMS])]
        elif type(value) is dict:
            waiting += [(f"{path}[{key!r:.40}]", item) for key, item in list(value.items())[:_ITEMS]]
