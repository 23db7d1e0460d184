"""`jax.Ref`: a cell that holds an array and can be written, as long as one function, or plain Python, uses it.

A reference belongs to the trace in which it was made. Inside a function that is being transformed it can be made,
read and written; one from outside can be read and written only where it was made.
"""

from __future__ import annotations

from typing import Any

import purax.numpy as jnp
from purax.core import source
from purax.core.trace import current

__all__ = ["Ref", "array_ref", "empty_ref", "freeze", "new_ref"]


class Ref:
    """A mutable array: `ref[...]` reads, `ref[...] = value` writes."""

    def __init__(self, value: Any):
        self._value = jnp.asarray(value)
        self._trace = current.trace

    def _check(self) -> None:
        if self._value is None:
            raise source.with_location(ValueError("this reference was frozen; it has no value any more"))
        if current.trace is not self._trace:
            raise source.with_location(
                NotImplementedError(
                    "a reference that was made outside of a transformed function is used inside of it; pass its value "
                    "as an argument and return the new one"
                )
            )

    def __getitem__(self, index: Any) -> Any:
        self._check()
        return self._value[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check()
        self._value = self._value.at[index].set(value)

    def addupdate(self, value: Any, index: Any = ...) -> None:
        """Adds to the elements at `index`."""
        self._check()
        self._value = self._value.at[index].add(value)

    aval = property(lambda self: self._value.aval)
    shape = property(lambda self: self._value.shape)
    dtype = property(lambda self: self._value.dtype)
    ndim = property(lambda self: self._value.ndim)
    size = property(lambda self: self._value.size)

    def __len__(self) -> int:
        return len(self._value)

    def __repr__(self) -> str:
        return f"Ref({self._value!r})"


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference that holds `init_val`.

    Args:
        init_val: an array.
        memory_space: accepted, without effect.
        kind: accepted, without effect.

    >>> from purax.compat.modules.references import new_ref
    >>> ref = new_ref([1, 2])
    >>> ref[0] = 5
    >>> ref[...]
    Array([5, 2], dtype=int32)
    """
    return Ref(init_val)


array_ref = new_ref


def empty_ref(aval: Any, memory_space: Any = None) -> Ref:
    """A reference of a type; it holds zeros."""
    return Ref(jnp.zeros(aval.shape, aval.dtype))


def freeze(ref: Ref) -> Any:
    """The value of a reference, which ends with that."""
    ref._check()
    value, ref._value = ref._value, None  # type: ignore[assignment]
    return value
