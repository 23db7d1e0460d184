"""`jax.ref`: `purax.ref`, and older names of `new_ref`."""

from __future__ import annotations

from purax.ref import (
    AbstractRef,
    Ref,
    addupdate,
    empty_ref,
    free_ref,
    freeze,
    get,
    new_ref,
    set,
    swap,
)

array_ref = mutable_array = new_ref
ArrayRef = MutableArray = Ref

__all__ = [
    "AbstractRef",
    "ArrayRef",
    "MutableArray",
    "Ref",
    "addupdate",
    "array_ref",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "mutable_array",
    "new_ref",
    "set",
    "swap",
]
