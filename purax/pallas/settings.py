"""Settings of kernels for a `with` block or for all that follows, and who makes the references of a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from purax.pallas.refs import KernelRef
from purax.scopes import Scope


class _Override(Scope):
    def __init__(self, state: State, value: Any):
        self._state, self._value = state, value

    def enter(self, entered: list[Any]) -> None:
        self._before = self._state.value
        entered.append(self)
        self._state.set(self._value)

    def leave(self, entered: list[Any]) -> None:
        self._state.set(self._before)


class State(threading.local):
    """A setting: `with setting(True): ...` sets it for a block.

    >>> from purax import pallas as pl
    >>> with pl.enable_debug_checks(True):
    ...     pl.enable_debug_checks.value
    True
    """

    def __init__(self, value: Any):
        self.value = value

    def set(self, value: Any) -> None:
        self.value = value

    def __call__(self, new_val: Any = True) -> _Override:
        return _Override(self, new_val)

    def __bool__(self) -> bool:
        return bool(self.value)


enable_debug_checks = State(False)
enable_poison_buffers = State(False)
checks = State(None)  # the mode of `purax.pallas.checking`; None outside of it


class _Makers(threading.local):
    def __init__(self) -> None:
        self.make: Callable[..., Any] | None = None


makers = _Makers()


def make_ref(value: Any, name: str, memory_space: Any, is_initialized: bool) -> Any:
    """A reference for a kernel; the checking mode makes its own kind."""
    if makers.make is not None:
        return makers.make(value, name, memory_space, is_initialized)
    return KernelRef(value, name, memory_space)
