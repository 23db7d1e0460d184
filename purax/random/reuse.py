"""The check that no random key is used twice: `config.debug_key_reuse`.

Numbers drawn with one key are not independent of each other, and no result shows it. With the check on, a key that was
given to `split` or to a distribution is remembered as long as it lives, and giving it to another one raises
`KeyReuseError`. `fold_in` does not use a key up, and `clone` gives a fresh one. A key is an array or a traced value:
equal keys that were made twice, or a key that every call of a compiled function takes again, count as different ones.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from purax.core import source
from purax.core.array import Array
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import KeyReuseError
from purax.primitives.elementwise.arithmetic import copy
from purax.xla.array import from_numpy

_used: dict[int, tuple[Any, str]] = {}  # id of a key -> a reference to it, and who used it
_MAX_TRACED = 1000


def consume(key: Any, name: str) -> None:
    """Marks a key as used by the function `name`; an error if it was used before."""
    identity = id(key)
    entry = _used.get(identity)
    if entry is not None and (entry[0] is key or entry[0]() is key):
        raise located(
            KeyReuseError,
            f"{name} got a key that {entry[1]} had used already, so their numbers would not be independent. "
            "Split the key and use each of the new ones once, or pass purax.random.clone(key) to draw the same "
            "numbers again.",
        )
    user = f"`{name}` at {source.user_location()}"
    if isinstance(key, Tracer):  # cannot be referred to weakly, but ends with its transformation
        if len(_used) > _MAX_TRACED:
            _forget_ended()
        _used[identity] = (key, user)
    elif isinstance(key, (Array, np.ndarray)):
        _used[identity] = (weakref.ref(key, lambda dead: _forget(identity, dead)), user)


def _forget(identity: int, dead: Any) -> None:
    if identity in _used and _used[identity][0] is dead:
        del _used[identity]


def _forget_ended() -> None:
    for identity, (key, _) in list(_used.items()):
        if isinstance(key, Tracer) and not key.owner.alive:
            del _used[identity]


def fresh(key: Any) -> Array:
    """The same key as a new value, which nobody has used."""
    return copy(key) if isinstance(key, Array) else from_numpy(np.array(key))
