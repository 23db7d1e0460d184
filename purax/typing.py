"""Names for annotations: what counts as an array, a dtype, a shape.

A type checker sees the `Array` of `purax.core.array`. While a program runs a protocol stands for it, so that this
module depends on no other part of purax and `isinstance(x, ArrayLike)` works.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

__all__ = ["ArrayLike", "DTypeLike", "Shape", "SupportsDType"]


@runtime_checkable
class SupportsDType(Protocol):
    """An object that has a dtype, such as the scalar types of `purax.numpy`."""

    @property
    def dtype(self) -> Any: ...


if TYPE_CHECKING:
    from purax.core.array import Array
else:

    @runtime_checkable
    class Array(SupportsDType, Protocol):
        """An array or tracer: it has an abstract value."""

        @property
        def aval(self) -> Any: ...


ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""What functions on arrays accept: arrays, NumPy arrays and scalars, Python scalars; not lists or tuples."""

DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
"""What `dtype=` accepts: names, scalar types, NumPy dtypes."""

Shape: TypeAlias = Sequence[int]
"""The shape of an array: one length per axis."""
