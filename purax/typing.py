"""Names for annotations: what counts as an array, a dtype, a shape.

Arrays and tracers are described by a protocol, so that this module depends on no other part of purax and
`isinstance(x, ArrayLike)` works while a program runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

__all__ = ["ArrayLike", "DTypeLike", "Shape", "SupportsAval", "SupportsDType"]


@runtime_checkable
class SupportsDType(Protocol):
    """An object that has a dtype, such as the scalar types of `purax.numpy`."""

    @property
    def dtype(self) -> Any: ...


@runtime_checkable
class SupportsAval(SupportsDType, Protocol):
    """An array or tracer: an object that has an abstract value."""

    @property
    def aval(self) -> Any: ...


ArrayLike: TypeAlias = SupportsAval | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""What functions on arrays accept: arrays, NumPy arrays and scalars, Python scalars; not lists or tuples."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
"""What `dtype=` accepts: names, scalar types, NumPy dtypes."""

Shape: TypeAlias = Sequence[int]
"""The shape of an array: one length per axis."""
