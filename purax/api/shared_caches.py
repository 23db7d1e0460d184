"""What was traced for a function is shared by all `jit`s of it, so that `jit(f)` in a loop traces once.

A program often reaches, through what it captured or is compared with, the very function that it was traced from: that
of an object which holds its own `jit`, or one that calls itself. To keep it by the function would keep both forever.
So a cache belongs to the `jit`s of a function. It outlives them as long as a function of a module lives; for one that
was made in another function, until the garbage collector has looked through everything twice and nobody asked again.
"""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

from purax.core.limits import shallow


class Cache(dict[Any, Any]):
    """Specializations of a function by what they are made for; those who hold it decide how long it lives."""


_known: weakref.WeakKeyDictionary[Any, weakref.WeakValueDictionary[Any, Cache]] = weakref.WeakKeyDictionary()
_lasting: weakref.WeakKeyDictionary[Any, dict[Any, Cache]] = weakref.WeakKeyDictionary()
# Those that were asked for since the last full collection, and since the one before.
_recent: list[weakref.WeakKeyDictionary[Any, dict[Any, Cache]]] = [
    weakref.WeakKeyDictionary(),
    weakref.WeakKeyDictionary(),
]


def shared_cache(function: Callable, options: dict[str, Any]) -> Cache:
    """The cache of all `jit`s of one function with the same options."""
    if not isinstance(function, types.FunctionType):
        return Cache()
    try:
        key = shallow(tuple(sorted((name, _hashable(value)) for name, value in options.items())))
        cache = _known.setdefault(function, weakref.WeakValueDictionary()).setdefault(key, Cache())
    except TypeError:
        return Cache()
    is_local = "<" in function.__qualname__  # f.<locals>.g, or a lambda
    (_recent[0] if is_local else _lasting).setdefault(function, {})[key] = cache
    return cache


def clear() -> None:
    """Forgets what was traced for functions whose `jit`s are gone."""
    for kept in (_lasting, *_recent):
        for caches in list(kept.values()):
            for cache in list(caches.values()):
                cache.clear()


def _hashable(value: Any) -> Any:
    return (
        tuple(sorted(value.items()))
        if isinstance(value, dict)
        else tuple(value)
        if isinstance(value, list)
        else value
    )


def _let_go(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2 and (_recent[0] or _recent[1]):
        _recent[:] = weakref.WeakKeyDictionary(), _recent[0]


gc.callbacks.append(_let_go)
