"""Whether a class of a library still has the methods that it had: such classes are seldom patched, and have many.

The interpreter numbers the states of a class (`tp_version_tag`), for its own caches of methods: assigning an attribute
of a class, or of one that it is derived from, gives it another number. Reading the number takes some 30 ns. Whether
this Python does so, and where the number stands, is tried on import; if not, the methods are compared.
"""

from __future__ import annotations

import ctypes
import types
from typing import Any

from purax.core.memo import Memo

_OFFSET = 24 + 45 * ctypes.sizeof(ctypes.c_void_p)  # in the structure that describes a class
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8
_METHODS = (types.FunctionType, property, classmethod, staticmethod)


class _Unnumbered:
    """Stands for the number of a class where it cannot be read."""

    value = 0


def _number_of(kind: type) -> Any:
    """What holds the number of a class as `value`: 0 if it has none now."""
    return ctypes.c_uint32.from_address(id(kind) + _OFFSET) if _HAS_NUMBERS else _UNNUMBERED


def _are_numbered() -> bool:
    """Whether classes have numbers that change with their methods."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16:
        return False

    class Base:
        def method(self) -> int:
            return 1

    class Derived(Base):
        pass

    def number(kind: type) -> int:
        kind.method  # type: ignore[attr-defined]  # noqa: B018 - looked up, the class gets a number
        return ctypes.c_uint32.from_address(id(kind) + _OFFSET).value

    seen = [number(Derived), number(Derived)]
    if not seen[0] or seen[0] != seen[1] or number(Base) == seen[0]:
        return False
    for change in range(3):
        Base.method = lambda self, x=change: x  # type: ignore[method-assign, assignment, misc]
        changed = ctypes.c_uint32.from_address(id(Derived) + _OFFSET).value
        if changed == seen[-1] or number(Derived) in seen:
            return False
        seen.append(number(Derived))
    Derived.other = 1  # type: ignore[attr-defined]
    return number(Derived) not in seen


_UNNUMBERED = _Unnumbered()
_HAS_NUMBERS = _are_numbered()
_known: Memo[int, ClassState] = Memo()


class ClassState:
    """The methods that a class of a library had, its own and those of its bases.

    >>> import fractions
    >>> state = state_of(fractions.Fraction)
    >>> state.holds()
    True
    """

    __slots__ = ("kind", "methods", "number", "seen")

    def __init__(self, kind: type):
        self.kind = kind
        self.methods = _methods(kind)
        self.number = _number_of(kind)
        self.seen = _seen(kind, self.number)

    def holds(self) -> bool:
        """Whether the class still has these methods."""
        if self.number.value == self.seen and self.seen:
            return True
        if _methods(self.kind) != self.methods:
            return False
        self.seen = _seen(self.kind, self.number)
        return True


def _seen(kind: type, number: Any) -> int:
    type.__getattribute__(kind, "__doc__")  # looked up, a class gets a number
    return int(number.value)


def _methods(kind: type) -> dict[tuple[int, str], int]:
    found: dict[Any, Any] = {}
    for parent in kind.__mro__:
        for name, x in vars(parent).items():
            if type(x) in _METHODS:
                found[name, parent] = x
    return found


def is_patchable(kind: type) -> bool:
    """Whether methods of a class can be assigned."""
    return bool(kind.__flags__ & _HEAP) and not kind.__flags__ & _IMMUTABLE


def state_of(kind: type) -> ClassState:
    """What a class is like now."""
    state = _known.get(id(kind))
    if state is None or state.kind is not kind or not state.holds():
        state = _known[id(kind)] = ClassState(kind)
    return state
