"""`Array`, the type of every array a user meets, be it concrete or traced.

Concrete arrays (`purax.xla.array`) and tracers (`purax.core.trace`) derive from it. Its operators and methods are
those of `purax.numpy`, which fills them in when it is imported: one definition serves both.
"""

from __future__ import annotations

from typing import Any

from purax.core.avals import ShapedArray


class Array:
    """An immutable n-dimensional array, as in NumPy."""

    __slots__ = ()
    __array_priority__ = 100
    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.aval.size * self.aval.dtype.itemsize

    def __delitem__(self, index):
        raise TypeError(
            "arrays are immutable: elements cannot be deleted. Make a new array: `jnp.delete(x, index)`"
        )

    def __hash__(self):
        raise TypeError(
            f"unhashable type: {self.aval.str_short()} array. Arrays compare element by element, so they cannot be "
            "dict keys, set members or static arguments; use `x.tobytes()`, `float(x)` or a tuple of numbers instead."
        )
